"""Fractals, particles and geometry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def mandelbrot(args: Args) -> Outputs:
    width, height = int(args["width"]), int(args["height"])
    at = np.arange(width * height)
    cx = np.float32(-2) + np.float32(3) * (at % width).astype(np.float32) / np.float32(width)
    cy = np.float32(-1) + np.float32(2) * (at // width).astype(np.float32) / np.float32(height)
    zx, zy = np.zeros_like(cx), np.zeros_like(cy)
    count = np.zeros(at.shape, np.int32)
    for _ in range(int(args["limit"])):
        inside = zx * zx + zy * zy <= 4
        count += inside
        zx, zy = np.where(inside, zx * zx - zy * zy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    return {"out": count.reshape(args["out"].shape)}
