"""Votes, matches, reductions and shuffles of a warp."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def _mask(lanes: list[bool]) -> int:
    return sum(1 << lane for lane, on in enumerate(lanes) if on)


def votes(args: Args) -> Results:
    x, y = args["x"].reshape(2, 32), np.zeros((2, 32, 4), np.uint32)
    for warp in range(2):
        y[warp] = [int((x[warp] == 3).any()), 1, _mask([bool(v & 1) for v in x[warp]]), 32]
    return {"y": y.reshape(64, 4)}


def matches(args: Args) -> Results:
    columns = [[_mask([bool(w == v) for w in args[name]]) for v in args[name]] for name in "xz"]
    everyone = [(1 << 32) - 1] * 32
    return {"y": np.array([*columns, everyone, [1] * 32], np.uint32).T.copy()}


def reductions(args: Args) -> Results:
    x = args["x"]
    results = [np.bitwise_or, np.bitwise_and, np.bitwise_xor]
    y = [x.sum(dtype=np.int32), *(f.reduce(x) for f in results), x.min(), x.max(), 0, 0]
    return {"y": np.array(y, np.int32)}


def shuffles(args: Args) -> Results:
    x, lane = args["x"], np.arange(32)
    up = np.where(lane % 16 >= 2, lane - 2, lane)
    down = np.where(lane % 8 + 5 < 8, lane + 5, lane)
    y = np.stack([x[lane // 8 * 8 + 3], x[up], x[down], x[lane ^ 9]], axis=1)
    return {"y": y, "z": args["d"][lane ^ 1]}


def half_sums(args: Args) -> Results:
    x = args["x"]
    return {"y": np.repeat([x[:16].sum(), x[16:].max()], 16).astype(np.int32)}


def block_votes(args: Args) -> Results:
    x = args["x"]
    return {"y": np.array([(x < 25).sum(), (x == 49).any(), (x < 50).all()], np.int32)}
