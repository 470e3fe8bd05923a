"""The image pipelines of Halide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def blur(args: Args) -> Outputs:
    image = args["image"]
    return {"result": (image[:, :-2] + image[:, 1:-1] + image[:, 2:]) * np.float32(0.25)}


def matmul(args: Args) -> Outputs:
    return {"result": (args["a"].astype(np.float64) @ args["b"]).astype(np.float32)}


def erode(args: Args) -> Outputs:
    return {"result": np.lib.stride_tricks.sliding_window_view(args["image"], (3, 3)).min(axis=(2, 3))}


def downsample(args: Args) -> Outputs:
    image = args["image"].astype(np.int32)
    total = image[::2, ::2] + image[1::2, ::2] + image[::2, 1::2] + image[1::2, 1::2]
    return {"result": ((total + 2) >> 2).astype(np.uint8)}


def blend(args: Args) -> Outputs:
    a, b, mask = (args[name].astype(np.int32) for name in ("a", "b", "mask"))
    return {"result": ((a * (255 - mask) + b * mask + 127) // 255).astype(np.uint8)}
