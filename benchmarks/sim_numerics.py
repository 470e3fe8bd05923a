"""Compare the time of bit-exact tensor-core sums and float32 sums on one 256x256x256 product, including decoding."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.ratios import Pairs, Round, interleave, show
from pyptx.sim.numerics.dot import dot, prepare_operand
from pyptx.sim.numerics.fast_dot import fast_dot
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.rounding import encode
from pyptx.sim.numerics.tensor_core import select_rule

SIZE = 256
CASES = (
    ("wgmma", 90, "bf16"),
    ("mma", 80, "bf16"),
    ("wgmma", 90, "f16"),
    ("wgmma", 90, "e4m3"),
    ("tcgen05", 100, "e4m3"),
)


def list_pairs() -> Pairs:
    """Compare hardware sums with float32 sums."""
    return {
        f"{instruction} sm_{sm} {name}: hardware sums / float32 sums": partial(compare_sums, instruction, sm, name)
        for instruction, sm, name in CASES
    }


def compare_sums(instruction: str, sm: int, name: str) -> Round:
    """Compare both products of the same random values."""
    generator = np.random.default_rng(0)
    a, b = (encode(generator.standard_normal((SIZE, SIZE)), name) for _ in range(2))
    c, rule = np.zeros((SIZE, SIZE), np.float32), select_rule(instruction, sm, name)
    return interleave(
        lambda: dot(prepare_operand(decode(a, name), name), prepare_operand(decode(b, name), name), c, rule),
        lambda: fast_dot(decode(a, name).astype(np.float32), decode(b, name).astype(np.float32), c),
    )


if __name__ == "__main__":
    show(list_pairs(), sys.argv[1:])
