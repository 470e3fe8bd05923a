"""The format strings of `printf` in device code: the arguments of each conversion, and where `vprintf` finds them.

Knows neither registers nor memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 1 << 16
"""Bytes of one string, and characters of one field."""
_MOST_ARGUMENTS = 32
"""CUDA programming guide, formatted output: the maximum in device code."""

_FIELD = re.compile(
    rb"%(?P<flags>[-+ #0]*)(?P<width>\*|\d+)?(?:\.(?P<precision>\*|\d*))?(?P<size>hh|h|ll|l|j|z|t|L)?(?P<kind>.)?",
    re.DOTALL,
)
SIGNED, UNSIGNED, FLOATS = "di", "ouxX", "aAeEfFgG"
_BITS = {"hh": 8, "h": 16, "": 32}
"""Bits of an integer by its length modifier; all others mean 64."""


class Unprintable(ValueError):
    """A format that is undefined in C or prints without bound; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Field:
    """One conversion specification. A width or precision of `*` is an argument, None is unspecified."""

    text: str
    flags: str
    width: int | str | None
    precision: int | str | None
    size: str
    kind: str

    @property
    def bits(self) -> int:
        """The bits of an integer of this length modifier."""
        return _BITS.get(self.size, 64)

    @property
    def dtypes(self) -> list[str]:
        """The types of the arguments that the field consumes, in order."""
        stars = ["i4" for part in (self.width, self.precision) if part == "*"]
        if self.kind in FLOATS:
            return [*stars, "f8"]
        wide = self.kind in "sp" or (self.kind != "c" and self.bits == 64)
        return [*stars, ("i" if self.kind in SIGNED else "u") + ("8" if wide else "4")]


Parts = list[bytes | Field]


def parse_format(text: bytes) -> Parts:
    """Return the literal parts and the fields of a format."""
    parts: Parts = []
    end = 0
    for match in _FIELD.finditer(text):
        parts += [text[end : match.start()], b"%" if match[0] == b"%%" else _parse_field(match)]
        end = match.end()
    count = sum(len(part.dtypes) for part in parts if isinstance(part, Field))
    if count > _MOST_ARGUMENTS:
        raise Unprintable(
            f"the format takes {count} arguments, but printf in device code takes at most {_MOST_ARGUMENTS}"
        )
    return [*parts, text[end:]]


def list_argument_offsets(parts: Parts) -> list[tuple[int, str]]:
    """Return the offset of each argument in the buffer of `vprintf`, and its type: each is aligned to its size."""
    offsets: list[tuple[int, str]] = []
    end = 0
    for dtype in (dtype for part in parts if isinstance(part, Field) for dtype in part.dtypes):
        size = int(dtype[1])
        offset = -(-end // size) * size
        offsets.append((offset, dtype))
        end = offset + size
    return offsets


def _parse_field(match: re.Match[bytes]) -> Field:
    text = match[0].decode("latin-1")
    flags, width, precision, size, kind = ((group or b"").decode("latin-1") for group in match.groups())
    if kind == "n":
        raise Unprintable("`%n` writes to memory, which printf in device code does not support")
    wide_text = kind in ("c", "s") and size
    if not kind or kind not in SIGNED + UNSIGNED + FLOATS + "csp" or wide_text:
        raise Unprintable(f"printf in device code has no conversion `{text}`; it supports %cdiouxXpeEfFgGaAs")
    precision = None if match["precision"] is None else precision or "0"
    field = Field(text, flags, _parse_count(width or None, text), None, size, kind)
    return Field(text, flags, field.width, _parse_count(precision, text, is_bounded=kind != "s"), size, kind)


def _parse_count(digits_text: str | None, text: str, *, is_bounded: bool = True) -> int | str | None:
    """Return a width or precision; a `bounded` one is the minimum number of characters that a field prints."""
    if digits_text is None or digits_text == "*":
        return digits_text
    digits = digits_text.lstrip("0")[:10] or "0"
    return check_within(int(digits), text) if is_bounded else int(digits)


def check_within(count: int, text: str) -> int:
    """Return a number of characters; refuse one that prints without bound."""
    if count > LONGEST:
        raise Unprintable(f"`{text}` prints {count} characters or more, but a field has {LONGEST} at most")
    return count
