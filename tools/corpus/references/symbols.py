"""What the kernels of `globals.cu` read from initialized symbols."""

from __future__ import annotations

import numpy as np

from tools.corpus.references import Args, Results


def globals_read(_args: Args) -> Results:
    single = np.float32
    y = [
        84.0,
        float(single(-2.5) * single(1e-20)),
        np.pi,
        0xFEDCBA98 + 1.0,
        -103.0,
        float(single(ord('"')) + single(0.4)),
        2.5 * 300 + 2,
        133.0,
    ]
    return {"y": np.array(y)}


def globals_written(_args: Args) -> Results:
    contents = np.array([8, 17, 34, 67])
    return {"y": (contents[::-1] + 200 + (np.arange(4) ^ 1)).astype(np.int32)}


def shared_pool(args: Args) -> Results:
    t = np.arange(32)
    return {"y": (31 - t) * 0.5 + (t ^ 3) * int(args["n"])}


def row_sums(args: Args) -> Results:
    return {"y": args["x"].sum(1).astype(args["y"].dtype)}
