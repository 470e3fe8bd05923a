"""Bulk copies, tensor maps, clusters, barriers."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def doubled(args: Args) -> Results:
    return {"y": 2 * args["x"]}


def column_sums(args: Args) -> Results:
    return {"y": args["x"].sum(0).astype(np.int32)}


def three_times_two_rows(args: Args) -> Results:
    y = args["y"].astype(float)
    y[2:6] += 3 * np.arange(64.0).reshape(4, 16)
    return {"y": y.astype(np.float32)}


def sum_of_rows(args: Args) -> Results:
    return {"y": np.tile(args["x"].sum(0), (2, 1))}


def negated_product(args: Args) -> Results:
    return {"c": -(args["a"].astype(float) @ args["bt"].astype(float).T).astype(np.float32)}


def swapped_plus_sum(args: Args) -> Results:
    x = args["x"].reshape(2, 32)[::-1]
    return {"y": (x + x.sum(1, keepdims=True)).ravel().astype(np.int32)}


def elected(_args: Args) -> Results:
    return {"y": np.array([101, 133, 101, 133], np.int32)}


def handed_over(args: Args) -> Results:
    x = args["x"]
    y = np.concatenate([x[:64] + 1, x[:32] + x[32:64]])
    return {"y": (y + (x > 50).sum() * 1000 + (x > 50).any()).astype(np.int32)}


def float_reductions(args: Args) -> Results:
    x, size = args["x"], np.abs(args["x"])
    return {"y": np.array([x.min(), x.max(), size.min(), size.max()], np.float32)}


def three_inputs(args: Args) -> Results:
    a, b, c = args["a"], args["b"], args["c"]
    smallest = np.minimum(np.minimum(a, b), c)
    largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.abs(c))
    return {"y": np.stack([smallest, largest, b + 2, c + 1])}


def barrier_objects(_args: Args) -> Results:
    return {"y": np.full(64, 2, np.uint32)}


def cluster_identity(_args: Args) -> Results:
    rows = [[cta % 2, cta // 2, 2, cta % 2, 2, 1 - cta % 2] for cta in range(4)]
    return {"y": np.array(rows, np.uint32)}


def address_spaces(_args: Args) -> Results:
    return {"y": np.full(32, 0b111111, np.uint32)}
