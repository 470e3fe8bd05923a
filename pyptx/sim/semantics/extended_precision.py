"""Manual: Extended-Precision Integer Arithmetic Instructions. The carry flag is the last input or output.

A difference is a sum with the complement, on every target of ptxas: its flag is the carry of that sum, set if nothing
is borrowed, and subc subtracts one if the flag is clear. The manual calls the flag a borrow, which only a mix with addc
can distinguish.
"""

from __future__ import annotations

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.semantics.bits import multiply_high, saturate_to, to_int64
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, find_type, value


def _sum(a: Array, b: Array, carry: Value) -> tuple[Array, Array]:
    plain = f"u{a.dtype.itemsize}"
    x, y = a.view(plain), b.view(plain)
    first = x + y
    total = first + np.asarray(carry).astype(plain)
    return total.view(a.dtype), (first < x) | (total < first)


def _difference(a: Array, b: Array, carry: Value) -> tuple[Array, Array]:
    return _sum(a, ~b, carry)


def _add(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: _sum(a, b, False), "w")


def _addc(match: Match, signature: Signature) -> Operation | None:
    if "sat" in match.modifiers:
        return value(lambda a, b, c: saturate_to(to_int64(a) + to_int64(b) + c, dtype_of(find_type(match))), "r")
    return _select_outputs(match, _sum)


def _sub(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: _difference(a, b, True), "w")


def _subc(match: Match, signature: Signature) -> Operation | None:
    return _select_outputs(match, _difference)


def _select_outputs(match: Match, function: Value) -> Operation:
    if "cc" in match.modifiers:
        return value(function, "rw")
    return value(lambda a, b, c: function(a, b, c)[0], "r")


def _choose_product(match: Match) -> Value:
    if match.modifiers[0] != "hi":
        return np.multiply
    return _multiply_high if find_type(match)[1:] == "16" else multiply_high


def _multiply_high(a: Array, b: Array) -> Array:
    """Return the upper half of a product of 16-bit numbers as ptxas computes it: the bits above its 32 bits."""
    return ((to_int64(a) * to_int64(b)) >> np.int64(32)).astype(a.dtype)


def _mad(match: Match, signature: Signature) -> Operation | None:
    product = _choose_product(match)
    return value(lambda a, b, c: _sum(product(a, b), c, False), "w")


def _madc(match: Match, signature: Signature) -> Operation | None:
    product = _choose_product(match)
    if "cc" in match.modifiers:
        return value(lambda a, b, c, k: _sum(product(a, b), c, k), "rw")
    # ptxas ignores `.sat`.
    return value(lambda a, b, c, k: _sum(product(a, b), c, k)[0], "r")


BUILDERS: dict[str, Builder] = {
    "add": _add, "addc": _addc, "sub": _sub, "subc": _subc, "mad": _mad, "madc": _madc,
}  # fmt: skip
