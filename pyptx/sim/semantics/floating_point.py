"""Manual: Floating Point Instructions. Approximate functions give the correctly rounded result."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx.isa.model import Match
from pyptx.numbers import FORMATS
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.numerics import double
from pyptx.sim.numerics.formats import encode_nan
from pyptx.sim.numerics.rounding import SCALE, flush, flush_result, to_f32
from pyptx.sim.semantics import rounding as r
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, into, value

Function = Callable[..., Array]


_ONCE_PLAIN = frozenset(("div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"))
"""Without modifiers these mean `.approx.ftz` before PTX 1.4 (manual: the defaults of each)."""


def find_mode(match: Match) -> str:
    """Return the rounding mode of a spelling."""
    return next((m for m in match.modifiers if m in ("rn", "rz", "rm", "rp")), "rn")


def finish_operation(match: Match, function: Function, plain: Value = None) -> Operation:
    """Return the operation with `.ftz`, `.sat` and pairs; `plain` is the ufunc that suffices without any of them."""
    kind, flags = match.modifiers[-1], set(match.modifiers)
    if match.form.opcode in _ONCE_PLAIN and match.modifiers == ("f32",):
        flags.add("ftz")
    if plain is not None and kind != "f32x2" and not flags & {"ftz", "sat"} and find_mode(match) == "rn":
        return into(plain)
    body = function
    if "ftz" in flags:
        body = _wrap_flush(body, _SCALES.get(match.form.opcode))
    if "sat" in flags:
        body = _wrap_saturate(body)
    return value(_wrap_pairs(body)) if kind == "f32x2" else value(body)


_SCALES = {
    opcode: tuple(np.float32(2.0**exponent) for exponent in exponents)
    for opcode, exponents in {
        "mul": (SCALE, 0), "div": (SCALE, 0), "rcp": (-SCALE,), "fma": (SCALE, 0, SCALE), "mad": (SCALE, 0, SCALE),
    }.items()
}  # fmt: skip
"""The factors of the operands that scale results by 2**SCALE. Other results that `.ftz` may flush are exact."""


def _wrap_flush(function: Function, factors: tuple[np.float32, ...] | None) -> Function:
    if factors is None:
        return lambda *v: flush(function(*[flush(x) for x in v]))

    def apply(*values: Array) -> Array:
        operands = [flush(x) for x in values]
        return flush_result(
            function(*operands), lambda: function(*[x * y for x, y in zip(operands, factors, strict=True)])
        )

    return apply


def _wrap_saturate(function: Function) -> Function:
    return lambda *v: r.saturate(function(*v))


def _wrap_pairs(function: Function) -> Function:
    return lambda *v: np.ascontiguousarray(function(*[np.ascontiguousarray(x).view("f4") for x in v])).view("u8")


def _build_arithmetic(f32: Function, f64: Function, plain: Value = None) -> Builder:
    def build(match: Match, signature: Signature) -> Operation | None:
        mode = find_mode(match)
        compute = f64 if match.modifiers[-1] == "f64" else f32
        return finish_operation(match, lambda *v: compute(*v, mode), plain)

    return build


def _subtract32(a: Array, b: Array, mode: str) -> Array:
    return r.add32(a, -b, mode)


def _subtract64(a: Array, b: Array, mode: str) -> Array:
    return double.add(a, -b, mode)


def _div(match: Match, signature: Signature) -> Operation | None:
    mode = find_mode(match)
    if match.modifiers[-1] == "f64":
        return value(lambda a, b: double.div(a, b, mode))
    if "approx" in match.modifiers or match.modifiers == ("f32",):
        return finish_operation(match, _divide_by_reciprocal)
    return finish_operation(match, lambda a, b: r.div32(a, b, mode))


def _divide_by_reciprocal(a: Array, b: Array) -> Array:
    """Divide as `a * (1 / b)`, with a subnormal reciprocal flushed to zero."""
    is_flushed = (np.abs(b) > np.float32(2.0**126)) & np.isfinite(b)
    quotient = r.div32(a, b, "rn")
    return np.where(
        is_flushed, np.where(np.isfinite(a), np.copysign(np.float32(0), quotient), np.float32(np.nan)), quotient
    )


def _build_unary(f32: Function, f64: Function) -> Builder:
    """Return the builder of a function of one value that is computed in f64 and rounded once."""

    def build(match: Match, signature: Signature) -> Operation | None:
        mode = find_mode(match)
        if match.modifiers[-1] == "f64":
            if "approx" in match.modifiers and "ftz" in match.modifiers:
                return value(lambda a: _keep_upper_word(f64(_keep_upper_word(a), mode)))
            return value(lambda a: f64(a, mode))
        return finish_operation(match, lambda a: f32(a, mode))

    return build


_UPPER_WORD = np.uint64(0xFFFFFFFF00000000)


def _keep_upper_word(a: Array) -> Array:
    """Keep the bits that rcp and rsqrt.approx.ftz.f64 read: the upper 32, subnormals as zeros, the canonical NaN. A NaN
    whose bits are all in the lower word is read as infinity."""
    bits = a.view(np.uint64) & _UPPER_WORD
    small = (bits & np.uint64(FORMATS["f64"].exponent_mask)) == 0
    bits = np.where(small, bits & np.uint64(FORMATS["f64"].sign), bits)
    return np.where(np.isnan(bits.view(np.float64)), np.uint64(encode_nan("f64")) & _UPPER_WORD, bits).view(np.float64)


def _rcp64(a: Array, mode: str) -> Array:
    return double.div(np.ones_like(a), a, mode)


def _rsqrt64(a: Array, mode: str) -> Array:
    return (1 / np.sqrt(a.astype(np.longdouble))).astype(np.float64)


def _compute_in_double(function: Callable[[Array], Array]) -> Function:
    return lambda a, mode: to_f32(function(a.astype(np.float64)), mode)


def _abs(match: Match, signature: Signature) -> Operation | None:
    return finish_operation(match, np.abs, np.abs)


def _neg(match: Match, signature: Signature) -> Operation | None:
    return finish_operation(match, np.negative, np.negative)


def _copysign(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: np.copysign(b, a))


def _testp(match: Match, signature: Signature) -> Operation | None:
    return value(_TESTS[match.chosen["op"]])


def _is_normal(a: Array) -> Array:
    """Tell which numbers are normal; the manual includes zeros."""
    return np.isfinite(a) & ((np.abs(a) >= np.finfo(a.dtype).tiny) | (a == 0))


_TESTS: dict[str, Function] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: ~np.isnan(a),
    "notanumber": np.isnan,
    "normal": _is_normal,
    "subnormal": lambda a: np.isfinite(a) & ~_is_normal(a),
}


def make_extreme(greater: bool, nan: bool) -> Function:
    """Return min or max: -0 is below +0. A NaN loses, with `.NaN` it wins; a NaN result is the canonical one."""
    pick = np.fmax if greater else np.fmin

    def pick_extreme(a: Array, b: Array) -> Array:
        bits = f"u{a.dtype.itemsize}"
        result = pick(a, b)
        zeros = (a == 0) & (b == 0)
        if zeros.any():
            zero_bits = (a.view(bits) & b.view(bits)) if greater else (a.view(bits) | b.view(bits))
            result = np.where(zeros, zero_bits.view(a.dtype), result)
        is_nan = (np.isnan(a) | np.isnan(b)) if nan else (np.isnan(a) & np.isnan(b))
        return np.where(is_nan, make_canonical_nan(a.dtype), result) if is_nan.any() else result

    return pick_extreme


def make_canonical_nan(dtype: Value) -> Value:
    """Return the NaN that instructions produce."""
    bits = encode_nan(f"f{8 * np.dtype(dtype).itemsize}")
    return np.array(bits, f"u{np.dtype(dtype).itemsize}").view(dtype)


def _build_extreme(greater: bool) -> Builder:
    def build(match: Match, signature: Signature) -> Operation | None:
        flags = set(match.modifiers)
        pick = make_extreme(greater, "NaN" in flags)
        function: Function = pick
        if len(signature) == 4:
            function = _apply_to_three(pick)
        if "xorsign" in flags:
            return finish_operation(match, lambda a, b: np.copysign(pick(np.abs(a), np.abs(b)), _multiply_signs(a, b)))
        if "abs" in flags:
            return finish_operation(match, lambda *v: function(*[np.abs(x) for x in v]))
        return finish_operation(match, function)

    return build


def _apply_to_three(pick: Function) -> Function:
    return lambda a, b, c: pick(pick(a, b), c)


def _multiply_signs(a: Array, b: Array) -> Array:
    return np.where(np.signbit(a) != np.signbit(b), a.dtype.type(-1), a.dtype.type(1))


def exp2(x: Array) -> Array:
    """Return 2 to the power of f64 values."""
    return np.exp2(x)


_FMA = _build_arithmetic(r.fma32, double.fma)


def _mad(match: Match, signature: Signature) -> Operation | None:
    return _FMA(match, signature)


BUILDERS: dict[str, Builder] = {
    "testp": _testp, "copysign": _copysign,
    "add": _build_arithmetic(r.add32, double.add, np.add),
    "sub": _build_arithmetic(_subtract32, _subtract64, np.subtract),
    "mul": _build_arithmetic(r.mul32, double.mul, np.multiply),
    "fma": _FMA, "mad": _mad, "div": _div, "abs": _abs, "neg": _neg,
    "min": _build_extreme(greater=False), "max": _build_extreme(greater=True),
    "rcp": _build_unary(lambda a, mode: r.div32(np.ones_like(a), a, mode), _rcp64),
    "sqrt": _build_unary(r.sqrt32, double.sqrt),
    "rsqrt": _build_unary(_compute_in_double(lambda x: 1 / np.sqrt(x)), _rsqrt64),
    "sin": _build_unary(_compute_in_double(np.sin), double.sqrt),
    "cos": _build_unary(_compute_in_double(np.cos), double.sqrt),
    "lg2": _build_unary(_compute_in_double(np.log2), double.sqrt),
    "ex2": _build_unary(_compute_in_double(exp2), double.sqrt),
    "tanh": _build_unary(_compute_in_double(np.tanh), double.sqrt),
}  # fmt: skip
