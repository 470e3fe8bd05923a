"""Manual: Comparison and Selection Instructions, Half Precision Comparison Instructions."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.numbers import FORMATS
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.rounding import flush, flush_half
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, into, value

_ORDERED: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
JOIN: dict[str, Callable[[Array, Array], Array]] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def choose_comparison(cmp: str, floating: bool) -> Value:
    """Return the comparison of this name; `ne` of a NaN is false, the forms with `u` are true."""
    if cmp == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if cmp == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if floating and cmp == "ne":
        return lambda a, b: (a < b) | (a > b)
    if cmp in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
        if cmp == "neu":
            return np.not_equal
        plain = _ORDERED[cmp[:2]]
        return lambda a, b: plain(a, b) | np.isnan(a) | np.isnan(b)
    return _ORDERED[cmp]


def _choose_decoder(kind: str, ftz: bool) -> Callable[[Array], Array] | None:
    if kind in ("f16", "bf16"):
        return lambda a: decode(flush_half(a, kind) if ftz else a, kind)
    if kind in ("f16x2", "bf16x2"):
        return lambda a: decode(flush_half(_split_halves(a), kind[:-2]) if ftz else _split_halves(a), kind[:-2])
    return flush if ftz else None


def _split_halves(words: Array) -> Array:
    return np.ascontiguousarray(words).view("u2")


def _make_test(match: Match, kind: str) -> Value:
    """Return the whole comparison of a spelling, on operands as registers hold them."""
    plain = choose_comparison(match.chosen["cmp"], "f" in kind)
    convert = _choose_decoder(kind, "ftz" in match.modifiers)
    return plain if convert is None else (lambda a, b: plain(convert(a), convert(b)))


def _setp(match: Match, signature: Signature) -> Operation | None:
    kind = match.modifiers[-1]
    test, join = _make_test(match, kind), JOIN.get(match.chosen.get("bool", ""))
    if kind.endswith("x2"):
        return value(_test_halves(test, join))
    single = len(signature[0].parts) < 2
    if join is None:
        return into(test) if single and isinstance(test, np.ufunc) else value(_pair_with_complement(test, single))
    return value(_join(test, join, single))


def _pair_with_complement(test: Value, single: bool) -> Value:
    def apply(a: Array, b: Array) -> Value:
        result = test(a, b)
        return result if single else (result, ~result)

    return apply


def _join(test: Value, join: Value, single: bool) -> Value:
    def apply(a: Array, b: Array, c: Array) -> Value:
        result = test(a, b)
        return join(result, c) if single else (join(result, c), join(~result, c))

    return apply


def _test_halves(test: Value, join: Value) -> Value:
    def apply(a: Array, b: Array, c: Array | None = None) -> Value:
        result = test(a, b)
        low, high = result[0::2], result[1::2]
        return (low, high) if join is None else (join(low, c), join(high, c))

    return apply


_ONES = {
    "f32": np.array(1.0, "f4"), "f16": np.array(FORMATS["f16"].one, "u2"),
    "bf16": np.array(FORMATS["bf16"].one, "u2"),
    "u16": np.array(0xFFFF, "u2"), "s16": np.array(-1, "i2"), "u32": np.array(0xFFFFFFFF, "u4"),
    "s32": np.array(-1, "i4"),
}  # fmt: skip
_ONES_X2 = {"f16x2": FORMATS["f16"].one, "bf16x2": FORMATS["bf16"].one, "u32": 0xFFFF, "s32": 0xFFFF}


def _set(match: Match, signature: Signature) -> Operation | None:
    kind = match.modifiers[-1]
    target = match.modifiers[-2]
    test, join = _make_test(match, kind), JOIN.get(match.chosen.get("bool", ""))
    if kind.endswith("x2"):
        return value(_set_pair(test, join, target))
    true_value = _ONES[target]

    def apply(a: Array, b: Array, c: Array | None = None) -> Array:
        result = test(a, b)
        return np.where(result if join is None or c is None else join(result, c), true_value, np.zeros_like(true_value))

    return value(apply)


def _set_pair(test: Value, join: Value, target: str) -> Value:
    true_value = np.uint16(_ONES_X2[target])

    def apply(a: Array, b: Array, c: Array | None = None) -> Array:
        result = test(a, b)
        if join is not None and c is not None:
            result = join(result, np.repeat(c, 2))
        return np.where(result, true_value, np.uint16(0)).view(np.uint32)

    return apply


def _selp(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b, c: np.where(c, a, b))


def _slct(match: Match, signature: Signature) -> Operation | None:
    ftz = "ftz" in match.modifiers
    return value(lambda a, b, c: np.where((flush(c) if ftz else c) >= 0, a, b))


BUILDERS: dict[str, Builder] = {"set": _set, "setp": _setp, "selp": _selp, "slct": _slct}
