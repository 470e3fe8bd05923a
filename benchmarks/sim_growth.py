"""Measure how time and memory grow with the grid: `python benchmarks/sim_growth.py`.

Each line is a separate process: RMSNorm of a number of rows, or a Hopper GEMM of a number of tiles with K = 256, both
unchecked and with all checks. Memory is the peak beyond the process with its arrays: a batch of CTAs, a copy of the
output (written to the caller's arrays when the run succeeds), and with checks the state of each accessed byte of global
memory. The last line is the time of a first, small, checked run including the start of Python.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np

from benchmarks.ratios import Pairs, Round, interleave
from pyptx import sim

ROOT = Path(__file__).parents[1]
DEPTH, TILE = 256, 128 * 256
GRIDS = {"rmsnorm": (512, 1024, 2048, 4096, 8192), "gemm": (512, 1024, 2048, 4096)}
FIRST = """
import numpy as np, ml_dtypes
from examples.parts.example import find_example
a, b = (np.random.default_rng(0).standard_normal((128, 64)).astype(ml_dtypes.bfloat16) for _ in "ab")
c = find_example("hopper/cluster_gemm").make()(a, b)
np.testing.assert_allclose(c.astype("f4"), a.astype("f4") @ b.astype("f4").T, rtol=2e-2, atol=2e-2)
"""


def read_peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_rmsnorm(rows: int, check: str) -> tuple[int, float, float]:
    """Run RMSNorm; return its number of CTAs, the memory before the run, and its time."""
    kernels = import_module("benchmarks.sim")
    rng = np.random.default_rng(0)
    columns: int = kernels.COLUMNS
    x, w = rng.standard_normal((rows, columns), np.float32), rng.standard_normal(columns, np.float32)
    y = np.full_like(x, np.nan)
    before, start = read_peak_memory(), time.process_time()
    sim.run(kernels.make_rmsnorm(), grid=rows, block=kernels.THREADS, args=(x, w, y), check=check)
    elapsed = time.process_time() - start
    expected = x[-8:] / np.sqrt((x[-8:].astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y[-8:], expected, rtol=1e-5, atol=1e-6)
    return rows, before, elapsed


def run_gemm(size: int, check: str) -> tuple[int, float, float]:
    """Run a GEMM of size x size; return its number of CTAs, the memory before the run, and its time."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, DEPTH), np.float32).astype(ml_dtypes.bfloat16) for _ in "ab")
    kernel, c = (
        import_module("examples.parts.example").find_example("hopper/cluster_gemm").make(),
        np.full((size, size), np.nan, ml_dtypes.bfloat16),
    )
    before, start = read_peak_memory(), time.process_time()
    kernel.simulate(a, b, out=c, check=check)
    elapsed = time.process_time() - start
    expected = a[-64:].astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(c[-64:].astype(np.float32), expected, rtol=1e-2, atol=1e-1)
    return size * size // TILE, before, elapsed


def run_alone(*arguments: str) -> str:
    """Run one measurement in a new process, and return its output."""
    process = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    return process.stdout


def list_pairs() -> Pairs:
    """Compare a grid with four grids of a quarter of its CTAs."""
    runs = {
        "RMSNorm of 512 rows / four times 128": (run_rmsnorm, 512, 128),
        "GEMM of 1024² / four times 512²": (run_gemm, 1024, 512),
    }
    return {
        f"{name}, check={check}": partial(compare, *run, check)
        for check in ("none", "all")
        for name, run in runs.items()
    }


def compare(run: Callable[[int, str], object], large: int, small: int, check: str) -> Round:
    """Compare a large run with four small ones."""
    return interleave(lambda: run(large, check), lambda: [run(small, check) for _ in range(4)])


def main() -> None:
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) > 1:
        name, size, check = sys.argv[1], int(sys.argv[2]), sys.argv[3]
        ctas, before, elapsed = {"rmsnorm": run_rmsnorm, "gemm": run_gemm}[name](size, check)
        time_text = f"{elapsed:8.3f} s {elapsed / ctas * 1e6:7.0f} us/CTA"
        memory_text = f"{read_peak_memory() - before:6.0f} MB beyond {before:5.0f}"
        print(f"{name:8} {size:5} check={check:5}{ctas:6} CTAs {time_text} {memory_text}")
        return
    for check in ("none", "all"):
        for name, sizes in GRIDS.items():
            for size in sizes:
                print(run_alone(name, str(size), check), end="", flush=True)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST], check=True, cwd=ROOT)
    print(f"a Hopper GEMM of one tile, every check on, imports included: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
