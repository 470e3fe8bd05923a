"""What bit-exact tensor-core sums cost against float32 ones, from codes to sums, on one 256x256x256 product."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pyptx.sim.numerics.dot import dot, operand
from pyptx.sim.numerics.fast_dot import fast_dot
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.rounding import encode
from pyptx.sim.numerics.tensor_core import rule

SIZE = 256
CASES = (
    ("wgmma", 90, "bf16"),
    ("mma", 80, "bf16"),
    ("wgmma", 90, "f16"),
    ("wgmma", 90, "e4m3"),
    ("tcgen05", 100, "e4m3"),
)


def main() -> None:
    for instruction, sm, name in CASES:
        exactly, plainly = times(instruction, sm, name)
        print(
            f"{instruction} sm_{sm} {name}: hardware {exactly:.2f} ms, float32 {plainly:.2f} ms, "
            f"ratio {exactly / plainly:.1f}"
        )


def times(instruction: str, sm: int, name: str) -> tuple[float, float]:
    """Return the milliseconds of both, the best of many."""
    generator = np.random.default_rng(0)
    a, b = (encode(generator.standard_normal((SIZE, SIZE)), name) for _ in range(2))
    c, how = np.zeros((SIZE, SIZE), np.float32), rule(instruction, sm, name)
    hardware = _best(lambda: dot(operand(decode(a, name), name), operand(decode(b, name), name), c, how))
    return hardware, _best(lambda: fast_dot(decode(a, name).astype(np.float32), decode(b, name).astype(np.float32), c))


def _best(work: Callable[[], object], repeats: int = 40) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


if __name__ == "__main__":
    main()
