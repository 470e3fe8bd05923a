"""One tensor-core dot product with rationals, term by term: the reference for the vectorized ones."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isfinite, isinf, isnan, nan

from tests.sim.numerics import exact

LEAST = {"f32": -126, "tf32": -126, "bf16": -126, "f16": -14, "e5m2": -14, "e4m3": -6, "e3m2": -2, "e2m3": 0, "e2m1": 0}
NO_VALUE = -126


def exponent(x: float, name: str) -> int:
    return max(exact.binade(abs(Fraction(x))), LEAST[name]) if x else NO_VALUE


def cut(x: Fraction, unit: Fraction) -> Fraction:
    """Return x truncated toward zero to a multiple of the unit."""
    whole = abs(x) // unit * unit
    return whole if x >= 0 else -whole


def special_sum(terms: list[float]) -> float | None:
    """Return the infinity or NaN that results from the terms, if any."""
    if any(isnan(term) for term in terms) or (inf in terms and -inf in terms):
        return nan
    return next((term for term in terms if isinf(term)), None)


def finish(total: Fraction, output: str) -> float:
    if output == "f16":
        return value(exact.encode(total, "f16", "rn"), 10, 15)
    digits = 13 if output == "f32_13" else 23
    if total == 0:
        return 0.0
    place = max(exact.binade(abs(total)), -126)
    truncation = cut(total, Fraction(2) ** (place - digits))
    if abs(truncation) >= 2**128:
        return inf if truncation > 0 else -inf
    return float(truncation)


def value(code: int, mantissa: int, bias: int) -> float:
    sign = -1.0 if code >> 15 else 1.0
    magnitude = code & 0x7FFF
    if magnitude >> mantissa == 31:
        return sign * inf
    field = magnitude >> mantissa
    fraction = (magnitude & ((1 << mantissa) - 1)) | ((1 << mantissa) if field else 0)
    return sign * float(Fraction(fraction) * Fraction(2) ** (max(field, 1) - bias - mantissa))


def add_products(
    a: list[float], b: list[float], c: float, names: tuple[str, str], fraction: int, output: str, scale: int
) -> float:
    """Return one step: the products and the addend truncated and summed, and the result rounded."""
    special = special_sum([*(_product(x, y) for x, y in zip(a, b, strict=True)), c])
    if special is not None:
        return special
    terms = [(Fraction(c), exponent(c, "f16" if output == "f16" else "f32"))]
    for x, y in zip(a, b, strict=True):
        terms.append(
            (Fraction(x) * Fraction(y) * Fraction(2) ** scale, exponent(x, names[0]) + exponent(y, names[1]) + scale)
        )
    unit = Fraction(2) ** (max(place for _, place in terms) - fraction)
    return finish(sum((cut(term, unit) for term, _ in terms), Fraction(0)), output)


def _product(x: float, y: float) -> float:
    if isfinite(x) and isfinite(y):
        return 0.0
    return x * y


def chain(
    a: list[float],
    b: list[float],
    c: float,
    names: tuple[str, str],
    fraction: int,
    step: int,
    output: str,
    scales: list[int] | None = None,
) -> float:
    """Return a whole dot product, in steps of `step` products."""
    for start in range(0, len(a), step):
        stop = start + step
        c = add_products(
            a[start:stop], b[start:stop], c, names, fraction, output, scales[start // step] if scales else 0
        )
    return c


def chain_unpacked(a: list[float], b: list[float], c: float, span: int, fraction: int, step: int, output: str) -> float:
    """Return a dot product of f16 factors, `span` in a register: lower halves, upper halves, then the addend."""
    total = 0.0
    for upper in (0, 1):
        half = [k for k in range(len(a)) if k % span // (span // 2) == upper]
        total = chain([a[k] for k in half], [b[k] for k in half], total, ("f16", "f16"), fraction, step, output)
    if not (isfinite(total) and isfinite(c)):
        return total + c
    exact_sum = Fraction(total) + Fraction(c)
    if output == "f16":
        return value(exact.encode(exact_sum, "f16", "rn"), 10, 15)
    code = exact.encode(exact_sum, "f32", "rn")
    return inf if code == 0x7F800000 else -inf if code == 0xFF800000 else float(_single(code))


def _single(code: int) -> Fraction:
    field, fraction = code >> 23 & 255, code & 0x7FFFFF
    size = Fraction(fraction | bool(field) << 23) * Fraction(2) ** (max(field, 1) - 150)
    return -size if code >> 31 else size


def block(a: list[float], b: list[float], scale_a: list[float], scale_b: list[float], c: float, least: int) -> float:
    """Return the block-scaled product of 4-bit factors: exact runs of 16, truncated at the exponents of their
    scales."""
    size = len(a) // len(scale_a)
    terms = [(Fraction(c), exponent(c, "f32"))]
    for start in range(0, len(a), 16):
        run = sum(
            (Fraction(x) * Fraction(y) for x, y in zip(a[start : start + 16], b[start : start + 16], strict=True))
        )
        pair = scale_a[start // size], scale_b[start // size]
        places = [max(exact.binade(Fraction(x)), least) if x else NO_VALUE for x in pair]
        terms.append((run * Fraction(pair[0]) * Fraction(pair[1]), sum(places)))
    unit = Fraction(2) ** (max(place for _, place in terms) - 35)
    return finish(sum((cut(term, unit) for term, _ in terms), Fraction(0)), "f32")
