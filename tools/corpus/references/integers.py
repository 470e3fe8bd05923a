"""Bits, wide products, number theory: Python integers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results

MASK = (1 << 32) - 1


def _ints(x: NDArray[Any]) -> list[int]:
    return [int(value) for value in x]


def _unsigned(rows: list[list[int]], bits: int) -> NDArray[Any]:
    return np.array(rows, np.uint64).astype(f"uint{bits}")


def bit_counts(args: Args) -> Results:
    x, z = _ints(args["x"]), _ints(args["z"])
    rows = [
        [v.bit_count() for v in x],
        [32 - v.bit_length() for v in x],
        [(v & -v).bit_length() for v in x],
        [int(f"{v:032b}"[::-1], 2) for v in x],
        [v.bit_count() for v in z],
        [64 - v.bit_length() for v in z],
        [(v & -v).bit_length() for v in z],
    ]
    return {"y": _unsigned(rows, 32).view(np.int32)}


def byte_shuffles(args: Args) -> Results:
    def permute(x: int, y: int, selector: int) -> int:
        pool = (y << 32 | x).to_bytes(8, "little")
        return int.from_bytes(bytes(pool[selector >> 4 * i & 7] for i in range(4)), "little")

    pairs = list(zip(_ints(args["x"]), _ints(args["y"]), strict=True))
    rows = [[permute(x, y, selector) for x, y in pairs] for selector in (0x0123, 0x5140)]
    return {"out": _unsigned([*rows, [permute(x, y, y & 0x7777) for x, y in pairs]], 32)}


def funnel_shifts(args: Args) -> Results:
    triples = list(zip(_ints(args["x"]), _ints(args["y"]), _ints(args["s"]), strict=True))
    left = [(y << 32 | x) << s >> 32 & MASK for x, y, s in triples]
    return {"out": _unsigned([left, [(y << 32 | x) >> s & MASK for x, y, s in triples]], 32)}


def gray_code(args: Args) -> Results:
    return {"g": args["x"] ^ (args["x"] >> np.uint32(1)), "b": args["x"]}


def morton(args: Args) -> Results:
    code = np.zeros(64, np.uint32)
    for axis, name in enumerate("xyz"):
        for bit in range(10):
            code |= ((args[name] >> np.uint32(bit)) & np.uint32(1)) << np.uint32(3 * bit + axis)
    return {"code": code}


def wide_products(args: Args) -> Results:
    products = [a * b for a, b in zip(_ints(args["a"]), _ints(args["b"]), strict=True)]
    return {"out": np.array([[p & (1 << 64) - 1, p >> 64] for p in products], np.uint64)}


def divisions(args: Args) -> Results:
    a, b, c, d = (args[name] for name in "abcd")
    quotients = [int(math.copysign(abs(x) // abs(y), x * y)) for x, y in zip(_ints(a), _ints(b), strict=True)]
    rests = [x - q * y for x, q, y in zip(_ints(a), quotients, _ints(b), strict=True)]
    sevens = [int(math.copysign(abs(x) // 7, x)) + (x & MASK) % 10 & MASK for x in _ints(a)]
    rows = [quotients, rests, _ints(c // d), _ints(c % d), sevens]
    return {"out": np.array([[v & (1 << 64) - 1 for v in row] for row in rows], np.uint64).view(np.int64)}


def gcd(args: Args) -> Results:
    return {"g": np.gcd(args["a"], args["b"])}


def modular_power(args: Args) -> Results:
    pairs = zip(_ints(args["base"]), _ints(args["e"]), strict=True)
    return {"r": np.array([pow(base, e, 1000000007) for base, e in pairs], np.uint64)}


def montgomery(args: Args) -> Results:
    p = (1 << 31) - 1
    inverse = pow(1 << 32, -1, p)
    pairs = zip(_ints(args["a"]), _ints(args["b"]), strict=True)
    return {"r": np.array([a * b * inverse % p for a, b in pairs], np.uint32)}


def square_root(args: Args) -> Results:
    return {"r": np.array([math.isqrt(v) for v in _ints(args["x"])], np.uint32)}


def collatz(_args: Args) -> Results:
    steps = np.zeros(64, np.int32)
    for i in range(64):
        n = i + 1
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps[i] += 1
    return {"steps": steps}


def sieve(_args: Args) -> Results:
    composite = np.zeros(512, np.uint8)
    for p in range(2, 23):
        composite[p * p :: p] = 1
    return {"composite": composite}


def big_addition(args: Args) -> Results:
    total = sum(int.from_bytes(args[name].tobytes(), "little") for name in "ab")
    return {"c": np.frombuffer(total.to_bytes(132, "little"), np.uint32)}


def fibonacci(_args: Args) -> Results:
    values = [0, 1]
    while len(values) < 90:
        values.append(values[-1] + values[-2])
    return {"f": np.array(values, np.uint64)}


def differences(args: Args) -> Results:
    a, b = args["a"].astype(np.int64), args["b"].astype(np.int64)
    high = (a * 1000000) * b >> 32
    rows = [abs(a - b) + 5, (a + b) >> 1, (a + b + 1) >> 1, high + a * b]
    return {"out": np.stack(rows).astype(np.int32)}


def six_queens(_args: Args) -> Results:
    return {"total": np.array([4], np.uint32)}


def pascal(_args: Args) -> Results:
    return {"y": np.array([[math.comb(n, k) & MASK for k in range(32)] for n in range(32)], np.uint32)}


def carryless(args: Args) -> Results:
    rows: list[list[int]] = []
    for a, b, c in zip(_ints(args["a"]), _ints(args["b"]), _ints(args["c"]), strict=True):
        product = 0
        for bit in range(64):
            product ^= (a << bit) * (b >> bit & 1)
        rows.append([(product & (1 << 64) - 1) ^ c, (product >> 64) ^ c])
    return {"y": np.array(rows, np.uint64)}


def nth_set_bit(args: Args) -> Results:
    columns = (_ints(args[name]) for name in ("mask", "base", "offset"))
    return {"y": np.array([_nth(*row) for row in zip(*columns, strict=True)], np.uint32)}


def _nth(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else MASK
    places = range(base, 32) if offset > 0 else range(base, -1, -1)
    places_in_mask = [place for place in places if mask >> place & 1]
    return places_in_mask[abs(offset) - 1] if len(places_in_mask) >= abs(offset) else MASK
