"""Graphs."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def bfs_levels(args: Args) -> Results:
    start, edge, level = args["start"], args["edge"], args["level"].copy()
    level[0], frontier, depth = 0, [0], 0
    while frontier:
        depth += 1
        frontier_set = {int(w) for v in frontier for w in edge[start[v] : start[v + 1]] if level[w] < 0}
        frontier = sorted(frontier_set)
        level[frontier] = depth
    return {"level": level}


def pagerank_step(args: Args) -> Results:
    start, edge, following = args["start"], args["edge"], np.full(64, 0.15 / 64)
    for v in range(64):
        targets = edge[start[v] : start[v + 1]]
        np.add.at(following, targets, 0.85 * float(args["rank"][v]) / len(targets))
    return {"next": following.astype(np.float32)}


def components(args: Args) -> Results:
    label = args["parent"].copy()
    for _ in range(len(label)):
        for a, b in zip(args["a"], args["b"], strict=True):
            label[a] = label[b] = min(label[a], label[b])
    return {"parent": label}


def bellman_ford(args: Args) -> Results:
    distance = args["distance"].copy()
    for _ in range(len(distance)):
        np.minimum.at(distance, args["to"], distance[args["from"]] + args["weight"])
    return {"distance": distance}


def floyd_warshall(args: Args) -> Results:
    d = args["d"].copy()
    for k in range(len(d)):
        d = np.minimum(d, d[:, k : k + 1] + d[k])
    return {"d": d}


def triangles(args: Args) -> Results:
    m = (args["row"][:, None].astype(np.int64) >> np.arange(32)) & 1
    return {"total": np.array([(m * (m @ m.T)).sum()], np.uint32)}


def closure(args: Args) -> Results:
    m = ((args["row"][:, None].astype(np.int64) >> np.arange(32)) & 1).astype(bool)
    for _ in range(32):
        m = m | (m.astype(int) @ m.astype(int) > 0)
    return {"row": (m.astype(np.int64) << np.arange(32)).sum(1).astype(np.uint32)}


def list_ranks(args: Args) -> Results:
    rank = np.zeros(64, np.int32)
    for v in range(64):
        node = v
        while args["next"][node] != node:
            node = args["next"][node]
            rank[v] += 1
    return {"rank": rank}


def local_maxima(args: Args) -> Results:
    maxima = 0
    for v in range(32):
        neighbours = [w for w in range(32) if int(args["row"][v]) >> w & 1]
        if all(args["weight"][v] > args["weight"][w] for w in neighbours):
            maxima |= 1 << v
    return {"chosen": np.array([maxima], np.uint32)}
