"""Manual: Extended-Precision Integer Arithmetic Instructions. The carry flag is the last input or output; a borrow is
kept as its complement's carry would be: True means borrow."""

from __future__ import annotations

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.formats import Array, Value, dtype_of
from pyptx.sim.semantics.bits import mul_hi, saturated, wide
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, type_of, value


def _sum(a: Array, b: Array, carry: Value) -> tuple[Array, Array]:
    plain = f"u{a.dtype.itemsize}"
    x, y = a.view(plain), b.view(plain)
    first = x + y
    made = first + np.asarray(carry).astype(plain)
    return made.view(a.dtype), (first < x) | (made < first)


def _difference(a: Array, b: Array, borrow: Value) -> tuple[Array, Array]:
    plain = f"u{a.dtype.itemsize}"
    x, y = a.view(plain), b.view(plain)
    first = x - y
    taken = np.asarray(borrow).astype(plain)
    return (first - taken).view(a.dtype), (x < y) | (first < taken)


def _add(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: _sum(a, b, False), "w")


def _addc(match: Match, signature: Signature) -> Operation | None:
    if "sat" in match.modifiers:
        return value(lambda a, b, c: saturated(wide(a) + wide(b) + c, dtype_of(type_of(match))), "r")
    return _chosen(match, _sum)


def _sub(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: _difference(a, b, False), "w")


def _subc(match: Match, signature: Signature) -> Operation | None:
    return _chosen(match, _difference)


def _chosen(match: Match, function: Value) -> Operation:
    if "cc" in match.modifiers:
        return value(function, "rw")
    return value(lambda a, b, c: function(a, b, c)[0], "r")


def _product(match: Match) -> Value:
    return mul_hi if match.modifiers[0] == "hi" else np.multiply


def _mad(match: Match, signature: Signature) -> Operation | None:
    product = _product(match)
    return value(lambda a, b, c: _sum(product(a, b), c, False), "w")


def _madc(match: Match, signature: Signature) -> Operation | None:
    product = _product(match)
    if "sat" in match.modifiers:
        return value(lambda a, b, c, k: saturated(wide(mul_hi(a, b)) + wide(c) + k, dtype_of(type_of(match))), "r")
    if "cc" in match.modifiers:
        return value(lambda a, b, c, k: _sum(product(a, b), c, k), "rw")
    return value(lambda a, b, c, k: _sum(product(a, b), c, k)[0], "r")


BUILDERS: dict[str, Builder] = {
    "add": _add, "addc": _addc, "sub": _sub, "subc": _subc, "mad": _mad, "madc": _madc,
}  # fmt: skip
