"""Layers of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def _softmax(x: NDArray[Any]) -> NDArray[Any]:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softmax(args: Args) -> Results:
    return {"y": _softmax(args["x"].astype(float)).astype(args["y"].dtype)}


def layer_norm(args: Args) -> Results:
    x = args["x"].astype(float)
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    return {"y": (y * args["gain"] + args["bias"]).astype(np.float32)}


def rms_norm(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"y": (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * args["gain"]).astype(np.float32)}


def attention(args: Args) -> Results:
    q, k, v = (args[name].astype(float) for name in "qkv")
    return {"o": (_softmax(q @ k.T / np.sqrt(q.shape[1])) @ v).astype(np.float32)}


def causal_attention(args: Args) -> Results:
    q, k, v = (args[name].astype(float) for name in "qkv")
    scores = q @ k.T / np.sqrt(q.shape[1])
    scores[np.triu_indices(len(q), 1)] = -np.inf
    return {"o": (_softmax(scores) @ v).astype(np.float32)}


def conv2d(args: Args) -> Results:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"].astype(float), (3, 3), (1, 2))
    return {"y": np.einsum("cyxrs,kcrs->kyx", windows, args["w"]).astype(np.float32)}


def depthwise(args: Args) -> Results:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"].astype(float), 3, 1)
    return {"y": np.einsum("ctk,ck->ct", windows, args["w"]).astype(np.float32)}


def max_pool(args: Args) -> Results:
    blocks = args["x"].reshape(8, 2, 8, 2).transpose(0, 2, 1, 3).reshape(8, 8, 4)
    return {"y": blocks.max(2), "which": blocks.argmax(2).astype(np.int32)}


def cross_entropy(args: Args) -> Results:
    p = _softmax(args["x"].astype(float))
    return {"loss": -np.log(p[np.arange(len(p)), args["label"]]).astype(np.float32)}


def embedding(args: Args) -> Results:
    return {"y": args["table"][args["token"]]}


def rotary(args: Args) -> Results:
    rows, columns = np.arange(8)[:, None], np.arange(16)
    turn = np.exp(1j * rows * 2.0 ** (-0.75 * columns))
    z = (args["x"].astype(float).reshape(8, 16, 2) @ np.array([1, 1j])) * turn
    return {"y": np.stack([z.real, z.imag], axis=2).reshape(8, 32).astype(np.float32)}


def adam(args: Args) -> Results:
    g = args["g"].astype(float)
    m, v = 0.9 * args["m"] + 0.1 * g, 0.999 * args["v"] + 0.001 * g * g
    w = args["w"] - args["lr"] * m / (np.sqrt(v) + 1e-8)
    return {"w": w.astype(np.float32), "m": m.astype(np.float32), "v": v.astype(np.float32)}


def batch_norm(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"y": ((x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)).astype(np.float32)}


def lstm(args: Args) -> Results:
    i, f, g, o = args["gates"].astype(float)

    def sigmoid(x: NDArray[Any]) -> NDArray[Any]:
        return 1 / (1 + np.exp(-x))

    c = sigmoid(f) * args["c"] + sigmoid(i) * np.tanh(g)
    return {"c": c.astype(np.float32), "h": (sigmoid(o) * np.tanh(c)).astype(np.float32)}


def dropout(args: Args) -> Results:
    h = (np.arange(128, dtype=np.uint32) + args["seed"]) * np.uint32(0x9E3779B9)
    h = (h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    h ^= h >> np.uint32(13)
    survival = (h >> np.uint32(8)) / 2**24 < args["keep"]
    return {"y": np.where(survival, args["x"] / args["keep"], 0).astype(np.float32)}


def route(args: Args) -> Results:
    expert = args["logits"].argmax(1)
    return {"expert": expert.astype(np.int32), "count": np.bincount(expert, minlength=8).astype(np.int32)}
