"""Atomics, orders, copies, barriers."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def atomic_integers(args: Args) -> Results:
    x, y = args["x"], args["y"].copy()
    y[:6] = [
        y[0] + x.sum(),
        min(y[1], x.min()),
        max(y[2], x.max()),
        y[3] | np.bitwise_or.reduce(x & 0xFF),
        y[4] & np.bitwise_and.reduce(x | 0xF0),
        y[5] ^ np.bitwise_xor.reduce(x),
    ]
    y[6] = (y[6] + 64) % 10
    y[7] = (y[7] - 64) % 7
    return {"y": y}


def atomic_wide(args: Args) -> Results:
    x = args["x"]
    totals = [x.sum(), x.min(), x.max(), np.bitwise_xor.reduce(x), np.bitwise_or.reduce(x)]
    return {"y": np.array(totals, np.uint64), "d": np.array([x.astype(float).sum()])}


def float_maximum(args: Args) -> Results:
    return {"y": args["x"].max(keepdims=True)}


def scoped_counts(_args: Args) -> Results:
    return {"y": np.array([64, 128, 31, 31, -1, 192], np.int32)}


def doubled(args: Args) -> Results:
    return {"y": 2 * args["x"]}


def six_copies(args: Args) -> Results:
    return {"y": np.tile(args["x"], (6, 1))}


def ticket_total(_args: Args) -> Results:
    return {"total": np.array([15], np.int32)}


def rotated_sum(args: Args) -> Results:
    return {"y": args["x"] * 10 + np.roll(args["x"], -1)}


def column_totals(args: Args) -> Results:
    return {"y": args["x"].sum(0)}


def copied(args: Args) -> Results:
    return {"y": args["x"].reshape(args["y"].shape)}


def seven_copies(args: Args) -> Results:
    return {"y": np.tile(args["x"], (7, 1))}


def atomic_forms(_args: Args) -> Results:
    lanes = np.arange(32)
    shared = lanes.sum() + np.bitwise_xor.reduce(lanes)
    wide = int(lanes.sum()) << 30
    y = [64, 31, (1 << 32) - 1, 32 % 10, 96, (1 << 32) - 31, 5, 7, 77, shared, wide & 0xFFFFFFFF, wide >> 32]
    return {"y": np.array(y, np.uint32), "h": np.full(2, 32, np.float16)}


def copied_twice(args: Args) -> Results:
    return {"y": args["x"], "z": args["x"]}


def half_cleared(args: Args) -> Results:
    return {"y": np.where(np.arange(64) < 32, 0, args["x"]).astype(np.uint32)}
