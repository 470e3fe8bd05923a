"""Operands and constant expressions: frozen values without layout, so that statements can share them.

A node's tokens are computed from its fields (`parts`); `text_of` joins them with the default spacing and caches the
result.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pyptx.ir.base import Node, tokens
from pyptx.ir.kinds import ScalarType

WARP_SZ = 32


class Operand(Node):
    """The base of operands and their parts."""

    __slots__ = ("_text",)

    if TYPE_CHECKING:
        _text: ClassVar[str | None]


class RegisterOperand(Operand):
    """A register, including special registers and components: `%r1`, `%tid.x`, `%v.y`, `%r2.b0`, `_`."""

    name: str

    @property
    def base(self) -> str:
        """The name without its component."""
        return self.name.partition(".")[0]

    @property
    def selector(self) -> str | None:
        """The component (`.x`, `.b0`, `.h1`), or None."""
        return self.name[len(self.base) :] or None

    def parts(self) -> Sequence[str | Node]:
        return name_parts(self.name)


class ImmediateOperand(Operand):
    """A number with its spelling and sign: `16`, `-1`, `0x10U`, `0F3F800000`, `1e5`, `WARP_SZ`."""

    text: str

    @property
    def value(self) -> int | float:
        """The value of the spelling."""
        return number_value(self.text)

    def parts(self) -> Sequence[str | Node]:
        return number_parts(self.text)


class LabelOperand(Operand):
    """A label or another symbol: a variable, a parameter, a function, a register declared without `%`."""

    name: str

    def parts(self) -> Sequence[str | Node]:
        return (self.name,)


class VectorOperand(Operand):
    """`{a, b}`; in an initializer, a nested list of values."""

    elements: tuple[Operand, ...]

    def parts(self) -> Sequence[str | Node]:
        return ("{", *separate(self.elements), "}")


class ParenthesizedOperand(Operand):
    """`(a, b)`: the lists of a call; with one element also a parenthesized expression."""

    elements: tuple[Operand, ...]

    def parts(self) -> Sequence[str | Node]:
        return ("(", *separate(self.elements), ")")


class AddressOperand(Operand):
    """`[base]`, `[base+offset]`, `[base+4*8]` (`offset_expression`), `[map, {x, y}, …]` (`rest`: what follows the
    first comma). `base` is a register, a symbol or a number."""

    base: str
    offset: str | None = None
    rest: tuple[Operand, ...] = ()
    offset_expression: Operand | None = None

    def parts(self) -> Sequence[str | Node]:
        number = self.base[0] in "-.0123456789"
        out: list[str | Node] = ["[", *(number_parts(self.base) if number else name_parts(self.base))]
        if self.offset is not None:
            out += ["+", *number_parts(self.offset)]
        elif self.offset_expression is not None:
            out += ["+", self.offset_expression]
        for operand in self.rest:
            out += [",", operand]
        return (*out, "]")


class ConstantAddressOperand(Operand):
    """`[expression]`: an absolute address other than a plain number, as in `[(4)]` or `[4*8]`."""

    expression: Operand
    rest: tuple[Operand, ...] = ()

    def parts(self) -> Sequence[str | Node]:
        return ("[", *separate((self.expression, *self.rest)), "]")


class IndexedOperand(Operand):
    """`array[index]`, an address without enclosing brackets; the index is a constant or a register."""

    name: str
    index: Operand

    def parts(self) -> Sequence[str | Node]:
        return (*name_parts(self.name), "[", self.index, "]")


class NegatedOperand(Operand):
    """`!x` of a register."""

    operand: Operand

    def parts(self) -> Sequence[str | Node]:
        return ("!", self.operand)


class PipeOperand(Operand):
    """`a|b`: two destinations."""

    left: Operand
    right: Operand

    def parts(self) -> Sequence[str | Node]:
        return (self.left, "|", self.right)


class UnaryOperand(Operand):
    """`-x`, `+x`, `~x`, `!x` of a constant expression; `-x` of a register."""

    operator: str
    operand: Operand

    def parts(self) -> Sequence[str | Node]:
        return (self.operator, self.operand)


class BinaryOperand(Operand):
    """A constant expression of two operands, or `symbol+constant`, `register+constant`."""

    operator: str
    left: Operand
    right: Operand

    def parts(self) -> Sequence[str | Node]:
        return (self.left, self.operator, self.right)


class ConditionalOperand(Operand):
    """`test ? then : other`."""

    test: Operand
    then: Operand
    other: Operand

    def parts(self) -> Sequence[str | Node]:
        return (self.test, "?", self.then, ":", self.other)


class CastOperand(Operand):
    """`(.s64) x` or `(.u64) x`."""

    type: ScalarType
    operand: Operand

    def parts(self) -> Sequence[str | Node]:
        return ("(", self.type.ptx, ")", self.operand)


class GenericOperand(Operand):
    """`generic(symbol)` in an initializer."""

    symbol: str

    def parts(self) -> Sequence[str | Node]:
        return ("generic", "(", self.symbol, ")")


class MaskOperand(Operand):
    """`0xFF00(expression)` in an initializer: selected bytes of an address or a constant."""

    mask: str
    operand: Operand

    def parts(self) -> Sequence[str | Node]:
        return (*number_parts(self.mask), "(", self.operand, ")")


class FieldOperand(Operand):
    """`name = value` in the initializer of a texture, sampler or surface."""

    name: str
    value: Operand

    def parts(self) -> Sequence[str | Node]:
        return (self.name, "=", self.value)


def separate(items: Iterable[str | Node]) -> Sequence[str | Node]:
    """Return the items with commas between them."""
    out: list[str | Node] = []
    for item in items:
        out += [",", item] if out else [item]
    return out


def name_parts(name: str) -> Sequence[str]:
    """Return a name and its component as two tokens."""
    base, dot, selector = name.partition(".")
    return (base, dot + selector) if dot and base else (name,)


def number_parts(text: str) -> Sequence[str]:
    """Return a sign and a number as two tokens."""
    return ("-", text[1:]) if text[0] == "-" and len(text) > 1 else (text,)


def number_value(text: str) -> int | float:
    """Return the value of a PTX number, with an optional sign; ValueError if it is not one."""
    if text[:1] == "-":
        return -number_value(text[1:])
    if text == "WARP_SZ":
        return WARP_SZ
    kind = text[:2].lower()
    if kind == "0f" and len(text) == 10:
        return struct.unpack(">f", bytes.fromhex(text[2:]))[0]
    if kind == "0d" and len(text) == 18:
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    digits = text.removesuffix("U")
    if kind in ("0x", "0b"):
        return int(digits, 0)
    if digits.isdigit():
        return int(digits, 8) if len(digits) > 1 and digits[0] == "0" else int(digits)
    return float(text)


def text_of(operand: Operand) -> str:
    """Return the operand with the default spacing: a space after each comma, none elsewhere."""
    text = operand._text  # pyright: ignore[reportPrivateUsage]
    if text is None:
        text = _format_plain(operand) or join_tokens(tokens(operand))
        cast("Any", type(operand))._text.__set__(operand, text)
    return text


def _format_plain(operand: Operand) -> str | None:
    """Return the text of the most frequent operands without splitting it into tokens; None for any other."""
    kind = type(operand)
    if kind is ImmediateOperand:
        return cast("ImmediateOperand", operand).text
    if kind in _LEAVES:
        return cast("RegisterOperand", operand).name
    if kind is VectorOperand:
        return _format_plain_list("{", cast("VectorOperand", operand).elements, "}")
    if kind is AddressOperand:
        address = cast("AddressOperand", operand)
        if address.offset_expression is None:
            head = f"[{address.base}" if address.offset is None else f"[{address.base}+{address.offset}"
            return _format_plain_list(f"{head}, ", address.rest, "]") if address.rest else f"{head}]"
    return None


_LEAVES = frozenset((RegisterOperand, LabelOperand, ImmediateOperand))


def _format_plain_list(opening: str, operands: Sequence[Operand], closing: str) -> str | None:
    """Return operands separated by commas, if all are leaves or vectors of leaves, so that nothing recurses further."""
    for operand in operands:
        if type(operand) not in _LEAVES and (type(operand) is not VectorOperand or opening == "{"):
            return None
    return f"{opening}{', '.join([o._text or text_of(o) for o in operands])}{closing}"  # pyright: ignore[reportPrivateUsage]


def join_tokens(words: Sequence[str]) -> str:
    """Join an operand's tokens with the default spacing."""
    return "".join([word + choose_inner_gap(word, after) for word, after in zip(words, (*words[1:], ""), strict=True)])


def choose_inner_gap(before: str, after: str) -> str:
    """Return the default gap between two tokens of an operand. `5 % 4` needs its spaces: `%4` is a name."""
    return " " if before == "," or (after and (before == "%" or after == "%")) else ""
