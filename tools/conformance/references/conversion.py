"""Conversions. Manual: Data Movement and Conversion Instructions: cvt."""

from __future__ import annotations

import math

from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.words import Builder, Scalar, bits_of, clamp, read

_WHOLE = {"rni": "rn", "rzi": "rz", "rmi": "rm", "rpi": "rp"}
_SMALL = {"e4m3x2": "e4m3", "e5m2x2": "e5m2", "e2m3x2": "e2m3", "e3m2x2": "e3m2", "e2m1x2": "e2m1"}
_PAIRS = {"f16x2": "f16", "bf16x2": "bf16"}


def _cvt(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    plain_modifiers = {*_WHOLE, *f.ROUNDINGS, "ftz", "sat", "relu", "satfinite"}
    result, source = modifiers[-2], modifiers[-1]
    if not set(modifiers[:-2]) <= plain_modifiers:
        return None
    if result in f.WIDTHS and source in f.WIDTHS:
        return _between(modifiers, result, source)
    if result in f.WIDTHS and source[0] in "us":
        return _from_integer(modifiers, result, source)
    if source in f.WIDTHS and result[0] in "us" and result[1].isdigit() and "f" not in result:
        return _to_integer(modifiers, result, source, case)
    if result[0] in "us" and source[0] in "us" and "f" not in result + source:
        return _integers(modifiers, result, source)
    if result in _SMALL and (source in _PAIRS or source == "f32"):
        return _to_small(modifiers, _SMALL[result], source)
    if result in _PAIRS and source in _SMALL:
        return _from_small(modifiers, _PAIRS[result], _SMALL[source])
    if result in _PAIRS and source == "f32":
        return _pack(modifiers, _PAIRS[result])
    return None


def _rounding(modifiers: tuple[str, ...]) -> str:
    return next((m for m in modifiers if m in f.ROUNDINGS), "rn")


def _finish(number: f.Number, modifiers: tuple[str, ...]) -> f.Number:
    number = f.clamp_to_one(number) if "sat" in modifiers else number
    return f.rectify(number) if "relu" in modifiers else number


def _between(modifiers: tuple[str, ...], result: str, source: str) -> Scalar:
    whole_number = next((_WHOLE[m] for m in modifiers if m in _WHOLE), None)
    # ptxas ignores `.ftz` where the result is f16.
    flush_in, flush_out = ("ftz" in modifiers and name == "f32" and result != "f16" for name in (source, result))

    def whole(a: int) -> int:
        number = f.decode(a, source, flush_in)
        if whole_number and not number.missing and not number.infinite:
            nearest = _nearest(number, whole_number)
            number = f.Number(number.negative, f.Fraction(abs(nearest)))
        number = _finish(number, modifiers)
        return f.code(number, result, _rounding(modifiers), flush=flush_out, finite="satfinite" in modifiers)

    return whole


def _nearest(number: f.Number, rounding: str) -> int:
    value = number.value
    if rounding == "rn":
        return round(value)
    return {"rz": math.trunc, "rm": math.floor, "rp": math.ceil}[rounding](value)


def _from_integer(modifiers: tuple[str, ...], result: str, source: str) -> Scalar:
    def whole(a: int) -> int:
        value = read(a, source)
        number = _finish(f.Number(value < 0, f.Fraction(abs(value))), modifiers)
        return f.code(number, result, _rounding(modifiers))

    return whole


def _to_integer(modifiers: tuple[str, ...], result: str, source: str, case: Case) -> Scalar:
    rounding = next(_WHOLE[m] for m in modifiers if m in _WHOLE)
    stored_width = 8 if case.outputs[0].kind == "b8" else max(bits_of(result), 16)

    def whole(a: int) -> int:
        number = f.decode(a, source, "ftz" in modifiers)
        if number.missing:
            return read(_unrepresentable(result, source), result) & ((1 << stored_width) - 1)
        if number.infinite:
            value = -(1 << 200) if number.negative else 1 << 200
        else:
            value = _nearest(number, rounding)
        return clamp(value, result) & ((1 << stored_width) - 1)

    return whole


def _unrepresentable(result: str, source: str) -> int:
    """Return the result for NaN: 0 from f32 and f16 to 32 bits or fewer, or else only the top bit."""
    if source == "f64" or bits_of(result) == 64:
        return 1 << bits_of(result) - 1
    return 0


def _integers(modifiers: tuple[str, ...], result: str, source: str) -> Scalar:
    stored_width = max(bits_of(result), 16)

    def whole(a: int) -> int:
        value = read(a, source)
        value = clamp(value, result) if "sat" in modifiers else read(value, result)
        return value & ((1 << stored_width) - 1)

    return whole


def _small_code(number: f.Number, name: str, modifiers: tuple[str, ...]) -> int:
    return f.code(_finish(number, modifiers), name, _rounding(modifiers), finite="satfinite" in modifiers)


def _to_small(modifiers: tuple[str, ...], name: str, source: str) -> Scalar:
    width = 4 if name == "e2m1" else 8

    def whole(*bits: int) -> int:
        if source in _PAIRS:
            high, low = (f.decode(bits[0] >> shift & 0xFFFF, _PAIRS[source]) for shift in (16, 0))
        else:
            high, low = (f.decode(b, source) for b in bits)
        return _small_code(high, name, modifiers) << width | _small_code(low, name, modifiers)

    return whole


def _from_small(modifiers: tuple[str, ...], result: str, name: str) -> Scalar:
    width = 4 if name == "e2m1" else 8

    def whole(a: int) -> int:
        word = 0
        for lane in (0, 1):
            number = _finish(f.decode(a >> lane * width & ((1 << width) - 1), name), modifiers)
            word |= f.code(number, result, finite="satfinite" in modifiers) << 16 * lane
        return word

    return whole


def _pack(modifiers: tuple[str, ...], result: str) -> Scalar:
    def whole(a: int, b: int) -> int:
        codes = [_small_code(f.decode(bits, "f32"), result, modifiers) for bits in (b, a)]
        return codes[0] | codes[1] << 16

    return whole


BUILDERS: dict[str, Builder] = {"cvt": _cvt}
