"""Sorting, merging, searching, selecting."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def ascending(args: Args) -> Results:
    return {"keys": np.sort(args["keys"])}


def rows_ascending(args: Args) -> Results:
    return {"keys": np.sort(args["keys"], axis=1)}


def ascending_copy(args: Args) -> Results:
    return {"sorted": np.sort(args["keys"])}


def merged(args: Args) -> Results:
    return {"c": np.sort(np.concatenate([args["a"], args["b"]]))}


def lower_bound(args: Args) -> Results:
    table: NDArray[np.float32] = args["table"][: args["n"]]
    queries: NDArray[np.float32] = args["q"]
    return {"where": np.searchsorted(table, queries).astype(np.int32)}


def kth(args: Args) -> Results:
    return {"out": np.sort(args["x"])[args["k"] : args["k"] + 1]}


def top_four(args: Args) -> Results:
    return {"y": -np.sort(-args["x"], axis=1)[:, :4]}
