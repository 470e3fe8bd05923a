"""Element-wise kernels, gathers and scatters, random numbers, stencils on small grids."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def vector_add(args: Args) -> Outputs:
    return {"out": args["x"] + args["y"]}


def axpy(args: Args) -> Outputs:
    return {"y": (args["y"] + float(args["alpha"]) * args["x"].astype(np.float64)).astype(args["y"].dtype)}


def swiglu(args: Args) -> Outputs:
    gate = args["gate"].astype(np.float64)
    return {"out": (gate / (1 + np.exp(-gate)) * args["up"].astype(np.float64)).astype(args["out"].dtype)}


def gelu(args: Args) -> Outputs:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    x = args["x"].astype(np.float64)
    return {"out": (0.5 * x * (1 + erf(x * math.sqrt(0.5)))).astype(args["out"].dtype)}


def gather_rows(args: Args) -> Outputs:
    return {"out": args["table"][args["index"]]}


def scatter_add(args: Args) -> Outputs:
    out = args["out"].astype(np.float64)
    np.add.at(out, args["index"], args["x"])
    return {"out": out.astype(args["out"].dtype)}


def transpose(args: Args) -> Outputs:
    return {"out": np.ascontiguousarray(args["x"].T)}


def histogram(args: Args) -> Outputs:
    out = args["out"]
    return {"out": out + np.bincount(args["x"].reshape(-1), minlength=out.size).astype(out.dtype)}


def philox(counter: NDArray[np.uint32], seed: int) -> tuple[NDArray[np.uint32], ...]:
    """Run ten rounds of Philox 4x32 on counters (c, 0, 0, 0) with a 64-bit key."""
    zero = np.zeros_like(counter, dtype=np.uint64)
    c0, c1, c2, c3 = counter.astype(np.uint64), zero, zero, zero
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    for _ in range(10):
        a, b = c0 * np.uint64(0xD2511F53), c2 * np.uint64(0xCD9E8D57)
        low = np.uint64(0xFFFFFFFF)
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ np.uint64(k0), b & low, (a >> 32) ^ c3 ^ np.uint64(k1), a & low
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


def philox_words(args: Args) -> Outputs:
    out = args["out"]
    words = philox(np.arange(out.shape[0], dtype=np.uint32), int(args["seed"]))
    return {"out": np.stack(words, axis=1).view(out.dtype)}


def dropout(args: Args) -> Outputs:
    x = args["x"]
    word = philox(np.arange(x.size, dtype=np.uint32), int(args["seed"]))[0].view(np.int32)
    positive = np.where(word < 0, -word.astype(np.int64) - 1, word)
    keep = positive.astype(np.float32) * np.float32(4.6566127342e-10) > np.float32(args["p"])
    return {"out": np.where(keep, x / np.float32(1 - args["p"]), 0).astype(np.float32)}


def adam(args: Args) -> Outputs:
    g = args["grad"].astype(np.float64)
    m = args["beta1"] * args["m"] + (1 - args["beta1"]) * g
    v = args["beta2"] * args["v"] + (1 - args["beta2"]) * g * g
    param = args["param"] - args["lr"] * m / (np.sqrt(v) + args["eps"])
    return {"param": param.astype(np.float32), "m": m.astype(np.float32), "v": v.astype(np.float32)}


def rotary(args: Args) -> Outputs:
    a, b = np.split(args["x"].astype(np.float64), 2, axis=-1)
    c, s = args["cos"], args["sin"]
    return {"out": np.concatenate([a * c - b * s, b * c + a * s], axis=-1).astype(np.float32)}


def life(args: Args) -> Outputs:
    cells = args["cells"].astype(np.int32)
    total = sum((np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)), np.zeros_like(cells))
    alive = (total == 3) | ((cells == 1) & (total == 4))
    return {"out": alive.astype(args["out"].dtype)}


def causal_conv1d(args: Args) -> Outputs:
    x, weight = args["x"].astype(np.float64), args["weight"]
    taps, length = weight.shape[1], x.shape[1]
    padding = np.pad(x, ((0, 0), (taps - 1, 0)))
    out = np.zeros(x.shape)
    for t in range(taps):
        out += padding[:, t : t + length] * weight[:, t : t + 1]
    return {"out": out.astype(np.float32)}


def complex_multiply(args: Args) -> Outputs:
    a, b = (args[name][:, 0].astype(np.float64) + 1j * args[name][:, 1] for name in ("a", "b"))
    return {"out": np.stack([(a * b).real, (a * b).imag], axis=1).astype(args["out"].dtype)}


def total(args: Args) -> Outputs:
    value = args["x"].astype(np.float64).sum() + args["out"].astype(np.float64).sum()
    return {"out": np.full(args["out"].shape, value).astype(args["out"].dtype)}


def population_count(args: Args) -> Outputs:
    return {"out": np.bitwise_count(args["x"].view(np.uint32)).astype(args["out"].dtype)}


def absolute_difference(args: Args) -> Outputs:
    a, b = args["a"].astype(np.int32), args["b"].astype(np.int32)
    return {"out": np.abs(a - b).astype(args["out"].dtype)}


def take_columns(args: Args) -> Outputs:
    return {"out": args["x"][:, args["order"]]}


def floor_divide(args: Args) -> Outputs:
    return {"out": np.trunc(args["x"] / args["y"]).astype(np.int32)}
