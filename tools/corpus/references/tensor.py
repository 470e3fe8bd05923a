"""Products on tensor cores whose operands are packed, sparse or scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def _nibbles(words: NDArray[Any]) -> NDArray[np.int64]:
    fields = (words[..., None].astype(np.int64) >> (4 * np.arange(8))) & 15
    return np.where(fields > 7, fields - 16, fields).reshape(len(words), -1)


def _bits(words: NDArray[Any]) -> NDArray[np.int64]:
    return ((words[..., None].astype(np.int64) >> np.arange(32)) & 1).reshape(len(words), -1)


def matmul_int4(args: Args) -> Results:
    return {"c": (_nibbles(args["a"]) @ _nibbles(args["bt"]).T).astype(np.int32)}


def and_popcount(args: Args) -> Results:
    return {"c": (_bits(args["a"]) @ _bits(args["bt"]).T).astype(np.int32)}


def xor_popcount(args: Args) -> Results:
    a, b = _bits(args["a"]), _bits(args["bt"])
    return {"c": (a @ (1 - b).T + (1 - a) @ b.T).astype(np.int32)}


def sparse_first_two(args: Args) -> Results:
    """A holds columns 0 and 1 of every four; the other two are zero."""
    rows = len(args["a"])
    dense = np.zeros((rows, 2 * args["a"].shape[1]))
    dense.reshape(rows, -1, 4)[:, :, :2] = args["a"].astype(float).reshape(rows, -1, 2)
    return {"c": (dense @ args["bt"].astype(float).T).astype(np.float32)}


def scaled_scores(args: Args) -> Results:
    return {"s": (args["q"].astype(float) @ args["kt"].astype(float).T / 4).astype(np.float32)}


def scaled_by_four(args: Args) -> Results:
    """The scale bytes of A and B are 128, which is 2."""
    return {"c": (4 * (args["a"].astype(float) @ args["bt"].astype(float).T)).astype(np.float32)}


def _fp4(words: NDArray[Any]) -> NDArray[np.float64]:
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    fields = ((words[..., None].astype(np.int64) >> (4 * np.arange(8))) & 15).reshape(len(words), -1)
    return np.where(fields > 7, -1.0, 1.0) * magnitudes[fields & 7]


def fp4_product(args: Args) -> Results:
    return {"c": (_fp4(args["a"]) @ _fp4(args["bt"]).T).astype(np.float32)}
