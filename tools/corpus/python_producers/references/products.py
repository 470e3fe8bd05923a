"""Matrix products, attention, convolution and what is built from them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def matmul(args: Args) -> Outputs:
    out = args["a"].astype(np.float64) @ args["b"].astype(np.float64)
    return {"out": out.astype(args["out"].dtype)}


def matmul_transposed(args: Args) -> Outputs:
    out = args["a"].astype(np.float64) @ args["b"].astype(np.float64).T
    return {"out": out.astype(args["out"].dtype)}


def matmul_add(args: Args) -> Outputs:
    out = args["a"].astype(np.float64) @ args["b"].astype(np.float64) + args["out"].astype(np.float64)
    return {"out": out.astype(args["out"].dtype)}


def _unpack(data: NDArray[Any], scale: NDArray[Any]) -> NDArray[np.float64]:
    """Expand packed e2m1 pairs (low nibble first) or fp8 values and apply their power-of-two scales of 32."""
    if data.dtype == np.uint8:
        pairs = np.stack([data & 15, data >> 4], axis=-1).reshape(len(data), -1)
        value = pairs.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    else:
        value = data.astype(np.float64)
    return value * np.repeat(2.0 ** (scale.astype(np.float64) - 127), 32, axis=1)


def matmul_scaled(args: Args) -> Outputs:
    out = _unpack(args["a"], args["a_scale"]) @ _unpack(args["b"], args["b_scale"]).T
    return {"out": out.astype(np.float32)}


def grouped_matmul(args: Args) -> Outputs:
    offsets = args["offsets"]
    out = args["out"].copy()
    for group, (first, last) in enumerate(pairwise(offsets)):
        rows = args["a"][first:last].astype(np.float64) @ args["b"][group].astype(np.float64)
        out[first:last] = rows.astype(out.dtype)
    return {"out": out}


def attention(args: Args, causal: bool = False) -> Outputs:
    q, k, v = (args[name].astype(np.float64) for name in "qkv")
    score = q @ k.swapaxes(-1, -2) * args["scale"]
    if causal:
        score = np.where(np.tri(score.shape[-2], score.shape[-1], dtype=bool), score, -np.inf)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    return {"out": (weight @ v / weight.sum(axis=-1, keepdims=True)).astype(args["out"].dtype)}


def attention_causal(args: Args) -> Outputs:
    return attention(args, causal=True)


def decode_split(args: Args) -> Outputs:
    q, k, v = (args[name].astype(np.float64) for name in "qkv")
    heads, pieces, _ = args["part"].shape
    split = 1 << (-(-k.shape[1] // pieces) - 1).bit_length()  # Triton's blocks are powers of two
    score = np.einsum("hd,hnd->hn", q, k) * args["scale"]
    part, top, total = np.zeros(args["part"].shape), np.zeros((heads, pieces)), np.zeros((heads, pieces))
    for piece in range(pieces):
        span = slice(piece * split, (piece + 1) * split)
        top[:, piece] = score[:, span].max(axis=1)
        weight = np.exp(score[:, span] - top[:, piece : piece + 1])
        total[:, piece] = weight.sum(axis=1)
        part[:, piece] = np.einsum("hn,hnd->hd", weight, v[:, span])
    values = {"part": part, "top_out": top, "total_out": total}
    return {name: value.astype(np.float32) for name, value in values.items()}


def conv2d(args: Args) -> Outputs:
    x, weight = args["x"].astype(np.float64), args["weight"].astype(np.float64)
    height, width = x.shape[0] - 2, x.shape[1] - 2
    taps = ((t // 3, t % 3) for t in range(9))
    out = sum(x[y : y + height, c : c + width] @ weight[y * 3 + c] for y, c in taps)
    return {"out": np.asarray(out).astype(np.float32)}


def nearest_centre(args: Args) -> Outputs:
    delta = args["points"].astype(np.float64)[:, None, :] - args["centres"][None]
    return {"out": (delta**2).sum(axis=-1).argmin(axis=1).astype(args["out"].dtype)}
