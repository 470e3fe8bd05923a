"""The kernels of Zig, Mojo, Gluon and Halide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def saturated_sum(args: Args) -> Outputs:
    total = args["x"].astype(np.int32) + args["y"]
    return {"out": np.clip(total, -(1 << 15), (1 << 15) - 1).astype(np.int16)}


def determinants(args: Args) -> Outputs:
    return {"out": np.linalg.det(args["matrices"])}


def colours(args: Args) -> Outputs:
    pixel = args["pixels"]
    red, green, blue = pixel >> 11, pixel >> 5 & 63, pixel & 31
    channels = red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2
    return {"out": np.stack(channels, axis=1).astype(np.uint8)}


def clamped(args: Args) -> Outputs:
    clip = np.clip(args["x"], np.float32(-0.5), np.float32(0.75))
    return {"out": clip * np.array([1, 2, 4, 8], np.float32)}


def primes(args: Args) -> Outputs:
    answers = [n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1)) for n in args["numbers"].tolist()]
    return {"out": np.array(answers, np.uint8)}


def histogram(args: Args) -> Outputs:
    return {"out": args["out"] + np.bincount(args["x"] % 16, minlength=16).astype(np.uint32)}


def sigmoid(args: Args) -> Outputs:
    return {"result": (1 / (1 + np.exp(-args["x"].astype(np.float64)))).astype(np.float32)}


def warp_sums(args: Args) -> Outputs:
    total = args["x"].reshape(-1, 32).sum(axis=1, dtype=np.float64)
    return {"result": np.repeat(total, 32).astype(np.float32)}


def reverse(args: Args) -> Outputs:
    return {"result": args["x"][::-1].copy()}


def matmul(args: Args) -> Outputs:
    return {"result": args["a"] @ args["b"]}


def triangle_numbers(args: Args) -> Outputs:
    steps: list[int] = []
    for value in args["x"].tolist():
        count = 0
        while value > 0:
            count += 1
            value -= count
        steps.append(count)
    return {"result": np.array(steps, np.int32)}


def doubled(args: Args) -> Outputs:
    return {"out": args["x"] * np.float32(2)}


def cubic(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    return {"out": (x**3 + x - x * x).astype(np.float32)}
