"""Prefix sums and what is built from them."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def inclusive(args: Args) -> Results:
    return {"y": np.cumsum(args["x"], dtype=args["y"].dtype)}


def exclusive(args: Args) -> Results:
    return {"y": (np.cumsum(args["x"]) - args["x"]).astype(args["y"].dtype)}


def per_warp(args: Args) -> Results:
    return {"y": np.cumsum(args["x"].reshape(-1, 32), axis=1, dtype=np.int32).ravel()}


def rows(args: Args) -> Results:
    return {"y": np.cumsum(args["x"].astype(float), axis=1).astype(np.float32)}


def segmented(args: Args) -> Results:
    y = args["x"].copy()
    for i in range(1, len(y)):
        if not args["head"][i]:
            y[i] += y[i - 1]
    return {"y": y}


def compact_positive(args: Args) -> Results:
    positives = args["x"][args["x"] > 0]
    y = np.zeros_like(args["y"])
    y[: len(positives)] = positives
    return {"y": y, "count": np.array([len(positives)], np.int32)}


def run_lengths(args: Args) -> Results:
    values, counts = np.unique(args["x"], return_counts=True)
    value, length = np.zeros_like(args["value"]), np.zeros_like(args["length"])
    value[: len(values)], length[: len(values)] = values, counts
    return {"value": value, "length": length, "runs": np.array([len(values)], np.int32)}


def heads_and_steps(args: Args) -> Results:
    x = args["x"]
    step = np.diff(x, prepend=x[:1])
    heads = step != 0
    heads[0] = True
    return {"heads": heads.astype(np.int32), "step": step}


def of_eights(args: Args) -> Results:
    x = args["x"].reshape(-1, 8)
    return {"y": (np.cumsum(x, 1) - x).ravel()}
