"""Manual: Half Precision Floating Point Instructions. Values are computed in f64, exactly or rounded to odd, and
rounded once."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pyptx.isa.model import Match
from pyptx.numbers import FORMATS
from pyptx.sim.base.formats import Array
from pyptx.sim.numerics.formats import encode_nan, widen
from pyptx.sim.numerics.rounding import encode_exact, flush_half, round_to_format
from pyptx.sim.semantics import rounding as r
from pyptx.sim.semantics.floating_point import find_mode, make_extreme
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, value

Function = Callable[..., Array]


def _apply_by_element(kind: str, function: Function) -> Function:
    """Return a function of 16-bit patterns, applied to both halves if the type is a pair."""
    if not kind.endswith("x2"):
        return function
    return lambda *v: np.ascontiguousarray(function(*[np.ascontiguousarray(x).view("u2") for x in v])).view("u4")


def _compute(match: Match, function: Function) -> Operation:
    """Return the operation of a function of f64 values, with `.ftz`, `.sat` and `.relu`."""
    kind, flags = match.modifiers[-1], set(match.modifiers)
    name = kind.removesuffix("x2")

    def apply(*values: Array) -> Array:
        bits = [flush_half(v, name) if "ftz" in flags else v for v in values]
        exact = function(*[widen(b, name) for b in bits])
        result = round_to_format(_flush_exact(exact, name) if "ftz" in flags else exact, name)
        if "sat" in flags:
            result = r.saturate(result)
        if "relu" in flags:
            result = np.where(result > 0, result, np.where(np.isnan(result), result, 0.0))
        return encode_exact(result, name)

    return value(_apply_by_element(kind, apply))


def _flush_exact(x: Array, name: str) -> Array:
    """Return values with zeros for those that, rounded with an unbounded exponent, are below the normal numbers."""
    form = FORMATS[name]
    least = np.ldexp(1 - np.ldexp(1.0, -form.mantissa - 2), form.least_exponent)
    return np.where(np.abs(x) < least, np.copysign(0.0, x), x)


_OUT_OF_BOUNDS = np.uint16(0x7FF7)
"""The NaN that tensor copies write outside the tensor (measured on an H200)."""
_MAGNITUDE, _INFINITY, _NAN = (
    np.uint16(code) for code in (FORMATS["f16"].magnitude, FORMATS["f16"].exponent_mask, encode_nan("f16"))
)
_SIGN = np.uint16(FORMATS["f16"].sign)


def _compute_quickly(match: Match, function: Function) -> Operation | None:
    """Return the operation of sums and products of f16, for which f32 is wide enough."""
    if match.modifiers[-1] not in ("f16", "f16x2") or set(match.modifiers) & {"ftz", "sat"}:
        return None

    def apply(a: Array, b: Array) -> Array:
        result = function(a.view("f2").astype("f4"), b.view("f2").astype("f4")).astype("f2").view("u2")
        nan = (result & _MAGNITUDE) > _INFINITY
        return np.where(nan, _NAN, result) if nan.any() else result

    return value(_apply_by_element(match.modifiers[-1], apply))


def _add(match: Match, signature: Signature) -> Operation | None:
    return _compute_quickly(match, np.add) or _compute(match, lambda a, b: r.sum_exactly(a, b, "rn"))


def _sub(match: Match, signature: Signature) -> Operation | None:
    return _compute_quickly(match, np.subtract) or _compute(match, lambda a, b: r.sum_exactly(a, -b, "rn"))


def _mul(match: Match, signature: Signature) -> Operation | None:
    return _compute_quickly(match, np.multiply) or _compute(match, np.multiply)


def _fma(match: Match, signature: Signature) -> Operation | None:
    if find_mode(match) != "rn" and match.modifiers[-1] == "bf16":
        return value(partial(_fuse_as_halves, find_mode(match)))
    if "oob" not in match.modifiers:
        return _compute(match, _fuse)
    kind = match.modifiers[-1]
    inner = _compute(match, _fuse).function
    assert inner is not None

    def apply(a: Array, b: Array, c: Array) -> Array:
        return np.where(_is_out_of_bounds(a) | _is_out_of_bounds(b), c.dtype.type(0), inner(a, b, c))

    return value(apply) if not kind.endswith("x2") else value(_apply_pairwise(match, kind))


def _fuse_as_halves(mode: str, a: Array, b: Array, c: Array) -> Array:
    """Return what ptxas makes of a directed fma of bf16, which the manual does not have: the operands are taken for
    f16, `.relu` and `.oob` are ignored, and the f32 result is rounded to the nearest f16."""
    x, y, z = (bits.view("f2").astype("f4") for bits in (a, b, c))
    result = r.fma32(x, y, z, mode).astype("f2").view("u2")
    return np.where((result & _MAGNITUDE) > _INFINITY, _NAN, result)


def _apply_pairwise(match: Match, kind: str) -> Function:
    single = _compute_plain(match, kind.removesuffix("x2"))

    def apply(a: Array, b: Array, c: Array) -> Array:
        bad = _is_out_of_bounds(a) | _is_out_of_bounds(b)
        return np.where(bad, np.uint16(0), single(a, b, c))

    return _apply_by_element(kind, apply)


def _compute_plain(match: Match, name: str) -> Function:
    relu = "relu" in match.modifiers

    def apply(*values: Array) -> Array:
        result = round_to_format(_fuse(*[widen(v, name) for v in values]), name)
        return encode_exact(np.where((result <= 0) & relu, 0.0, result), name)

    return apply


def _is_out_of_bounds(bits: Array) -> Array:
    """Tell where an operand is the NaN that tensor copies write outside the tensor (manual: fma.oob)."""
    return bits == _OUT_OF_BOUNDS


def _fuse(a: Array, b: Array, c: Array) -> Array:
    """Return a*b + c of narrow values in f64, rounded to odd: the product is exact. ptxas ignores the rounding that
    pairs of bf16 may name, which the manual does not have."""
    return r.sum_exactly(a * b, c, "rn")


def _neg(match: Match, signature: Signature) -> Operation | None:
    return value(_apply_by_element(match.modifiers[-1], lambda a: _flush_if_asked(match, a) ^ _SIGN))


def _abs(match: Match, signature: Signature) -> Operation | None:
    return value(_apply_by_element(match.modifiers[-1], lambda a: _flush_if_asked(match, a) & _MAGNITUDE))


def _flush_if_asked(match: Match, a: Array) -> Array:
    return flush_half(a, match.modifiers[-1].removesuffix("x2")) if "ftz" in match.modifiers else a


def _build_extreme(greater: bool) -> Builder:
    def build(match: Match, signature: Signature) -> Operation | None:
        flags = set(match.modifiers)
        pick = make_extreme(greater, "NaN" in flags)

        def apply(a: Array, b: Array) -> Array:
            if "xorsign" in flags:
                result = pick(np.abs(a), np.abs(b))
                return np.where(np.signbit(a) != np.signbit(b), -result, result)
            return pick(a, b)

        return _compute(match, apply)

    return build


def _tanh(match: Match, signature: Signature) -> Operation | None:
    return _compute(match, np.tanh)


def _ex2(match: Match, signature: Signature) -> Operation | None:
    return _compute(match, np.exp2)


BUILDERS: dict[str, Builder] = {
    "add": _add, "sub": _sub, "mul": _mul, "fma": _fma, "neg": _neg, "abs": _abs,
    "min": _build_extreme(greater=False), "max": _build_extreme(greater=True), "tanh": _tanh, "ex2": _ex2,
}  # fmt: skip
