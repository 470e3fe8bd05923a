"""Small floating-point formats: `ml_dtypes` rounds them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def axpy(args: Args) -> Results:
    exact = args["a"].astype(float) * args["x"].astype(float) + args["y"].astype(float)
    return {"y": exact.astype(args["y"].dtype)}


def half_functions(args: Args) -> Results:
    x = args["x"].astype(float)
    rows = [np.sqrt(x), 2**x, np.log2(x), 1 / x, np.maximum(x, 1), np.minimum(x, 1), np.floor(x), np.tanh(x)]
    return {"y": np.stack(rows).astype(np.float16)}


def half_compare(args: Args) -> Results:
    a, b = args["a"].reshape(-1, 2), args["b"].reshape(-1, 2)
    is_less = np.where(a < b, 0xFFFF, 0) @ [1, 1 << 16]
    top = np.maximum(a, b).view(np.uint32)[:, 0]
    return {"y": np.stack([is_less, (a >= b).all(1), top], axis=1).astype(np.uint32)}


def _toward_zero(x: NDArray[Any], kind: type[Any]) -> NDArray[Any]:
    nearest = x.astype(kind)
    bits = nearest.view(np.uint16)
    return np.where(np.abs(nearest.astype(float)) > np.abs(x), bits - np.uint16(1), bits).astype(np.uint16).view(kind)


def half_conversions(args: Args) -> Results:
    x = args["x"] * np.float32(8)
    half = x.astype(np.float16)
    integers = np.floor(half).astype(int) * 4 + np.rint(_toward_zero(x, np.float16)).astype(int)
    return {"h": half, "b": x.astype(ml_dtypes.bfloat16), "i": integers.astype(np.int32)}


def half_atomics(args: Args) -> Results:
    total = args["x"].reshape(-1, 2).astype(float).sum(0)
    return {"total": total.astype(np.float16), "b": np.array([32], ml_dtypes.bfloat16)}


def fp8(args: Args) -> Results:
    x = args["x"]
    narrow = x.astype(ml_dtypes.float8_e4m3fn)
    return {"p": narrow, "q": x.astype(ml_dtypes.float8_e5m2), "y": narrow.astype(np.float16)}


def fp6(args: Args) -> Results:
    kinds = (ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn)
    return {"y": np.stack([args["x"].astype(kind).astype(np.float16) for kind in kinds])}


def fp4(args: Args) -> Results:
    narrow = args["x"].astype(ml_dtypes.float4_e2m1fn)
    bits = narrow.view(np.uint8).reshape(-1, 2) & 15
    return {"packed": bits[:, 0] | bits[:, 1] << np.uint8(4), "y": narrow.astype(np.float16)}


def scale_bytes(args: Args) -> Results:
    exponent = np.ceil(np.log2(args["x"].astype(float))).astype(int)
    return {"s": (exponent + 127).astype(np.uint8), "y": np.exp2(exponent).astype(ml_dtypes.bfloat16)}


def packed(args: Args) -> Results:
    x = args["x"].reshape(-1, 2)
    relu = np.maximum(x, 0).astype(np.float16).view(np.uint32)[:, 0]
    brain = _toward_zero(x, ml_dtypes.bfloat16).view(np.uint32)[:, 0]
    bits = x[:, 0].copy().view(np.uint32)
    tf32_bits = (bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return {"h": relu, "b": brain, "t": tf32_bits.view(np.float32)}


def packed_single(args: Args) -> Results:
    a, b, c = (args[name].astype(float) for name in "abc")
    return {"y": np.stack([a * b + c, a + b, a * b]).astype(np.float32)}


def fused_relu(args: Args) -> Results:
    exact = args["a"].astype(float) * args["b"].astype(float) + args["c"].astype(float)
    return {"y": np.maximum(exact, 0).astype(np.float16)}
