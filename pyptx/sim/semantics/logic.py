"""Manual: Logic and Shift Instructions."""

from __future__ import annotations

from functools import partial

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.semantics.comparison import JOIN
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, into, value


def _build_bitwise(function: Value) -> Builder:
    return lambda match, signature: into(function)


def _cnot(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a: (a == 0).astype(a.dtype))


def apply_truth_table(a: Array, b: Array, c: Array, table: Array) -> Array:
    """Return the bitwise function of three values that an 8-bit truth table defines."""
    number = int(table) & 0xFF
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for row in range(8):
        if number >> row & 1:
            result = result | ((a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c))
    return result


def _lop3(match: Match, signature: Signature) -> Operation | None:
    if "bool" not in match.chosen:
        return value(apply_truth_table)
    join = JOIN[match.chosen["bool"]]

    def apply(a: Array, b: Array, c: Array, table: Array, q: Array) -> tuple[Array, Array]:
        result = apply_truth_table(a, b, c, table)
        return result, join(result != 0, q)

    return value(apply)


def _shf(match: Match, signature: Signature) -> Operation | None:
    return value(partial(_funnel_shift, match.chosen["dir"], match.chosen["mode"]))


def _funnel_shift(direction: str, mode: str, a: Array, b: Array, c: Array) -> Array:
    """Shift the 64 bits of b:a and return the upper (left) or the lower (right) half."""
    count = (np.minimum(c, np.uint32(32)) if mode == "clamp" else c & np.uint32(31)).astype("u8")
    pair = (b.astype("u8") << np.uint64(32)) | a
    if direction == "l":
        return ((pair << count) >> np.uint64(32)).astype("u4")
    return (pair >> count).astype("u4")


def _shl(match: Match, signature: Signature) -> Operation | None:
    bits = int(match.chosen["type"][1:])

    def shl(a: Array, b: Array) -> Array:
        result = a << np.minimum(b, np.uint32(bits - 1)).astype(a.dtype)
        over = b >= bits
        return np.where(over, a.dtype.type(0), result) if over.any() else result

    return value(shl)


def _shr(match: Match, signature: Signature) -> Operation | None:
    bits = int(match.chosen["type"][1:])

    def shr(a: Array, b: Array) -> Array:
        result = a >> np.minimum(b, np.uint32(bits - 1)).astype(a.dtype)
        over = b >= bits
        return np.where(over, a.dtype.type(0), result) if a.dtype.kind == "u" and over.any() else result

    return value(shr)


BUILDERS: dict[str, Builder] = {
    "and": _build_bitwise(np.bitwise_and), "or": _build_bitwise(np.bitwise_or), "xor": _build_bitwise(np.bitwise_xor),
    "not": _build_bitwise(np.invert), "cnot": _cnot, "lop3": _lop3, "shf": _shf, "shl": _shl, "shr": _shr,
}  # fmt: skip
