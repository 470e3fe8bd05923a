"""Compile every Warp module ahead of time to PTX; Warp's files end in a NUL byte, which stays.

Run by `tools.corpus.python_producers.build`, inside Warp's own environment.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import warp as wp

from tools.corpus.manifest import Entry, Field, File, Manifest, Run, Struct, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.warp_kernels.cases import UNITS, Launch, Unit

RECIPE = "tools.corpus.python_producers.build warp"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    wp.config.quiet = True
    wp.init()
    save(Manifest("warp", RECIPE, tuple(compile_unit(unit, arguments.out) for unit in UNITS)), arguments.out)


def compile_unit(unit: Unit, out: Path) -> File:
    """Compile one module and write its file."""
    wp.set_module_options(dict(unit.options), unit.module)
    with tempfile.TemporaryDirectory() as directory:
        wp.compile_aot_module(unit.module, arch=unit.arch, module_dir=directory, use_ptx=True, strip_hash=True)
        (path,) = Path(directory).glob("*.ptx")
        text = path.read_bytes()
    block = unit.options.get("block_dim", 64)
    rows = {}
    for name, launch in unit.launches.items():
        tile_threads = block if "block_dim" in unit.options else 1
        rows[f"{name}_cuda_kernel_forward"] = Entry(
            "", launch.algorithm, _run(launch, block, tile_threads), launch.reason
        )
        adjoint = "the adjoint kernel takes gradients, which have no reference here"
        rows[f"{name}_cuda_kernel_backward"] = Entry("", f"{launch.algorithm}-adjoint", None, adjoint)
    flags = [f"arch={unit.arch}", "use_ptx=True", *(f"{name}={value}" for name, value in unit.options.items())]
    source = unit.module.__file__ or ""
    return record.write(
        out, Path(source).stem, text, rows, version=record.installed("warp-lang"), flags=flags, source=source
    )


def _run(launch: Launch, block: int, tile_threads: int) -> Run | None:
    if launch.reason is not None:
        return None
    size = tile_threads
    for extent in launch.dims:
        size *= extent
    bounds = _bounds(launch, size, tile_threads)
    grid = ((size + block - 1) // block,)
    arguments = (bounds, *launch.arguments)
    return record.launch(grid, (block,), arguments, launch.outputs, launch.reference, smem=launch.shared)


def _bounds(launch: Launch, size: int, tile_threads: int) -> Struct:
    """Warp's first parameter: the launch's extents (32 bits each), its size, the threads that share a coordinate."""
    fields = [Field(4 * k, record.scalar(f"launch.{k}", "uint32", extent)) for k, extent in enumerate(launch.dims)]
    offset = (4 * len(launch.dims) + 7) // 8 * 8
    fields += [Field(offset, record.scalar("launch.size", "uint64", size))]
    fields += [Field(offset + 8, record.scalar("launch.threads", "uint64", tile_threads))]
    return Struct("launch", offset + 16, tuple(fields))


if __name__ == "__main__":
    main()
