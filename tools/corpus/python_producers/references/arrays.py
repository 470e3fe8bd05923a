"""Array functions whose arguments are only arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.python_producers.references import pointwise, products, rows

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def layernorm(args: Args) -> Outputs:
    return {"out": rows.layernorm({**args, "eps": 1e-5})["out"]}


def rmsnorm(args: Args) -> Outputs:
    return rows.rmsnorm({**args, "eps": 1e-5})


def attention(args: Args) -> Outputs:
    return products.attention({**args, "scale": 0.125})


def argmax(args: Args) -> Outputs:
    return {"out": args["x"].argmax(axis=-1).astype(np.int32)}


def column_sums(args: Args) -> Outputs:
    return {"out": args["x"].sum(axis=0, dtype=np.float64).astype(np.float32)}


def matmul_gelu(args: Args) -> Outputs:
    return pointwise.gelu({"x": products.matmul(args)["out"], "out": args["out"]})


def exponential(args: Args) -> Outputs:
    return {"out": np.exp(args["x"].astype(np.complex128)).astype(args["out"].dtype)}


def inverse_error(args: Args) -> Outputs:
    inverse = NormalDist().inv_cdf
    values = [inverse((1 + v) / 2) / math.sqrt(2) for v in args["x"].tolist()]
    return {"out": np.array(values, np.float32)}


def max_pool(args: Args) -> Outputs:
    height, width = args["out"].shape
    return {"out": args["x"].reshape(height, 2, width, 2).max(axis=(1, 3))}


def clamp_reverse(args: Args) -> Outputs:
    return {"out": np.clip(args["x"], np.float32(-0.5), np.float32(0.5))[::-1].copy()}


def power_iteration(args: Args) -> Outputs:
    v = args["x"].astype(np.float64)
    for _ in range(8):
        v = np.sqrt(v * v + 1) - 0.25 * v
    return {"out": v.astype(np.float32)}


def trigonometry(args: Args) -> Outputs:
    x = args["x"]
    return {"out": np.sin(x) * np.cosh(x) + np.arctan2(x, 2.0) + np.abs(x) ** 1.5}


def gradient(args: Args) -> Outputs:
    along, across = np.gradient(args["x"].astype(np.float64))
    return {"out": (along - across).astype(np.float32)}


def divisions(args: Args) -> Outputs:
    return {"out": args["x"] // args["y"] + args["x"] % args["y"]}
