"""Runs of the example kernels: shapes, and how far their results may be from the references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from pyptx import Tile

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Run:
    """One launch: inputs are normal numbers times `scale`; results must be within rtol and atol."""

    name: str
    shape: dict[str, int]
    rtol: float = 0.0
    atol: float = 0.0
    scale: float = 1.0


HALF = 2.0**-8
"""Half a unit in the last place of bf16."""
RUNS = [
    *(Run("vector_add", {"n": n}) for n in (1, 1023, 1024, 2050)),
    *(Run("transpose", {"m": m, "n": n}) for m, n in ((32, 32), (64, 96), (33, 70), (1, 5))),
    *(Run("rmsnorm", {"m": 3, "n": n}, rtol=2e-6) for n in (4, 1024, 1300)),
    *(Run("softmax", {"m": 3, "n": n}, rtol=2e-5, atol=1e-30, scale=20) for n in (4, 1024, 2500)),
    *(Run("histogram", {"n": n}) for n in (4, 5000)),
    *(Run("tma_copy", {"m": m, "n": n}) for m, n in ((64, 64), (100, 72))),
    Run("wgmma_tile", {}, atol=1e-4),
    Run("tcgen05_tile", {}, atol=1e-4),
    *(Run("mma_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3) for m, n, k in ((128, 128, 64), (128, 256, 320))),
    *(Run("hopper_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3)
      for m, n, k in ((256, 256, 64), (256, 256, 512), (300, 520, 200))),
    *(Run("tcgen05_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3) for m, n, k in ((256, 256, 128), (300, 520, 200))),
    *(Run("attention", {"h": h, "s": s}, 2 * HALF, 4e-3, 2) for h, s in ((1, 128), (2, 384))),
]  # fmt: skip


DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "u32": np.uint32}


def make_input(tile: Tile, shape: dict[str, int], scale: float, seed: int) -> Array:
    """Return an input of a tile's shape and type."""
    random, dims = np.random.default_rng(seed), tile.resolve_shape(shape)
    if tile.dtype.kind == "u":
        return random.integers(0, 1 << tile.dtype.bits, dims).astype(DTYPES[tile.dtype.name])
    return (random.standard_normal(dims) * scale).astype(DTYPES[tile.dtype.name])
