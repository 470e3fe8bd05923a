"""Formats what a kernel prints, as C's `printf` does, from arguments as CUDA packs them, and shows it.

Knows no memory.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.diagnostics import visible

LONGEST = 1 << 16
"""Bytes of one string, and characters of one field."""
MOST_PRINTED = 1 << 24
"""Characters of one launch."""
_MOST_ARGUMENTS = 32
"""CUDA programming guide, formatted output: device code passes no more."""

_FIELD = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?(?P<size>hh|h|ll|l|j|z|t|L)?(?P<kind>.)?",
    re.DOTALL,
)
_SIGNED, _UNSIGNED, _FLOATS = "di", "ouxX", "aAeEfFgG"
_BITS = {"hh": 8, "h": 16, "": 32}
"""Bits of an integer by its length modifier; all others say 64."""

String = Callable[[int, int | None], bytes]
"""Reads the string at an address, up to its NUL or to so many bytes."""


class Unprintable(ValueError):
    """A format that C leaves undefined or that prints without bound; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Field:
    """One conversion specification. A width or precision of `*` is an argument, None is not stated."""

    text: str
    flags: str
    width: int | str | None
    precision: int | str | None
    size: str
    kind: str

    @property
    def dtypes(self) -> list[str]:
        """What the field takes from the arguments, in order."""
        stars = ["i4" for part in (self.width, self.precision) if part == "*"]
        if self.kind in _FLOATS:
            return [*stars, "f8"]
        wide = self.kind in "sp" or (self.kind != "c" and _bits(self) == 64)
        return [*stars, ("i" if self.kind in _SIGNED else "u") + ("8" if wide else "4")]


Parts = list[bytes | Field]


def parse_format(text: bytes) -> Parts:
    """Return the literal parts and the fields of a format."""
    parts: Parts = []
    end = 0
    for found in _FIELD.finditer(text):
        parts += [text[end : found.start()], b"%" if found[0] == b"%%" else _field(found)]
        end = found.end()
    count = sum(len(part.dtypes) for part in parts if isinstance(part, Field))
    if count > _MOST_ARGUMENTS:
        raise Unprintable(f"the format takes {count} arguments, device code passes {_MOST_ARGUMENTS} at most")
    return [*parts, text[end:]]


