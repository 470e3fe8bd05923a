"""Compile the Zig kernels for NVPTX, once per target.

Run by `tools.corpus.python_producers.build`, inside the environment of ziglang.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from tools.corpus.manifest import Argument, Entry, Manifest, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.record import array, entry, launch, scalar

HERE = Path(__file__).parent
RECIPE = "tools.corpus.python_producers.build zig"
TARGETS = (("sm_90", "ReleaseFast", ""), ("sm_75", "ReleaseSafe", ".safe"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    files = []
    for target, mode, suffix in TARGETS:
        flags = ["-target", "nvptx64-cuda", "-mcpu", target, "-O", mode, "-fstrip"]
        output = Path(f"kernels.{target}.s").resolve()
        command = [sys.executable, "-m", "ziglang", "build-obj", "kernels.zig", *flags]
        subprocess.run([*command, "-fno-emit-bin", f"-femit-asm={output}"], check=True, cwd=HERE)
        text, source = output.read_bytes(), str(HERE / "kernels.zig")
        version = record.installed("ziglang")
        files.append(
            record.write(arguments.out, "kernels" + suffix, text, ROWS, version=version, flags=flags, source=source)
        )
    save(Manifest("zig", RECIPE, tuple(files)), arguments.out)


def run(algorithm: str, reference: str, *arguments: Argument, output: str = "out", tolerance: float = 0.0) -> Entry:
    """A launch over 60 items, whose count is the last argument."""
    tolerances = {output: (tolerance, tolerance)}
    return entry(algorithm, launch((2,), (32,), (*arguments, scalar("n", "uint32", 60)), tolerances, reference))


ROWS = {
    "saturated_sum": run(
        "saturating-add",
        "small.saturated_sum",
        array("x", "int16", 60, init="bits"),
        array("y", "int16", 60, init="bits"),
        array("out", "int16", 60),
    ),
    "sorting_network": run(
        "sorting-network", "discrete.sorted_rows", array("rows", "uint32", 60, 6, init="bits"), output="rows"
    ),
    "determinants": run(
        "determinant",
        "small.determinants",
        array("matrices", "float64", 60, 3, 3, init="normal"),
        array("out", "float64", 60),
        tolerance=1e-12,
    ),
    "unpack_colours": run(
        "unpack-colours", "small.colours", array("pixels", "uint16", 60, init="bits"), array("out", "uint8", 60, 3)
    ),
    "vector_clamp": run(
        "clamp", "small.clamped", array("x", "float32", 60, 4, init="normal"), array("out", "float32", 60, 4)
    ),
    "prime_tests": run(
        "primality",
        "small.primes",
        array("numbers", "uint32", 60, init="integers", low=0, high=400),
        array("out", "uint8", 60),
    ),
    "shared_histogram": run(
        "histogram-modulo", "small.histogram", array("x", "uint8", 60, init="bits"), array("out", "uint32", 16)
    ),
}


if __name__ == "__main__":
    main()
