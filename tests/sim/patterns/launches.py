"""Arguments of a run, with the expected contents of its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Launch:
    """Arguments of one run, and the expected contents of its arrays."""

    args: list[Any]
    outputs: list[tuple[Array, Array]]


def words(random: np.random.Generator, *shape: int) -> Array:
    return random.integers(1, 1 << 30, shape).astype("u4")
