"""Tiles, grids, clusters, asynchronous copies."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def tile_sums(args: Args) -> Results:
    sums = args["x"].reshape(8, 8).sum(1) + np.arange(8)
    return {"y": np.repeat(sums, 8).astype(np.int32)}


def tile_scan(args: Args) -> Results:
    x = args["x"].reshape(2, 16)
    return {"y": (np.cumsum(x, 1) - x).ravel().astype(np.int32)}


def odd_count(args: Args) -> Results:
    return {"total": np.array([(args["x"] % 2).sum()], np.int32)}


def neighbour_sums(args: Args) -> Results:
    x = args["x"]
    for _ in range(3):
        x = np.roll(x, 1) + np.roll(x, -1)
    return {"x": x}


def swapped_halves(args: Args) -> Results:
    return {"y": np.roll(args["x"], 32)}


def reversed_rows(args: Args) -> Results:
    return {"y": args["x"][:, ::-1].copy()}


def column_sums(args: Args) -> Results:
    return {"y": args["x"].sum(0)}
