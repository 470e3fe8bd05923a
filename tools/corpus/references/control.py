"""Control flow: the same programs in Python."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from tools.corpus.references import Args, Results


def _wrap(value: int) -> int:
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def interpreter(args: Args) -> Results:
    results: list[int] = []
    for start in args["x"]:
        a, b = int(start), 1
        for code in args["code"]:
            steps = {
                0: (a + b, b),
                1: (a - b * 3, b),
                2: (a, a),
                3: (a ^ 0x55, b),
                4: (-a, b),
                5: (a, b + 7),
                6: (a << 1, b),
                7: (a >> 2, b),
                8: (b, a),
            }
            a, b = (_wrap(value) for value in steps[int(code)])
        results.append(a)
    return {"y": np.array(results, np.int32)}


@cache
def _ackermann(m: int, n: int) -> int:
    if m == 0:
        return n + 1
    return _ackermann(m - 1, _ackermann(m, n - 1) if n else 1)


def ackermann(_args: Args) -> Results:
    return {"y": np.array([_ackermann(2 if t & 1 else 1, t // 4) for t in range(16)], np.int32)}


@cache
def _female(n: int) -> int:
    return n - _male(_female(n - 1)) if n else 1


@cache
def _male(n: int) -> int:
    return n - _female(_male(n - 1)) if n else 0


def hofstadter(_args: Args) -> Results:
    return {"y": np.array([_female(t % 12) * 100 + _male(t % 12) for t in range(32)], np.int32)}


def function_table(args: Args) -> Results:
    a, b = args["a"], args["b"]
    return {"y": np.choose(args["which"], [a + b, a - b, a * b, np.maximum(a, b)])}


def areas(args: Args) -> Results:
    square = args["size"] ** 2
    return {"y": np.where(np.arange(32) % 3 != 0, square, 3 * square)}


def local_table(args: Args) -> Results:
    x, sums = args["x"], np.zeros(32, np.int32)
    for t in range(32):
        table = np.arange(32) ** 2 + t
        table[x[t]] = -1
        i = 0
        while i < 32:
            sums[t] += table[i]
            i += 1 + (x[i] & 1)
    return {"y": sums}


def structures(args: Args) -> Results:
    t = np.arange(32)
    tags = (t + 3) + (t + 6)  # tag[1] is written by steps 1 and 3, tag[0] by step 2
    return {"y": args["x"] * 6 + (t + 6) + tags + 3.0}


def early_exits(args: Args) -> Results:
    y = args["y"].copy()
    for t, start in enumerate(args["x"]):
        if start >= -25:
            y[t] = _walk(int(start))
    return {"y": y}


def _walk(v: int) -> int:
    i = 0
    while v <= 40:
        if v % 2:
            v = v * 3 + 1
        elif v % 3 == 0:
            v += 5
            i += 1
            continue
        else:
            v += i
        if i > 9:
            return -v
        i += 1
    return v


def hanoi(_args: Args) -> Results:
    moves = np.zeros((8, 3), np.int32)

    def move(n: int, source: int, target: int, thread: int) -> None:
        if n:
            move(n - 1, source, 3 - source - target, thread)
            moves[thread, source] += 1
            move(n - 1, 3 - source - target, target, thread)

    for thread in range(8):
        move(thread // 2 + 1, 0, 2, thread)
    return {"moves": moves}


def regular_expression(args: Args) -> Results:
    hits = [re.search("ab+c", row.tobytes().decode()) is not None for row in args["text"]]
    return {"hit": np.array(hits, np.int32)}


def child(args: Args) -> Results:
    y = args["y"].copy()
    y[:32] += args["depth"] * np.arange(32, dtype=np.int32) + 1
    return {"y": y}
