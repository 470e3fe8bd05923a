"""References that several examples share, in higher precision than the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from examples.parts.example import Array


def compute_product(a: Array, b: Array, **parameters: Any) -> Array:
    """Return a @ b.T in f32, whatever the kernel's template parameters."""
    del parameters
    return a.astype(np.float32) @ b.astype(np.float32).T