def argument_offsets(parts: Parts) -> list[tuple[int, str]]:
    """Return where each argument lies in the buffer of `vprintf`, and its type: each aligned to its own size."""
    placed: list[tuple[int, str]] = []
    end = 0
    for dtype in (dtype for part in parts if isinstance(part, Field) for dtype in part.dtypes):
        size = np.dtype(dtype).itemsize
        offset = -(-end // size) * size
        placed.append((offset, dtype))
        end = offset + size
    return placed


def formatted(parts: Parts, arguments: list[Any], string: String) -> str:
    """Return what a format prints for these arguments; bytes that are not UTF-8 are shown as `\\xff`."""
    made, rest = bytearray(), iter(arguments)
    for part in parts:
        made += part if isinstance(part, bytes) else _converted(part, [next(rest) for _ in part.dtypes], string)
    return made.decode("utf-8", "backslashreplace")


def _field(found: re.Match[bytes]) -> Field:
    text = found[0].decode("latin-1")
    flags, width, precision, size, kind = ((group or b"").decode("latin-1") for group in found.groups())
    if kind == "n":
        raise Unprintable("`%n` writes to memory, which device code's printf does not do")
    wide_text = kind in ("c", "s") and size
    if not kind or kind not in _SIGNED + _UNSIGNED + _FLOATS + "csp" or wide_text:
        raise Unprintable(f"`{text}` is no conversion of device code's printf, which knows %cdiouxXpeEfFgGaAs")
    precision = None if found["precision"] is None else precision or "0"
    made = Field(text, flags, _count(width or None, text), None, size, kind)
    return Field(text, flags, made.width, _count(precision, text, bounded=kind != "s"), size, kind)


def _count(given: str | None, text: str, *, bounded: bool = True) -> int | str | None:
    """Return a width or precision; a `bounded` one is the least number of characters that a field prints."""
    if given is None or given == "*":
        return given
    digits = given.lstrip("0")[:10] or "0"
    return _within(int(digits), text) if bounded else int(digits)


def _within(count: int, text: str) -> int:
    if count > LONGEST:
        raise Unprintable(f"`{text}` prints {count} characters or more, one field has {LONGEST} at most")
    return count


def _bits(field: Field) -> int:
    return _BITS.get(field.size, 64)


def _converted(field: Field, values: list[Any], string: String) -> bytes:
    flags, width, precision = field.flags, field.width, field.precision
    if width == "*":
        width = int(values.pop(0))
        flags, width = (flags + "-" if width < 0 else flags), _within(abs(width), field.text)
    if precision == "*":
        precision = int(values.pop(0))
        precision = None if precision < 0 else precision
        if precision is not None and field.kind != "s":
            _within(precision, field.text)
    assert not isinstance(width, str)
    assert not isinstance(precision, str)
    value = values.pop()
    if field.kind == "s":
        text = string(int(value), precision) if value else b"(null)" if precision is None or precision > 5 else b""
        return _padded(flags, width, b"", text)
    if field.kind == "c":
        return _padded(flags, width, b"", bytes([int(value) & 0xFF]))
    if field.kind == "p" and not value:
        return _padded(flags, width, b"", b"(nil)")
    if field.kind in _FLOATS:
        sign, digits = _floating(field.kind, flags, precision, float(value))
        zeros = "0" in flags and math.isfinite(value)
    else:
        sign, digits = _integer(field, flags, precision, int(value))
        zeros = "0" in flags and precision is None
    return _padded(flags, width, sign.encode(), digits.encode(), zeros)


def _padded(flags: str, width: int | None, sign: bytes, text: bytes, zeros: bool = False) -> bytes:
    missing = max(0, (width or 0) - len(sign) - len(text))
    if "-" in flags:
        return sign + text + b" " * missing
    return sign + b"0" * missing + text if zeros else b" " * missing + sign + text


def _sign(flags: str, negative: bool) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _integer(field: Field, flags: str, precision: int | None, value: int) -> tuple[str, str]:
    """Return what stands before the zeros that fill a field, and the digits."""
    if field.kind == "p":
        return "0x", f"{value:x}".rjust(precision or 0, "0")
    bits = _bits(field)
    value &= (1 << bits) - 1
    if field.kind in _SIGNED:
        value -= (value >> (bits - 1)) << bits
        sign, base = _sign(flags, value < 0), "d"
    else:
        sign, base = "", field.kind.replace("u", "d")
    digits = "" if precision == 0 and not value else format(abs(value), base)
    digits = digits.rjust(precision or 0, "0")
    if "#" in flags and field.kind == "o" and not digits.startswith("0"):
        digits = "0" + digits
    if "#" in flags and field.kind in "xX" and value:
        sign = "0" + field.kind
    return sign, digits


def _floating(kind: str, flags: str, precision: int | None, value: float) -> tuple[str, str]:
    """Return what stands before the zeros that fill a field, and the digits."""
    sign = _sign(flags, math.copysign(1, value) < 0)
    exact = "#" if "#" in flags else ""
    if not math.isfinite(value):
        text = "nan" if math.isnan(value) else "inf"
    elif kind in "aA":
        sign, text = sign + "0" + ("x" if kind == "a" else "X"), _hexadecimal(abs(value), precision, bool(exact))
    else:
        text = format(abs(value), f"{exact}.{6 if precision is None else precision}{kind}")
    return sign, text.upper() if kind.isupper() else text


def _hexadecimal(value: float, precision: int | None, point: bool) -> str:
    """Return a number as `1.8p+1`, rounded to the nearest even digit."""
    exponent = max(math.frexp(value)[1] - 1, -1022) if value else 0
    fraction = int(math.ldexp(value, 52 - exponent))
    digits = 13
    if precision is None:
        while digits and not fraction & 15:
            fraction, digits = fraction >> 4, digits - 1
    elif precision < 13:
        step = 4 * (13 - precision)
        half, low = 1 << (step - 1), fraction & ((1 << step) - 1)
        fraction, digits = fraction >> step, precision
        fraction += low > half or (low == half and fraction & 1)
    lead, rest = fraction >> (4 * digits), fraction & ((1 << (4 * digits)) - 1)
    tail = (f"{rest:0{digits}x}" if digits else "").ljust(precision or 0, "0")
    return f"{lead:x}{'.' if tail or point else ''}{tail}p{exponent:+d}"


class Printed:
    """The text that a launch has printed so far; a terminal gets no control characters."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def show(self, texts: Sequence[str]) -> None:
        """Print texts and keep them. `contextlib.redirect_stdout` sends them elsewhere, to None for silence."""
        self._texts += texts
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            return
        text = visible("".join(texts)) if sys.stdout.isatty() else "".join(texts)
        try:
            sys.stdout.write(text)
        except UnicodeEncodeError:
            sys.stdout.write(text.encode(sys.stdout.encoding, "backslashreplace").decode(sys.stdout.encoding))
        sys.stdout.flush()

    def __str__(self) -> str:
        return "".join(self._texts)
