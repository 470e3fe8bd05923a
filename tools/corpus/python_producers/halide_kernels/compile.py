"""Compile every Halide pipeline and keep its device code, which is PTX.

Run by `tools.corpus.python_producers.build`, inside Halide's own environment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import halide as hl

from tools.corpus.manifest import Array, Entry, File, Manifest, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.halide_kernels import pipelines
from tools.corpus.python_producers.record import array, entry, launch

RECIPE = "tools.corpus.python_producers.build halide"
PARTIAL = entry("scan", reason="one kernel of two; the pipeline launches both")


@dataclass(frozen=True)
class Case:
    """One pipeline: its buffers in the order of their names, which is the order of the kernel's parameters."""

    pipeline: Callable[[], Any]
    capability: int
    algorithm: str
    arguments: tuple[Array, ...]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    reference: str
    tolerance: float = 0.0
    smem: int = 0
    kernels: int = 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    save(Manifest("halide", RECIPE, tuple(compile_case(case, arguments.out) for case in CASES)), arguments.out)


def compile_case(case: Case, out: Path) -> File:
    """Compile one pipeline and write its file."""
    name = case.pipeline.__name__
    features = f"host-cuda-cuda_capability_{case.capability}-no_asserts-no_bounds_query-no_runtime"
    output = Path(f"{name}.device").resolve()
    function, inputs = case.pipeline()
    function.compile_to({hl.OutputFileType.device_code: str(output)}, inputs, name, hl.Target(features))
    run = launch(
        case.grid,
        case.block,
        case.arguments,
        {"result": (case.tolerance, case.tolerance)},
        case.reference,
        smem=case.smem,
    )
    row = Entry("", case.algorithm, run) if case.kernels == 1 else PARTIAL
    version, source = record.installed("halide"), str(pipelines.__file__)
    return record.write(out, name, output.read_bytes(), {"": row}, version=version, flags=[features], source=source)


def u8(name: str, *shape: int) -> Array:
    return array(name, "uint8", *shape, init="bits")


CASES = [
    Case(
        pipelines.blur,
        86,
        "blur-rows",
        (array("image", "float32", 16, 34, init="normal"), array("result", "float32", 16, 32)),
        (2, 4),
        (16, 4),
        "images.blur",
        1e-5,
    ),
    Case(
        pipelines.matmul,
        75,
        "matmul",
        (
            array("a", "float32", 16, 32, init="normal"),
            array("b", "float32", 32, 16, init="normal"),
            array("result", "float32", 16, 16),
        ),
        (2, 2),
        (8, 8),
        "images.matmul",
        1e-4,
    ),
    Case(
        pipelines.erode,
        80,
        "erosion",
        (u8("image", 18, 34), array("result", "uint8", 16, 32)),
        (2, 2),
        (16, 10),
        "images.erode",
        smem=1024,
    ),
    Case(
        pipelines.downsample,
        75,
        "downsample",
        (u8("image", 32, 32), array("result", "uint8", 16, 16)),
        (2, 2),
        (8, 8),
        "images.downsample",
    ),
    Case(
        pipelines.running_sums,
        86,
        "scan",
        (array("image", "int32", 32, 24, init="integers", low=-9, high=9), array("result", "int32", 32, 24)),
        (1, 4),
        (24, 8),
        "images.running_sums",
        kernels=2,
    ),
    Case(
        pipelines.blend,
        80,
        "alpha-blend",
        (u8("a", 16, 32), u8("b", 16, 32), u8("mask", 16, 32), array("result", "uint8", 16, 32)),
        (2, 2),
        (16, 8),
        "images.blend",
    ),
]


if __name__ == "__main__":
    main()
