"""Clustering, neighbors, trees, quantization."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def kmeans(args: Args) -> Results:
    point, centre = args["point"].astype(float), args["centre"].astype(float)
    nearest = ((point[:, None] - centre) ** 2).sum(2).argmin(1)
    total = np.stack([point[nearest == k].sum(0) for k in range(4)])
    return {"sum": total.astype(np.float32), "count": np.bincount(nearest, minlength=4).astype(np.int32)}


def nearest(args: Args) -> Results:
    distance = ((args["q"][:, None].astype(float) - args["base"]) ** 2).sum(2)
    return {"index": distance.argmin(1).astype(np.int32)}


def decision_tree(args: Args) -> Results:
    rows, node = np.arange(64), np.zeros(64, int)
    for _ in range(3):
        node = 2 * node + 1 + (args["x"][rows, args["feature"][node]] > args["threshold"][node])
    return {"leaf": (node - 7).astype(np.int32)}


def quantise(args: Args) -> Results:
    x = args["x"].astype(float)
    top = np.abs(x).max(1, keepdims=True)
    return {"q": np.rint(x * 127 / top).astype(np.int8), "scale": (top[:, 0] / 127).astype(np.float32)}


def dequantise_int4(args: Args) -> Results:
    nibbles: NDArray[np.int64] = (args["packed"][:, None].astype(np.int64) >> (4 * np.arange(8))) & 15
    signed = np.where(nibbles > 7, nibbles - 16, nibbles)
    return {"y": (signed * args["scale"][:, None].astype(float)).astype(np.float32)}


def hamming(args: Args) -> Results:
    rows = [[(int(a) ^ int(b)).bit_count() for b in args["b"]] for a in args["a"]]
    return {"d": np.array(rows, np.int32)}


def cosine(args: Args) -> Results:
    a, b = args["a"].astype(float), args["b"].astype(float)
    return {"s": ((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1))).astype(np.float32)}


def logistic(args: Args) -> Results:
    x = args["x"].astype(float)
    error = 1 / (1 + np.exp(-(x @ args["w"]))) - args["label"]
    return {"g": (error @ x).astype(np.float32)}


def viterbi(args: Args) -> Results:
    score, path = args["emit"][0].astype(float), [np.arange(8)]
    for row in args["emit"][1:].astype(float):
        options = score[:, None] + args["move"]
        path.append(options.argmax(0))
        score = options.max(0) + row
    return {"score": score.astype(np.float32), "path": np.stack(path).astype(np.int32)}
