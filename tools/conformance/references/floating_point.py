"""Floating-point arithmetic with one rounding. Approximations have no reference here: their error is bounded, not 0."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from tests.sim.numerics.exact import round_root
from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.words import Builder, Scalar

Exact = Callable[..., f.Number]
"""Takes numbers and, last, the rounding direction."""
_OOB_NAN = 0x7FF7
"""The NaN that marks a factor out of bounds. The manual names it without its code; tensor copies of an H200 fill it
in."""
_LANES = {"f16x2": ("f16", 2), "bf16x2": ("bf16", 2), "f32x2": ("f32", 2)}


def lanes_of(name: str) -> tuple[str, int]:
    """Return the element and the number of elements of a type."""
    return _LANES.get(name, (name, 1))


def _is_plain(modifiers: tuple[str, ...]) -> bool:
    """Return whether a spelling has only the basic formats and modifiers."""
    plain_modifiers = {*f.ROUNDINGS, "ftz", "sat", "relu", "oob", *f.WIDTHS, *_LANES}
    return set(modifiers) <= plain_modifiers and modifiers[-1] != "tf32"


def _build_rounded(function: Exact) -> Builder:
    """Return the builder of an operation that is rounded once; operands of `.f32.f16` are halves, except the last.
    ptxas ignores `.ftz` on f64."""

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        if not _is_plain(modifiers) or (case.target.arch < 20 and modifiers[-1] != "f64"):
            return None
        types = [m for m in modifiers if m in f.WIDTHS or m in _LANES]
        result, count = lanes_of(types[0])
        source, rounding = lanes_of(types[-1])[0], next((m for m in modifiers if m in f.ROUNDINGS), "rn")
        flush, width = "ftz" in modifiers and result != "f64", f.WIDTHS[result]
        has_wide_addend = len(types) > 1
        if rounding != "rn" and result == "bf16":
            if count == 1:
                return _fuse_as_halves(rounding)
            rounding = "rn"

        def whole(*bits: int) -> int:
            word = 0
            for lane in range(count):
                shift = lane * width
                names = [source] * (len(bits) - has_wide_addend) + [result] * has_wide_addend
                wide = [(1 << f.WIDTHS[name]) - 1 for name in names]
                parts = [b >> shift & mask for b, mask in zip(bits, wide, strict=True)]
                if "oob" in modifiers and _OOB_NAN in parts[:2]:
                    continue
                number = function(*(f.decode(p, n, flush) for p, n in zip(parts, names, strict=True)), rounding)
                number = f.clamp_to_one(number) if "sat" in modifiers else number
                number = f.rectify(number) if "relu" in modifiers else number
                word |= f.code(number, result, rounding, flush=flush) << shift
            return word

        return whole

    return build


def _fuse_as_halves(rounding: str) -> Scalar:
    """Return the directed fma of one bf16, which the manual does not have: ptxas takes the operands for f16, ignores
    `.relu` and `.oob`, and rounds the f32 result to the nearest f16. It rounds pairs to nearest."""

    def whole(a: int, b: int, c: int) -> int:
        number = _fuse(f.decode(a, "f16"), f.decode(b, "f16"), f.decode(c, "f16"), rounding)
        return f.code(f.decode(f.code(number, "f32", rounding), "f32"), "f16")

    return whole


def _sum(a: f.Number, b: f.Number, rounding: str) -> f.Number:
    return f.add(a, b, rounding)


def _difference(a: f.Number, b: f.Number, rounding: str) -> f.Number:
    return f.add(a, f.negate(b), rounding)


def _product(a: f.Number, b: f.Number, rounding: str) -> f.Number:
    return f.multiply(a, b)


def _fuse(a: f.Number, b: f.Number, c: f.Number, rounding: str) -> f.Number:
    return f.add(f.multiply(a, b), c, rounding)


def _quotient(a: f.Number, b: f.Number, rounding: str) -> f.Number:
    return f.divide(a, b)


def _reciprocal(a: f.Number, rounding: str) -> f.Number:
    return f.divide(f.Number(False, Fraction(1)), a)


def _build_directed(function: Exact) -> Builder:
    """Return the builder of an operation that is exact only where it names a direction, or where old PTX implies one:
    mad on sm_20, and every f64."""
    inner = _build_rounded(function)

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        is_exact_by_default = modifiers[-1] == "f64" or (case.opcode == "mad" and case.target.arch >= 20)
        exact = modifiers[0] in f.ROUNDINGS or (is_exact_by_default and "approx" not in modifiers)
        return inner(modifiers, case) if exact else None

    return build


def _sqrt(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    if modifiers[0] not in f.ROUNDINGS and modifiers != ("f64",):
        return None
    name, flush = modifiers[-1], "ftz" in modifiers
    rounding = modifiers[0] if modifiers[0] in f.ROUNDINGS else "rn"

    def whole(a: int) -> int:
        number = f.decode(a, name, flush)
        if number.missing or (number.negative and number.size):
            return f.code(f.NAN, name)
        if number.infinite or not number.size:
            return f.code(number, name)
        return round_root(number.value, name, rounding)

    return whole


def _signs(change: Callable[[f.Number], bool]) -> Builder:
    """Return the builder of `abs` and `neg`, which change only the sign, and flush only with `.ftz`."""

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        name, count = lanes_of(modifiers[-1])
        if name not in f.WIDTHS:
            return None
        width = f.WIDTHS[name]

        def whole(a: int) -> int:
            word = 0
            for lane in range(count):
                bits = a >> lane * width & ((1 << width) - 1)
                number = f.decode(bits, name, "ftz" in modifiers)
                magnitude = bits & ((1 << width - 1) - 1) if number.size is None or number.size else 0
                word |= (change(number) << width - 1 | magnitude) << lane * width
            return word

        return whole

    return build


def _extreme(greatest: bool) -> Builder:
    """Return the builder of `max` or `min`."""

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        name, count = lanes_of(modifiers[-1])
        if name not in f.WIDTHS or ("xorsign" in modifiers and "abs" not in modifiers):
            return None
        width, flush = f.WIDTHS[name], "ftz" in modifiers

        def select(bits: list[int]) -> int:
            numbers = [f.decode(b, name, flush) for b in bits]
            sign = sum(b >> width - 1 for b in bits) & 1
            if "abs" in modifiers:
                numbers = [f.Number(False, n.size) for n in numbers]
            present = [n for n in numbers if not n.missing]
            if not present or ("NaN" in modifiers and len(present) < len(numbers)):
                return f.code(f.NAN, name)
            best = (max if greatest else min)(present, key=lambda n: (n.rank, not n.negative))
            best = f.Number(bool(sign), best.size) if "xorsign" in modifiers else best
            return f.code(best, name, flush=flush)

        def whole(*bits: int) -> int:
            mask = (1 << width) - 1
            return sum(select([b >> n * width & mask for b in bits]) << n * width for n in range(count))

        return whole

    return build


def _testp(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    question, name = modifiers
    smallest = Fraction(2) ** (-126 if name == "f32" else -1022)

    def whole(a: int) -> int:
        number = f.decode(a, name)
        size = number.size
        return {
            "finite": not number.missing and not number.infinite,
            "infinite": number.infinite,
            "number": not number.missing,
            "notanumber": number.missing,
            "normal": size is not None and not number.infinite and (size >= smallest or not size),
            "subnormal": size is not None and 0 < size < smallest,
        }[question]

    return whole


def _copysign(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    top = 1 << f.WIDTHS[modifiers[-1]] - 1

    def whole(a: int, b: int) -> int:
        return (a & top) | (b & (top - 1))

    return whole


BUILDERS: dict[str, Builder] = {
    "add": _build_rounded(_sum),
    "sub": _build_rounded(_difference),
    "mul": _build_rounded(_product),
    "fma": _build_directed(_fuse),
    "mad": _build_directed(_fuse),
    "div": _build_directed(_quotient),
    "rcp": _build_directed(_reciprocal),
    "sqrt": _sqrt,
    "abs": _signs(lambda number: False),
    "neg": _signs(lambda number: not number.negative),
    "min": _extreme(False),
    "max": _extreme(True),
    "testp": _testp,
    "copysign": _copysign,
}
