"""The sizes and the parameters of a Llama block, as NumPy arrays. Knows no kernel and no other library."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from examples.parts.example import Array

EPSILON = 1e-5
"""Added to the mean square in RMSNorm."""


@dataclass(frozen=True)
class Sizes:
    """Of a block. The defaults are small enough for the simulator."""

    heads: int = 2
    head: int = 64
    """Values of a token in each head: 64 or 128."""
    inner: int = 320
    """Values of a token between the gated projections and the last one."""
    length: int = 40
    """Tokens of a sequence, at most."""

    @property
    def hidden(self) -> int:
        """Values of a token."""
        return self.heads * self.head

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters."""
        square, wide = (self.hidden, self.hidden), (self.inner, self.hidden)
        return {
            "first_norm": (self.hidden,), "query": square, "key": square, "value": square, "out": square,
            "second_norm": (self.hidden,), "gate": wide, "up": wide, "down": wide[::-1],
        }  # fmt: skip


def draw_parameters(sizes: Sizes, seed: int = 0) -> dict[str, Array]:
    """Return the parameters at the start of training, in f32: ones, and projections that keep the size of values."""
    random = np.random.default_rng(seed)
    return {
        name: np.ones(shape, np.float32)
        if len(shape) == 1
        else (random.standard_normal(shape) / math.sqrt(shape[1])).astype(np.float32)
        for name, shape in sizes.shapes.items()
    }


def draw_batch(sizes: Sizes, seed: int = 0) -> tuple[Array, Array]:
    """Return two sequences as inputs, and what a block should make of them."""
    random = np.random.default_rng(seed)
    x, target = random.standard_normal((2, 2, sizes.length, sizes.hidden)).astype(np.float32)
    return x, target
