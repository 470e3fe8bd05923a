"""The kernels written in LLVM IR: one group of instructions each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]
TABLE = (3, 1, 4, 1, 5, 9, 2, 6)


def atomic_orders(args: Args) -> Outputs:
    cells, x = args["cells"].copy(), args["x"]
    cells[0] += x.sum()
    cells[1] = max(cells[1], x.max())
    cells[2] = min(int(cells[2].view(np.uint32)), int(x.view(np.uint32).min()))
    cells[3] |= np.bitwise_or.reduce(x)
    cells[4] -= x.sum()
    cells[5] = 9
    return {"cells": cells}


def doubled(args: Args) -> Outputs:
    return {"out": args["x"] + args["x"]}


def counted(args: Args) -> Outputs:
    return {"x": np.arange(args["x"].size, dtype=np.int32)}


def lanes(args: Args) -> Outputs:
    return {"out": args["x"][:, ::-1] * np.array([1, 3, 5, 7], np.int32)}


def integers(args: Args) -> Outputs:
    rows: list[list[int]] = []
    word = 0xFFFFFFFF
    for a, b in zip(args["x"].tolist(), args["y"].tolist(), strict=True):
        signed = [value - 256 if value > 127 else value for value in a.to_bytes(4, "little")]
        dot = sum(x * y for x, y in zip(signed, b.to_bytes(4, "little"), strict=True)) + 11
        funnel = ((a << 32 | b) << (b & 31) >> 32) & word
        sign_a, sign_b, sign = a >> 31, b >> 31, (a + b) >> 31 & 1
        bits = f"{a:032b}"[::-1]
        byte_swap = int.from_bytes(int(bits, 2).to_bytes(4, "little"), "big")
        overflow = int(sign_a == sign_b != sign)
        rows.append([dot & word, funnel, min(a + b, word), overflow, (a * a).bit_count(), byte_swap])
    return {"out": np.array(rows, np.uint32)}


def jump_table(args: Args) -> Outputs:
    results: list[int] = []
    values: list[int] = args["x"].tolist()
    for v in values:
        unsigned = v & 0xFFFFFFFF
        cases = (v * 13, ~v, unsigned // 10, v << 5, TABLE[v & 7] + 7, v >> 3)
        results.append((cases[v & 7] if v & 7 < 6 else -v) & 0xFFFFFFFF)
    return {"out": np.array(results, np.uint32).view(np.int32)}


def reversed_in_place(args: Args) -> Outputs:
    return {"x": args["x"][::-1].copy()}


def swapped_parts(args: Args) -> Outputs:
    high = np.array([float(args["p.n"])]).view(np.int32)
    return {"out": np.array([int(args["p.d"]), 0, *high.tolist()], np.int32)}


def _bits(x: NDArray[Any], kind: Any) -> NDArray[Any]:
    return x.astype(kind).view(np.uint8).astype(np.uint16)


def narrowed(args: Args) -> Outputs:
    """In each pair the first value takes the upper half; ue8m0 rounds up to a power of two."""
    a, b = args["x"].T
    exponents = [np.ceil(np.log2(part.astype(np.float64))).astype(np.int64) + 127 for part in (a, b)]
    columns = [_bits(a, kind) << 8 | _bits(b, kind) for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)]
    columns.append(_bits(a, ml_dtypes.float6_e2m3fn) << 8 | _bits(b, ml_dtypes.float6_e2m3fn))
    columns.append(_bits(a, ml_dtypes.float4_e2m1fn) << 4 | _bits(b, ml_dtypes.float4_e2m1fn))
    columns.append((exponents[0] << 8 | exponents[1]).astype(np.uint16))
    return {"out": np.stack(columns, axis=1).astype(np.uint16)}


def widened(args: Args) -> Outputs:
    pairs = args["x"].view(np.uint8).reshape(-1, 2)
    kinds = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float6_e2m3fn)
    columns = [pairs.view(kind).astype(np.float16).view(np.uint16) for kind in kinds]
    powers = np.ldexp(1.0, pairs.astype(np.int64) - 127).astype(ml_dtypes.bfloat16)
    return {"out": np.concatenate([*columns, powers.view(np.uint16)], axis=1)}


def approximate(args: Args) -> Outputs:
    v = args["x"].astype(np.float64)
    power = np.exp2(v)
    signed = np.where(np.signbit(v), 1, -1) * np.minimum(np.abs(v), 1.5)
    columns = [power, np.sin(v), 1 / np.sqrt(power), signed, np.full(v.shape, np.abs(v).max())]
    return {"out": np.stack(columns, axis=1).astype(np.float32)}


def packed(args: Args) -> Outputs:
    h, f = args["x"].astype(np.float64), args["y"].astype(np.float64)
    x = np.maximum(h * h + np.array([1.0, -1.0]), h)
    return {"x": x.astype(np.float16), "y": (f * f + np.array([0.5, 0.25])).astype(np.float32)}


def saturated(args: Args) -> Outputs:
    limits = np.iinfo(np.int64)
    values = [min(max(int(v * 4.0e18), limits.min), limits.max) for v in args["x"].tolist()]
    return {"out": np.array(values, np.int64)}
