"""Run the Mojo program, which compiles each kernel for its target and prints the PTX.

Run by `tools.corpus.python_producers.build`, inside the environment of mojo and max.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.corpus.manifest import Argument, Entry, Manifest, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.record import array, entry, launch, scalar

SOURCE = Path(__file__).with_name("kernels.mojo")
RECIPE = "tools.corpus.python_producers.build mojo"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    mojo = Path(sys.executable).with_name("mojo")
    result = subprocess.run([str(mojo), "run", str(SOURCE)], check=True, capture_output=True)
    files = []
    for part in result.stdout.split(b"=== ")[1:]:
        name, text = part.split(b"\n", 1)
        # `print` ends the assembly with one more line than the compiler wrote.
        text, stem, version = text.removesuffix(b"\n"), name.decode(), record.installed("mojo")
        rows = {stem: ROWS[stem]}
        flags = ["_compile_code", record.read_declarations(text)[0]]
        files.append(record.write(arguments.out, stem, text, rows, version=version, flags=flags, source=str(SOURCE)))
    save(Manifest("mojo", RECIPE, tuple(files)), arguments.out)


def run(
    algorithm: str,
    reference: str,
    *arguments: Argument,
    output: str = "result",
    grid: tuple[int, ...] = (1,),
    block: tuple[int, ...] = (64,),
    tolerance: float = 0.0,
) -> Entry:
    return entry(algorithm, launch(grid, block, arguments, {output: (tolerance, tolerance)}, reference))


N = scalar("n", "int64", 60)
ROWS = {
    "saxpy": run(
        "axpy",
        "pointwise.axpy",
        array("x", "float32", 60, init="normal"),
        array("y", "float32", 60, init="normal"),
        scalar("alpha", "float32", 1.5),
        N,
        output="y",
        tolerance=1e-5,
    ),
    "sigmoid": run(
        "sigmoid",
        "small.sigmoid",
        array("x", "float32", 60, init="normal"),
        array("result", "float32", 60),
        N,
        tolerance=1e-5,
    ),
    "warp_sum": run(
        "warp-sum",
        "small.warp_sums",
        array("x", "float32", 64, init="normal"),
        array("result", "float32", 64),
        tolerance=1e-4,
    ),
    "reverse_shared": run(
        "reverse", "small.reverse", array("x", "int32", 64, init="bits"), array("result", "int32", 64)
    ),
    "matmul": run(
        "matmul",
        "small.matmul",
        array("a", "float64", 10, 10, init="normal"),
        array("b", "float64", 10, 10, init="normal"),
        array("result", "float64", 10, 10),
        scalar("n", "int64", 10),
        grid=(2, 2),
        block=(8, 8),
        tolerance=1e-12,
    ),
    "triangle_numbers": run(
        "triangle-numbers",
        "small.triangle_numbers",
        array("x", "int32", 60, init="integers", low=0, high=300),
        array("result", "int32", 60),
        N,
    ),
}


if __name__ == "__main__":
    main()
