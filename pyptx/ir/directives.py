"""Directives as nodes, and the module that contains them."""

from __future__ import annotations

from collections.abc import Sequence

from pyptx.diagnostics import Origin
from pyptx.ir.base import Node
from pyptx.ir.kinds import ScalarType, spell_number
from pyptx.ir.layout import Layout
from pyptx.ir.nodes import FunctionDirective, Param, Statement
from pyptx.ir.operands import separate


class Directive(Statement):
    """The base of statements without code."""

    __slots__ = ()


class Version(Directive):
    """`.version 8.7`. `implied` marks the one that recovery inserts into a text without one."""

    major: int
    minor: int
    implied: bool = False
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return () if self.implied else (".version", f"{spell_number(self.major)}.{spell_number(self.minor)}")


class Target(Directive):
    """`.target sm_90a, debug`: the architecture and its options."""

    targets: tuple[str, ...]
    implied: bool = False
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return () if self.implied else (".target", *separate(self.targets))


class AddressSize(Directive):
    """`.address_size 64`."""

    size: int
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (".address_size", spell_number(self.size))


class PragmaDirective(Directive):
    """`.pragma "nounroll";` – strings without their quotes, further ones in `more`."""

    value: str
    more: tuple[str, ...] = ()
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (".pragma", *separate([f'"{text}"' for text in (self.value, *self.more)]), ";")


class FileDirective(Directive):
    """`.file 1 "a.cu", timestamp, size`."""

    index: int
    path: str
    timestamp: int | None = None
    size: int | None = None
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        stamps = [spell_number(value) for value in (self.timestamp, self.size) if value is not None]
        return (".file", spell_number(self.index), *separate([f'"{self.path}"', *stamps]))


class SectionLabel(Node):
    """A location in a DWARF section: `label`, `.debug_str+16`, `end-start` (`minus`)."""

    name: str
    offset: int | None = None
    minus: str | None = None

    def parts(self) -> Sequence[str | Node]:
        if self.minus is not None:
            return (self.name, "-", self.minus)
        return (self.name,) if self.offset is None else (self.name, "+", *list_signed_parts(self.offset))


class LocDirective(Directive):
    """`.loc 1 21 3, function_name label+4, inlined_at 1 9 3`. `inlined_at` is (file, line, column)."""

    file: int
    line: int
    column: int
    function_name: SectionLabel | None = None
    inlined_at: tuple[int, int, int] | None = None
    intermediate: bool = False
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        word = ".loc_intermediate" if self.intermediate else ".loc"
        out: list[str | Node] = [word, spell_number(self.file), spell_number(self.line), spell_number(self.column)]
        if self.function_name is not None:
            out += [",", "function_name", self.function_name]
        if self.inlined_at is not None:
            out += [",", "inlined_at", *map(spell_number, self.inlined_at)]
        return out


class SectionData(Directive):
    """One line of a DWARF section: `.b8 1, 2, -3`, `.b64 label`, `.b32 end-start`."""

    type: ScalarType
    values: tuple[int | SectionLabel, ...]
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        out: list[str | Node] = [self.type.ptx]
        for value in self.values:
            if len(out) > 1:
                out.append(",")
            out += [value] if isinstance(value, SectionLabel) else list_signed_parts(value)
        return out


class Section(Directive):
    """`.section .debug_info { … }`: labels and data."""

    name: str
    body: tuple[Statement, ...]
    layout: Layout | None = None
    closing: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (".section", self.name, "{")


class DwarfDirective(Directive):
    """A line in the syntax before PTX 2.0: `@@DWARF .byte 1, 2`, `@@DWARF .section .debug_info`, `@@DWARF label:`."""

    keyword: str
    values: tuple[int | str | SectionLabel, ...] = ()
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        if self.keyword == ":":
            return ("@@DWARF", str(self.values[0]), ":")
        out: list[str | Node] = ["@@DWARF", self.keyword]
        for index, value in enumerate(self.values):
            out += [","] if index else []
            out += list_signed_parts(value) if isinstance(value, int) else [value]
        return out


class CallPrototype(Directive):
    """`.callprototype (.param .b32 _) _ (.param .b64 _) .noreturn;` – the preceding `Label` is its name."""

    params: tuple[Param, ...] = ()
    return_params: tuple[Param, ...] | None = None
    directives: tuple[FunctionDirective, ...] = ()
    parens: bool = True
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        returns = () if self.return_params is None else ("(", *separate(self.return_params), ")")
        params = ("(", *separate(self.params), ")") if self.params or self.parens else ()
        return (".callprototype", *returns, "_", *params, *self.directives, ";")


class CallTargets(Directive):
    """`.calltargets f, g;`."""

    targets: tuple[str, ...]
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (".calltargets", *separate(self.targets), ";")


class LabelRange(Node):
    """A label of `.branchtargets`, or with a count a range of labels: `L<4>` is `L0 … L3`."""

    name: str
    count: int | None = None

    def parts(self) -> Sequence[str | Node]:
        return (self.name,) if self.count is None else (self.name, "<", spell_number(self.count), ">")


class BranchTargets(Directive):
    """`.branchtargets A, B, L<4>;`."""

    targets: tuple[LabelRange, ...]
    layout: Layout | None = None
    origin: Origin | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Every listed label, with ranges expanded."""
        names: list[str] = []
        for item in self.targets:
            names += [item.name] if item.count is None else [f"{item.name}{i}" for i in range(item.count)]
        return tuple(names)

    def parts(self) -> Sequence[str | Node]:
        return (".branchtargets", *separate(self.targets), ";")


class AliasDirective(Directive):
    """`.alias name, aliasee;`."""

    name: str
    aliasee: str
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (".alias", self.name, ",", self.aliasee, ";")


class SkippedText(Directive):
    """Text that could not be parsed; only `parse(text, recover=True)` creates it."""

    text: str
    layout: Layout | None = None
    origin: Origin | None = None

    def parts(self) -> Sequence[str | Node]:
        return (self.text,)


class Module(Node):
    """A whole file. `directives` holds everything after the header in order, including functions; `layout` is the gap
    at the end of the text."""

    version: Version
    target: Target
    address_size: AddressSize | None = None
    directives: tuple[Statement, ...] = ()
    layout: Layout | None = None
    origin: Origin | None = None

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The header and everything after it."""
        header = (
            (self.version, self.target) if self.address_size is None else (self.version, self.target, self.address_size)
        )
        return (*header, *self.directives)

    def parts(self) -> Sequence[str | Node]:
        return ()


def list_signed_parts(value: int) -> list[str]:
    """Return the tokens of an integer, with its sign separate."""
    text = spell_number(value)
    return ["-", text[1:]] if text.startswith("-") else [text]
