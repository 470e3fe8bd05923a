"""The C kernels: recursion, interpreters, bytes and hashes, memory protocols, plain numerics."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]
WORD = 0xFFFFFFFF


def fibonacci(args: Args) -> Outputs:
    first = [0, 1]
    while len(first) < 14:
        first.append(first[-1] + first[-2])
    return {"out": np.resize(np.array(first, np.uint64), args["out"].shape)}


def _ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return _ackermann(m - 1, 1 if n == 0 else _ackermann(m, n - 1))


def ackermann(args: Args) -> Outputs:
    return {"out": np.array([_ackermann(i % 3, i % 4) for i in range(args["out"].size)], np.uint32)}


def queens(args: Args) -> Outputs:
    return {"out": args["out"] + np.int32(4)}


def shape_areas(args: Args) -> Outputs:
    shapes = args["shapes"]
    kind = np.ascontiguousarray(shapes[:, 2]).view(np.int32) % 3
    factor = np.array([1, 0.5, 0.785398163], np.float64)[kind]
    return {"out": (factor * shapes[:, 0] * shapes[:, 1]).astype(np.float32)}


def byte_code(args: Args) -> Outputs:
    """The program of the case: x -> 2 * (-3 - -(x * x + 7)) after its moves on the stack."""
    results: list[int] = []
    for x in args["x"].tolist():
        stack, code = [x], iter(args["program"].tolist())
        for step in code:
            if step == 0:
                value = next(code)
                stack.append(value - 256 if value > 127 else value)
            elif step in (1, 2, 5):
                b, a = stack.pop(), stack.pop()
                stack.append(a + b if step == 1 else a * b if step == 2 else a - b)
            elif step == 3:
                stack.append(stack[-1])
            elif step == 4:
                stack[-1], stack[-2] = stack[-2], stack[-1]
            elif step == 6:
                stack[-1] = -stack[-1]
            else:
                break
        results.append(stack[-1])
    return {"out": np.array(results, np.int32)}


def trace(args: Args) -> Outputs:
    return {"out": np.array([np.trace(args["a"])])}


def hex_encode(args: Args) -> Outputs:
    return {"out": np.frombuffer(args["data"].tobytes().hex().encode(), np.uint8)}


def fnv(args: Args) -> Outputs:
    hashes: list[int] = []
    for row in args["rows"].tolist():
        value = 0xCBF29CE484222325
        for byte in row:
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        hashes.append(value)
    return {"out": np.array(hashes, np.uint64)}


def adler32(args: Args) -> Outputs:
    return {"out": np.array([zlib.adler32(row.tobytes()) for row in args["rows"]], np.uint32)}


def _rotate(x: int, count: int) -> int:
    return (x << count | x >> (32 - count)) & WORD


def murmur3(args: Args) -> Outputs:
    hashes: list[int] = []
    for row in args["rows"].tolist():
        value = 42
        for word in row:
            value ^= _rotate(word * 0xCC9E2D51 & WORD, 15) * 0x1B873593 & WORD
            value = (_rotate(value, 13) * 5 + 0xE6546B64) & WORD
        value ^= 20
        value = (value ^ value >> 16) * 0x85EBCA6B & WORD
        value = (value ^ value >> 13) * 0xC2B2AE35 & WORD
        hashes.append(value ^ value >> 16)
    return {"out": np.array(hashes, np.uint32)}


def wide_multiply(args: Args) -> Outputs:
    rows: list[list[int]] = []
    for a, b in zip(args["a"].tolist(), args["b"].tolist(), strict=True):
        value = (a * b + a - (b << 17)) & (1 << 128) - 1
        rows.append([value & (1 << 64) - 1, value >> 64])
    return {"out": np.array(rows, np.uint64)}


def run_lengths(args: Args) -> Outputs:
    out, counts = args["out"].copy(), args["counts"].copy()
    for i, row in enumerate(args["rows"]):
        starts = [0, *(np.flatnonzero(np.diff(row)) + 1), len(row)]
        for k, (first, last) in enumerate(pairwise(starts)):
            out[i, 2 * k : 2 * k + 2] = last - first, row[first]
        counts[i] = 2 * (len(starts) - 1)
    return {"out": out, "counts": counts}


def greatest_divisor(args: Args) -> Outputs:
    return {"out": np.gcd(args["a"], args["b"])}


def decode_utf8(args: Args) -> Outputs:
    text, out = args["text"], args["out"].copy()
    for i in np.flatnonzero(text & 0xC0 != 0x80):
        lead = int(text[i])
        extra = 0 if lead < 0x80 else 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        point = lead & 63 >> extra if extra else lead
        for byte in text[i + 1 : i + 1 + extra].tolist():
            point = point << 6 | byte & 63
        out[i] = point
    return {"out": out}


def reverse(args: Args) -> Outputs:
    return {"out": args["x"][::-1].copy()}


def swapped_twice(args: Args) -> Outputs:
    return {"out": 2 * args["x"].reshape(-1, 2)[:, ::-1].reshape(-1)}


def rotated(args: Args) -> Outputs:
    return {"out": np.roll(args["x"], -5)}


def scoped_counters(args: Args) -> Outputs:
    x, out = args["x"], args["counters"].copy()
    out[0] += x.sum()
    out[1] = max(out[1], x.max())
    out[2] |= np.bitwise_or.reduce(x)
    out[3] ^= np.bitwise_xor.reduce(x)
    out[4] = 7
    return {"counters": out}


def message(args: Args) -> Outputs:
    return {"data": np.array([42], np.int32), "flag": np.array([1], np.int32), "out": np.array([0, 42], np.int32)}


def votes(args: Args) -> Outputs:
    rows: list[NDArray[Any]] = []
    for x in args["x"].astype(np.int64).reshape(-1, 32):
        mask = int("".join(str(int(v)) for v in (x & 1)[::-1]), 2)
        following = np.append(x[1:], x[31])
        before = np.append(x[:2], x[:-2])
        polls = np.full(32, 2 * int((x > -1000).all()) + int((x > 98).any()))
        rows.append(np.stack([np.full(32, mask), polls, (following ^ before) & WORD], axis=1))
    return {"out": np.concatenate(rows).astype(np.uint32)}


def barrier_counts(args: Args) -> Outputs:
    x = args["x"]
    value = 4 * int((x > 0).sum()) + 2 * int((x > -100).all()) + int((x > 97).any())
    return {"out": np.full(args["out"].shape, value, np.int32)}


def cluster_ranks(args: Args) -> Outputs:
    i = np.arange(int(args["out"].size))
    rank = i // 32 % 4
    theirs = i // 128 * 128 + (rank + 1) % 4 * 32 + i % 32
    return {"out": (10 * theirs + rank).astype(np.int32)}


def half_pairs(args: Args) -> Outputs:
    a, b = args["a"].astype(np.float32), args["b"].astype(np.float32)
    return {"out": (a * b + a).astype(np.float16)}


def bfloat_pairs(args: Args) -> Outputs:
    return {"out": (args["a"].astype(np.float32) + args["b"].astype(np.float32)).astype(ml_dtypes.bfloat16)}


def normalise(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    return {"out": (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)}


def fixed_point(args: Args) -> Outputs:
    return {"out": np.array([(math.isqrt(x) * 92682 + 32768) >> 16 for x in args["x"].tolist()], np.uint32)}


def cube_roots(args: Args) -> Outputs:
    return {"out": np.cbrt(args["a"])}


def rounding(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    columns = [
        x + np.float32(0.1) + x * np.float32(3.3),
        x / 7 + x * x + 1,
        np.floor(x) + np.ceil(x) + np.trunc(x),
        np.rint(x) + np.trunc(x) + np.abs(x),
    ]
    return {"out": np.stack(columns, axis=1).astype(np.float32)}


def simpson(args: Args) -> Outputs:
    step = args["limits"] / 16
    x = step[:, None] * np.arange(17)
    weight = np.where(np.arange(17) % 2 == 1, 4, 2).astype(np.float64)
    weight[[0, 16]] = 1
    value = weight * (x**3 - 2 * x) / (1 + x * x)
    return {"out": value.sum(axis=1) * step / 3}


def bit_distances(args: Args) -> Outputs:
    distance = np.bitwise_count(args["a"][:, None] ^ args["b"][None]).sum(axis=-1)
    return {"out": distance.astype(np.int32)}
