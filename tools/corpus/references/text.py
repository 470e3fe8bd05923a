"""Strings, histograms, dynamic programming."""

from __future__ import annotations

import fnmatch

import numpy as np

from tools.corpus.references import Args, Results


def substring_count(args: Args) -> Results:
    text, pattern = args["text"].tobytes(), args["pattern"].tobytes()
    count = sum(text.startswith(pattern, i) for i in range(len(text)))
    return {"count": np.array([count], np.int32)}


def edit_distance(args: Args) -> Results:
    distances: list[int] = []
    for a, b in zip(args["a"], args["b"], strict=True):
        row = list(range(len(b) + 1))
        for i, x in enumerate(a):
            above = row
            row = [i + 1]
            for j, y in enumerate(b):
                row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + int(x != y)))
        distances.append(row[-1])
    return {"d": np.array(distances, np.int32)}


def common_subsequence(args: Args) -> Results:
    lengths: list[int] = []
    for a, b in zip(args["a"], args["b"], strict=True):
        table = np.zeros((len(a) + 1, len(b) + 1), int)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
        lengths.append(int(table[-1, -1]))
    return {"n": np.array(lengths, np.int32)}


def histogram(args: Args) -> Results:
    bins = args["bins"]
    return {"bins": np.bincount(args["x"].ravel(), minlength=len(bins)).astype(bins.dtype)}


def word_count(args: Args) -> Results:
    return {"words": np.array([len(args["text"].tobytes().split())], np.int32)}


def upper_case(args: Args) -> Results:
    return {"y": np.frombuffer(args["x"].tobytes().upper(), np.uint8)}


def wildcard_match(args: Args) -> Results:
    pattern = args["pattern"].tobytes().decode()
    hits = [fnmatch.fnmatchcase(row.tobytes().decode(), pattern) for row in args["text"]]
    return {"hit": np.array(hits, np.int32)}


def code_points(args: Args) -> Results:
    return {"n": np.array([((args["x"] & 0xC0) != 0x80).sum()], np.int32)}


def decimals(args: Args) -> Results:
    return {"value": np.array([int(row.tobytes()) for row in args["text"]], np.int32)}


def knapsack(args: Args) -> Results:
    best = np.zeros(64, np.int32)
    for weight, value in zip(args["weight"], args["value"], strict=True):
        candidates = best.copy()
        candidates[weight:] = best[: 64 - weight] + value
        best = np.maximum(best, candidates)
    return {"best": best}


def bracket_depth(args: Args) -> Results:
    return {"depth": np.cumsum(np.where(args["text"] == ord("("), 1, -1)).astype(np.int32)}
