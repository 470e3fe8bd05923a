"""Warps, clusters, bits, and copies with a small change on the way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def redux(args: Args) -> Outputs:
    warps = args["x"].reshape(-1, 32)
    rows = [warps.sum(axis=1), warps.min(axis=1), np.bitwise_and.reduce(warps, axis=1), (warps > 0).sum(axis=1)]
    return {"out": np.repeat(np.stack(rows, axis=1), 32, axis=0).astype(np.int32)}


def bit_fields(args: Args) -> Outputs:
    x = args["x"]
    width = np.array([word.bit_length() for word in x.tolist()])
    reversal = np.array([int(f"{word:032b}"[::-1], 2) for word in x.tolist()])
    rows = [np.bitwise_count(x), 32 - width, reversal, x.byteswap()]
    return {"out": np.stack(rows, axis=1).astype(np.uint32)}


def cluster_sum(args: Args) -> Outputs:
    x = args["x"].reshape(-1, 2, 32)
    return {"out": (x + x[:, ::-1]).reshape(-1)}


def cluster_exchange(args: Args) -> Outputs:
    return {"out": args["x"].reshape(-1, 2, 32)[:, ::-1].reshape(-1)}


def tripled(args: Args) -> Outputs:
    return {"out": args["x"] * np.float32(3)}


def to_fp8(args: Args) -> Outputs:
    return {"out": args["x"].astype(ml_dtypes.float8_e4m3fn)}


def polynomial(args: Args) -> Outputs:
    v = args["x"]
    return {"out": ((0.25 * v - 1.5) * v + 2) * v + np.sqrt(v) + np.sin(v)}


def lower_bound(args: Args) -> Outputs:
    keys: NDArray[np.int32] = args["keys"]
    queries: NDArray[np.int32] = args["queries"]
    return {"out": np.searchsorted(keys, queries).astype(np.int32)}


def plus_one(args: Args) -> Outputs:
    return {"out": args["x"] + np.float32(1)}


def add_plus_one(args: Args) -> Outputs:
    return {"out": args["out"] + (args["x"] + np.float32(1))}
