"""What threads that hand work to one another compute."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def split_barrier(args: Args) -> Results:
    v = args["x"]
    for _ in range(args["rounds"]):
        v = v * np.float32(0.5) + np.float32(0.25) * (np.roll(v, -1, 1) + np.roll(v, 1, 1))
    return {"y": v}


def aggregated(args: Args) -> Results:
    return {"count": np.array([(args["x"] % 3 == 1).sum()], np.int32)}


def running_sums(args: Args) -> Results:
    return {"y": np.cumsum(args["x"]).astype(np.int32)}


def tma_scale(args: Args) -> Results:
    return {"y": args["x"] * np.float32(args["f"])}


def bulk_ring(args: Args) -> Results:
    return {"y": args["y"] + args["x"].sum((0, 1))}


def halo(args: Args) -> Results:
    v = args["x"].astype(np.int64)
    for _ in range(args["rounds"]):
        v = (np.roll(v, 1) + 2 * v + np.roll(v, -1)) & 0xFFFF
    return {"y": v.astype(np.int32)}


def votes(args: Args) -> Results:
    counts = [np.bincount((args["x"].ravel() + cta) & 7, minlength=8) for cta in range(4)]
    return {"y": np.stack(counts).astype(np.uint32)}


def swap_tiles(args: Args) -> Results:
    return {"y": args["x"][::-1, ::-1].copy()}


def shared_tiles(args: Args) -> Results:
    tiles = args["x"].reshape(-1, 2, 8, 32)
    sums = [(tiles[:, 1 - rank] - np.float32(0.5) * tiles[:, rank]).sum(0) for rank in range(2)]
    return {"y": np.stack(sums)}


def ticket_lock(args: Args) -> Results:
    return {"data": np.array([18, 324], np.int32), "lock": np.array([18, 18], np.uint32)}


def sequence_lock(args: Args) -> Results:
    return {"y": np.array([0, 1, 1, 1], np.int32), "data": np.array([5, 25], np.int32)}
