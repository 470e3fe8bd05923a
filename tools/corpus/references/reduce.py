"""Reductions."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def block_sums(args: Args) -> Results:
    return {"out": args["x"].astype(float).reshape(len(args["out"]), -1).sum(1).astype(np.float32)}


def total(args: Args) -> Results:
    return {"out": args["x"].sum(dtype=float, keepdims=True).astype(args["out"].dtype)}


def warp_max(args: Args) -> Results:
    return {"out": np.repeat(args["x"].reshape(-1, 32).max(1), 32)}


def argmin(args: Args) -> Results:
    return {"out": np.array([args["x"].argmin()], np.int32)}


def dot(args: Args) -> Results:
    return {"out": np.array([args["x"] @ args["y"]])}


def variance(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"out": np.array([x.mean(), x.var()], np.float32)}


def count_below(args: Args) -> Results:
    return {"out": np.array([(args["x"] < args["limit"]).sum()], np.int32)}


def row_sums(args: Args) -> Results:
    return {"out": args["x"].sum(1, dtype=float).astype(np.float32)}


def column_sums(args: Args) -> Results:
    return {"out": args["x"].sum(0, dtype=float).astype(np.float32)}


def strided_sums(args: Args) -> Results:
    return {"out": args["x"].reshape(-1, 32).sum(0, dtype=float).astype(np.float32)}


def argmax(args: Args) -> Results:
    return {"out": np.array([args["x"].argmax()], np.int32)}
