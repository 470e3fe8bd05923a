"""Format and print the output of a kernel like C's `printf`, from arguments in CUDA's packing.

Knows no memory.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pyptx.diagnostics import escape_unprintable
from pyptx.isa.printf import FLOATS, SIGNED, Field, Parts, check_within
from pyptx.numbers import FORMATS

MOST_PRINTED = 1 << 24
"""The most characters that a launch may print."""
String = Callable[[int, int | None], bytes]
"""Reads the string at an address, up to its NUL or a number of bytes."""


def format_output(parts: Parts, arguments: list[Any], string: String) -> str:
    """Format these arguments; bytes that are not UTF-8 become `\\xff`."""
    output, remaining = bytearray(), iter(arguments)
    for part in parts:
        output += part if isinstance(part, bytes) else _convert(part, [next(remaining) for _ in part.dtypes], string)
    return output.decode("utf-8", "backslashreplace")


def _convert(field: Field, values: list[Any], string: String) -> bytes:
    flags, width, precision = field.flags, field.width, field.precision
    if width == "*":
        width = int(values.pop(0))
        flags, width = (flags + "-" if width < 0 else flags), check_within(abs(width), field.text)
    if precision == "*":
        precision = int(values.pop(0))
        precision = None if precision < 0 else precision
        if precision is not None and field.kind != "s":
            check_within(precision, field.text)
    assert not isinstance(width, str)
    assert not isinstance(precision, str)
    value = values.pop()
    if field.kind == "s":
        text = string(int(value), precision) if value else b"(null)" if precision is None or precision > 5 else b""
        return _pad(flags, width, b"", text)
    if field.kind == "c":
        return _pad(flags, width, b"", bytes([int(value) & 0xFF]))
    if field.kind == "p" and not value:
        return _pad(flags, width, b"", b"(nil)")
    if field.kind in FLOATS:
        sign, digits = _format_float(field.kind, flags, precision, float(value))
        zeros = "0" in flags and math.isfinite(value)
    else:
        sign, digits = _format_integer(field, flags, precision, int(value))
        zeros = "0" in flags and precision is None
    return _pad(flags, width, sign.encode(), digits.encode(), zeros)


def _pad(flags: str, width: int | None, sign: bytes, text: bytes, zeros: bool = False) -> bytes:
    pad_size = max(0, (width or 0) - len(sign) - len(text))
    if "-" in flags:
        return sign + text + b" " * pad_size
    return sign + b"0" * pad_size + text if zeros else b" " * pad_size + sign + text


def _format_sign(flags: str, negative: bool) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _format_integer(field: Field, flags: str, precision: int | None, value: int) -> tuple[str, str]:
    """Return the prefix, which precedes zeros that fill the field, and the digits."""
    if field.kind == "p":
        return "0x", f"{value:x}".rjust(precision or 0, "0")
    bits = field.bits
    value &= (1 << bits) - 1
    if field.kind in SIGNED:
        value -= (value >> (bits - 1)) << bits
        sign, base = _format_sign(flags, value < 0), "d"
    else:
        sign, base = "", field.kind.replace("u", "d")
    digits = "" if precision == 0 and not value else format(abs(value), base)
    digits = digits.rjust(precision or 0, "0")
    if "#" in flags and field.kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and field.kind in "xX" and value:
        sign = "0" + field.kind
    return sign, digits


def _format_float(kind: str, flags: str, precision: int | None, value: float) -> tuple[str, str]:
    """Return the prefix, which precedes zeros that fill the field, and the digits."""
    sign = _format_sign(flags, math.copysign(1, value) < 0)
    exact = "#" if "#" in flags else ""
    if not math.isfinite(value):
        text = "nan" if math.isnan(value) else "inf"
    elif kind in "aA":
        sign, text = sign + "0" + ("x" if kind == "a" else "X"), _format_hexadecimal(abs(value), precision, bool(exact))
    else:
        text = format(abs(value), f"{exact}.{6 if precision is None else precision}{kind}")
    return sign, text.upper() if kind.isupper() else text


def _format_hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """Format a number as `1.8p+1`, rounded to nearest even."""
    form = FORMATS["f64"]
    exponent = max(math.frexp(value)[1] - 1, form.least_exponent) if value else 0
    fraction = int(math.ldexp(value, form.mantissa - exponent))
    digits = all_digits = form.mantissa // 4
    if precision is None:
        while digits and not fraction & 15:
            fraction, digits = fraction >> 4, digits - 1
    elif precision < all_digits:
        step = 4 * (all_digits - precision)
        half, low = 1 << (step - 1), fraction & ((1 << step) - 1)
        fraction, digits = fraction >> step, precision
        fraction += low > half or (low == half and fraction & 1)
    lead, fraction_bits = fraction >> (4 * digits), fraction & ((1 << (4 * digits)) - 1)
    tail = (f"{fraction_bits:0{digits}x}" if digits else "").ljust(precision or 0, "0")
    return f"{lead:x}{'.' if tail or point else ''}{tail}p{exponent:+d}"


class Printed:
    """The text that a launch has printed. Control characters are not sent to a terminal."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def show(self, texts: Sequence[str]) -> None:
        """Print texts and keep them. `contextlib.redirect_stdout` redirects them, or silences them with None."""
        self._texts += texts
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            return
        text = escape_unprintable("".join(texts)) if sys.stdout.isatty() else "".join(texts)
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.write(text.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding))
        sys.stdout.flush()

    def __str__(self) -> str:
        return "".join(self._texts)
