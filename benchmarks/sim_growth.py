"""How time and memory grow with the grid: `python benchmarks/sim_growth.py`.

Every line is a process of its own: RMSNorm of so many rows, a Hopper GEMM of so many tiles with K = 256, without checks
and with all of them. Memory is what the run needs beyond the process with its arrays, at most: a batch of CTAs, and
a copy of the output, which callers' arrays get when the run has succeeded; of checks also what they know of each byte
of global memory that was touched. Then what a first, small, checked run takes from the start of Python.
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
from examples.kernels import hopper_gemm
a, b = (np.random.default_rng(0).standard_normal((128, 64)).astype(ml_dtypes.bfloat16) for _ in "ab")
c = hopper_gemm.make()(a, b)
np.testing.assert_allclose(c.astype("f4"), a.astype("f4") @ b.astype("f4").T, rtol=2e-2, atol=2e-2)
"""


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def rmsnorm(rows: int, check: str) -> tuple[int, float, float]:
    """Return the number of CTAs of a run over rows, the memory before it, and its time."""
    kernels = import_module("benchmarks.sim")
    rng = np.random.default_rng(0)
    columns: int = kernels.COLUMNS
    x, w = rng.standard_normal((rows, columns), np.float32), rng.standard_normal(columns, np.float32)
    y = np.full_like(x, np.nan)
    before, started = peak(), time.process_time()
    sim.run(kernels.rmsnorm(), grid=rows, block=kernels.THREADS, args=(x, w, y), check=check)
    taken = time.process_time() - started
    want = x[-8:] / np.sqrt((x[-8:].astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y[-8:], want, rtol=1e-5, atol=1e-6)
    return rows, before, taken


def gemm(size: int, check: str) -> tuple[int, float, float]:
    """Return the number of CTAs of a product of size x size, the memory before it, and its time."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((size, DEPTH), np.float32).astype(ml_dtypes.bfloat16) for _ in "ab")
    kernel, c = import_module("examples.kernels.hopper_gemm").make(), np.full((size, size), np.nan, ml_dtypes.bfloat16)
    before, started = peak(), time.process_time()
    kernel.simulate(a, b, out=c, check=check)
    taken = time.process_time() - started
    want = a[-64:].astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_allclose(c[-64:].astype(np.float32), want, rtol=1e-2, atol=1e-1)
    return size * size // TILE, before, taken


def alone(*given: str) -> str:
    """Return what this file prints when it runs one point."""
    made = subprocess.run([sys.executable, __file__, *given], check=True, capture_output=True, text=True)
    return made.stdout


def pairs() -> Pairs:
    """Return a grid against four grids of a quarter of its CTAs."""
    runs = {
        "RMSNorm of 512 rows / four times 128": (rmsnorm, 512, 128),
        "GEMM of 1024² / four times 512²": (gemm, 1024, 512),
    }
    return {
        f"{name}, check={check}": partial(compare, *run, check)
        for check in ("none", "all")
        for name, run in runs.items()
    }


def compare(run: Callable[[int, str], object], large: int, small: int, check: str) -> Round:
    """Return a large run, and four small ones."""
    return interleave(lambda: run(large, check), lambda: [run(small, check) for _ in range(4)])


def main() -> None:
    sys.path.insert(0, str(ROOT))
    if len(sys.argv) > 1:
        name, size, check = sys.argv[1], int(sys.argv[2]), sys.argv[3]
        ctas, before, taken = {"rmsnorm": rmsnorm, "gemm": gemm}[name](size, check)
        print(
            f"{name:8} {size:5} check={check:5}{ctas:6} CTAs {taken:8.3f} s {taken / ctas * 1e6:7.0f} us/CTA", end=" "
        )
        print(f"{peak() - before:6.0f} MB beyond {before:5.0f}")
        return
    for check in ("none", "all"):
        for name, sizes in GRIDS.items():
            for size in sizes:
                print(alone(name, str(size), check), end="", flush=True)
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST], check=True, cwd=ROOT)
    print(f"a Hopper GEMM of one tile, every check on, imports included: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
