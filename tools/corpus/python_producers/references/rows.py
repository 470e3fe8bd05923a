"""Row-wise reductions, norms, losses, sorts and scans."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def softmax(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return {"out": (e / e.sum(axis=-1, keepdims=True)).astype(args["out"].dtype)}


def logsumexp(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    top = x.max(axis=-1)
    return {"out": (top + np.log(np.exp(x - top[:, None]).sum(axis=-1))).astype(np.float32)}


def layernorm(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    mean = x.mean(axis=-1)
    rstd = 1 / np.sqrt(x.var(axis=-1) + args["eps"])
    out = (x - mean[:, None]) * rstd[:, None] * args["weight"] + args["bias"]
    outputs = {"out": out.astype(args["out"].dtype), "mean_out": mean.astype(np.float32)}
    return outputs | {"rstd_out": rstd.astype(np.float32)}


def layernorm_backward(args: Args) -> Outputs:
    rstd = args["rstd"].astype(np.float64)[:, None]
    hat = (args["x"] - args["mean"].astype(np.float64)[:, None]) * rstd
    grad = args["dout"].astype(np.float64) * args["weight"]
    along = (hat * grad).mean(axis=-1, keepdims=True)
    return {"dx": ((grad - hat * along - grad.mean(axis=-1, keepdims=True)) * rstd).astype(np.float32)}


def rmsnorm(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    scale = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + args["eps"])
    return {"out": (x * scale * args["weight"].astype(np.float64)).astype(args["out"].dtype)}


def cross_entropy(args: Args) -> Outputs:
    x = args["logits"].astype(np.float64)
    rows = np.arange(len(x))
    top = x.max(axis=-1, keepdims=True)
    e = np.exp(x - top)
    total = e.sum(axis=-1, keepdims=True)
    grad = e / total
    grad[rows, args["labels"]] -= 1
    loss = np.log(total[:, 0]) + top[:, 0] - x[rows, args["labels"]]
    return {"loss": loss.astype(np.float32), "grad": grad.astype(np.float32)}


def argmax(args: Args) -> Outputs:
    x = args["x"]
    return {"out_value": x.max(axis=-1), "out_index": x.argmax(axis=-1).astype(args["out_index"].dtype)}


def sort(args: Args) -> Outputs:
    return {"out": np.sort(args["x"], axis=-1)}


def top_k(args: Args) -> Outputs:
    return {"out": -np.sort(-args["x"], axis=-1)[..., : args["out"].shape[-1]]}


def quantise_int8(args: Args) -> Outputs:
    x = args["x"]
    scale = (np.maximum(np.abs(x).max(axis=-1), np.float32(1e-8)) / np.float32(127)).astype(np.float32)
    level = np.floor(x / scale[:, None] + np.float32(0.5))
    return {"out": level.astype(np.int8), "scales": scale}


def quantise_fp8(args: Args) -> Outputs:
    x = args["x"]
    scale = (np.abs(x).max(axis=-1) / np.float32(448)).astype(np.float32)
    return {"out": (x / scale[:, None]).astype(ml_dtypes.float8_e4m3fn), "scales": scale}


def moments(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    return {"mean_out": x.mean(axis=-1).astype(np.float32), "var_out": x.var(axis=-1).astype(np.float32)}


def cumsum(args: Args) -> Outputs:
    return {"out": np.cumsum(args["x"], axis=-1, dtype=np.float64).astype(args["out"].dtype)}


def linear_recurrence(args: Args) -> Outputs:
    decay = args["decay"].astype(np.float64)
    out = np.empty_like(decay)
    state = np.zeros(len(decay))
    for i in range(decay.shape[1]):
        state = state * decay[:, i] + args["x"][:, i]
        out[:, i] = state
    return {"out": out.astype(np.float32)}


def segmented_scan(args: Args) -> Outputs:
    out = np.empty_like(args["x"])
    state = np.zeros(len(out), out.dtype)
    for i in range(out.shape[1]):
        state = np.where(args["flags"][:, i] != 0, 0, state) + args["x"][:, i]
        out[:, i] = state
    return {"out": out}
