"""Fast path for common statements: one regular expression splits them, and tables of pure functions supply their parts.

Duplicates `statements.py` for plain instructions, labels and `.loc`, and leaves everything else to it; tests compare
the two. The tables outlive a parse, so that many small texts parse as fast as a large one; full tables are replaced.
"""

from __future__ import annotations

import re
from _thread import allocate_lock
from collections.abc import Callable
from itertools import repeat
from typing import Any, cast

from pyptx.ir.base import COLUMN_BITS, NOT_COMPARED, list_field_names, tokens
from pyptx.ir.directives import LocDirective, SectionData
from pyptx.ir.layout import Layout, layout_of
from pyptx.ir.nodes import Instruction, Label, Predicate, RegDecl, Statement, VarDecl
from pyptx.ir.operands import (
    AddressOperand,
    ImmediateOperand,
    LabelOperand,
    Operand,
    RegisterOperand,
    join_tokens,
    text_of,
)
from pyptx.parser.cursor import Cursor
from pyptx.parser.declarations import parse_register_declaration, parse_variable_declaration
from pyptx.parser.errors import Failure
from pyptx.parser.lexer import NAME, TAIL
from pyptx.parser.operands import ALONE, parse_operand
from pyptx.parser.places import Lines
from pyptx.parser.sections import parse_section_statement

_LARGEST = 1 << 15
_LONGEST = 1024
"""Longer texts are not cached."""
_SINGLE = "\0"
_statements = re.compile(
    r"([ \t\r\n]*+(?://[^\n]*+\n[ \t\r\n]*+)*+)"
    r"(?:(@!?[%\w$]++[ \t]++)?([a-z][\w$]*+(?:\.[\w$]++(?:::[\w$]++)*+)*+)([ \t]*+)((?!\n)[^;:/\"#?=@]{0,4096}+);"
    r"|((?:[A-Za-z_]|[$%][\w$])[\w$]*+:"
    r"|\.(?:reg|param)[ \t]++[^;/\"#={}\n]{0,200}+;"
    r"|\.loc[ \t]++(?:[1-9]\d{0,99}+|0)[ ](?:[1-9]\d{0,99}+|0)[ ](?:[1-9]\d{0,99}+|0)(?=[ \t]*+\n)(?![ \t\r\n]*+[,/])))"
    rf"({TAIL})|",
    re.ASCII,
).finditer
_data_lines = re.compile(
    r"([ \t\r\n]*+)\.b(?:8|16|32|64)[ \t]++[^\n/\"{}:;@]*+(?://[^\n]*+)?\n(?![ \t\r\n]*+[-+,/#])", re.ASCII
).finditer
_list_parts = re.compile(
    r"(?:\A|(?<=,[ ]))(?:[^,{}()\[\]]|\{[^{}]*+\}|\([^()]*+\)|\[(?:[^\[\]{}]|\{[^{}]*+\})*+\])++(?=,[ ]|\Z)"
).findall
_simple = re.compile(
    r"([ \t]*+)(?:(%[\w$]++)"
    r"|(-?)(\d{1,100}+(?![.\d])|0[xX][\da-fA-F]++|0[fF][\da-fA-F]{8}|0[dD][\da-fA-F]{16})"
    r"|([A-Za-z_$][\w$]++)"
    r"|\[([%A-Za-z_$][\w$]++)(?:\+(-?)([1-9]\d{0,99}+|0))?\])([ \t]*+)",
    re.ASCII,
).fullmatch
_is_name = re.compile(NAME, re.ASCII).fullmatch


# Slots are set directly: nodes refuse assignment, and calling the class takes 1.3 times as long for an instruction.
_SET_NAME, _SET_TEXT = (getattr(RegisterOperand, slot).__set__ for slot in ("name", "_text"))
_SETTERS = tuple(
    getattr(Instruction, slot).__set__ for slot in ("opcode", "modifiers", "operands", "predicate", "layout", "_place")
)

_Entry = tuple[Layout, int, int, int]
"""A layout, the line breaks before its first token, the column after the last of them, and all its line breaks."""


class Heads(dict[str, tuple[str, tuple[str, ...], dict[tuple[str, ...], _Entry]]]):
    """Full opcode -> opcode, modifiers, and the layouts seen with that number of modifiers."""

    def __missing__(self, head: str) -> tuple[str, tuple[str, ...], dict[tuple[str, ...], _Entry]]:
        if len(self) >= _LARGEST:
            raise TablesFull
        opcode, *modifiers = head.split(".")
        entry = self[head] = (opcode, tuple(["." + word for word in modifiers]), {})
        return entry


class Operands(dict[str, Operand]):
    """Text of an operand with its surrounding gaps -> the operand. `shapes` maps the same text to one character that
    represents the gaps among `gaps`, or `_SINGLE` for one token without gaps."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: dict[str, str] = {}
        self.gaps: list[tuple[tuple[str, ...], bool]] = [(("", ""), True)]
        self._known: dict[tuple[tuple[str, ...], bool], str] = {self.gaps[0]: _SINGLE}
        self._lock = allocate_lock()

    def __missing__(self, text: str) -> Operand:
        if len(self) >= _LARGEST:
            raise TablesFull
        node: Any
        if text[:1] == "%" and text[1:].isalnum() and text.isascii():
            node = object.__new__(RegisterOperand)
            _SET_NAME(node, text)
            _SET_TEXT(node, text)
            self[text] = node
            return node
        if len(text) > _LONGEST:
            raise _NotPlain
        node, gaps, default = _parse(text)
        shape = self._assign_character(gaps, default)
        if shape != _SINGLE:
            self.shapes[text] = shape
        self[text] = node
        return node

    def _assign_character(self, gaps: tuple[str, ...], default: bool) -> str:
        character = self._known.get((gaps, default))
        if character is None:
            with self._lock:
                if len(self.gaps) >= _LARGEST:
                    raise TablesFull
                character = chr(len(self.gaps))
                self.gaps.append((gaps, default))
                self._known[gaps, default] = character
        return character


class _NotPlain(Exception):
    """Leaves this statement to the full grammar."""


class TablesFull(Exception):
    """The tables have reached their limit: continue with new ones."""


_Parsed = tuple[Operand, tuple[str, ...], bool]
"""An operand, the gaps around its tokens, and whether the inner gaps are the default."""


def _parse(text: str) -> _Parsed:
    """Parse one operand with its surrounding gaps."""
    match = _simple(text)
    if match is None or "WARP_SZ" in text:
        return _parse_fully(text)
    before, register, sign, number, symbol, base, offset_sign, offset, after = match.groups()
    if register:
        return RegisterOperand(register), (before, after), True
    if symbol:
        return LabelOperand(symbol), (before, after), True
    if number:
        if (number[0] == "0" and number.isdigit() and number != "0") or (sign and number[:2] in ("0f", "0F")):
            return _parse_fully(text)
        return ImmediateOperand(sign + number), (before, "", after) if sign else (before, after), True
    if offset is None:
        return AddressOperand(base), (before, "", "", after), True
    inner = ("",) * (5 if offset_sign else 4)
    return AddressOperand(base, offset_sign + offset), (before, *inner, after), True


def _parse_fully(text: str) -> _Parsed:
    cursor = Cursor(text)
    operand = parse_operand(cursor)
    if cursor.kind != "END" or "\0" in cursor.gap:
        raise _NotPlain
    gaps = (*cursor.gaps, cursor.gap)
    return operand, gaps, _is_default(operand, gaps)


def _is_default(operand: Operand, gaps: tuple[str, ...]) -> bool:
    words = tokens(operand)
    inner = [word + gap for word, gap in zip(words, (*gaps[1:-1], ""), strict=True)]
    return "".join(inner) == join_tokens(words) == text_of(operand)


_Declared = tuple[type[RegDecl | VarDecl], tuple[Any, ...], _Entry]
"""A cached declaration: its class, its fields, its layout."""


class Plain:
    """Parses runs of plain statements, sharing equal parts."""

    __slots__ = ("data", "declared", "guards", "heads", "labels", "layouts", "operands")

    def __init__(self) -> None:
        self.heads = Heads()
        self.operands = Operands()
        self.guards: dict[str, tuple[Predicate, str]] = {}
        self.labels: dict[tuple[str, ...], _Entry] = {}
        self.layouts = 0
        self.declared: dict[tuple[str, str, str], _Declared] = {}
        self.data: dict[str, tuple[SectionData, _Entry]] = {}

    def run(self, text: str, offset: int, append: Callable[[Statement], None], lines: Lines) -> int:
        """Append the plain statements from `offset` on; return where the first other statement starts. Raises
        TablesFull with the position reached in `lines.position`.

        Long: one loop, because each call in it costs a tenth of the speed.
        """
        heads, operand_of = self.heads, self.operands.__getitem__
        shape_of, single, arguments_of = self.operands.shapes.get, repeat(_SINGLE), self.split_arguments
        lines.locate(offset)
        line, line_start = lines.line, lines.line_start
        fresh = line_start == offset
        full = False
        new = object.__new__
        set_opcode, set_modifiers, set_operands, set_predicate, set_layout, set_place = _SETTERS
        node: Any
        stop = offset
        for match in _statements(text, offset):
            lead, guard, head, gap, listing, remainder, tail = match.groups()
            try:
                if head is not None:
                    opcode, modifiers, layouts = heads[head]
                    if not listing:
                        operands, shape = (), ""
                    elif "{" in listing or "(" in listing or ("[" in listing and "," in listing):
                        if "(" in listing and opcode != "call":
                            raise _NotPlain
                        operands, shape = arguments_of(listing)
                    else:
                        texts = listing.split(", ")
                        operands = tuple(map(operand_of, texts))
                        shape = "".join(map(shape_of, texts, single))
                    if guard is None:
                        predicate, key = None, (lead, gap, shape, tail)
                    else:
                        predicate, guard_gap = self.parse_guard(guard)
                        key = (lead, gap, shape, tail, guard_gap)
                    entry = layouts.get(key) or self.find_layout(layouts, opcode, len(modifiers), key)
                    node = new(Instruction)
                    set_opcode(node, opcode)
                    set_modifiers(node, modifiers)
                    set_operands(node, operands)
                    set_predicate(node, predicate)
                elif remainder is None:
                    stop = match.start()
                    break
                elif remainder[-1] == ":":
                    key = (lead, "", tail)
                    entry = self.labels.get(key) or self.find_label_layout(key)
                    node = Label(remainder[:-1])
                elif remainder[-1] == ";":
                    key = (lead, remainder, tail)
                    kind, fields, entry = self.declared.get(key) or self.parse_declaration(key)
                    node = kind(*fields)
                else:
                    file, row, column = remainder[4:].split()
                    key = (lead, remainder[4 : -len(file) - len(row) - len(column) - 2], " ", " ", tail)
                    entry = self.labels.get(key) or self.find_label_layout(key)
                    node = LocDirective(int(file), int(row), int(column))
            except (Failure, _NotPlain, TablesFull) as leaving:
                full = isinstance(leaving, TablesFull)
                stop = match.start()
                break
            layout, newlines, indent, total = entry
            if fresh or newlines:
                place = (line + newlines) << COLUMN_BITS | indent
            else:
                place = line << COLUMN_BITS | match.start() + len(lead) - line_start + 1
            if head is not None:
                set_layout(node, layout)
                set_place(node, place)
            else:
                _complete(node, layout, place)
            append(node)
            if total:
                line += total
                fresh = tail[-1:] == "\n"
                if not fresh:
                    line_start = text.rindex("\n", 0, match.end()) + 1
            elif fresh:
                fresh = False
                line_start = match.start()
        lines.line, lines.position = line, stop
        lines.line_start = stop if fresh else line_start
        if full:
            raise TablesFull
        return stop

    def run_data(self, text: str, offset: int, append: Callable[[Statement], None], lines: Lines) -> int:
        """Append the data lines of a DWARF section from `offset` on; return where something else starts. Lines repeat
        so often that whole lines are cached."""
        lines.locate(offset)
        if lines.line_start != offset:
            return offset
        line = lines.line
        for match in _data_lines(text, offset):
            if match.start() != offset:
                break
            entry = self.data.get(match[0]) or self.parse_data_line(match[0])
            if entry is None:
                break
            node, (layout, newlines, indent, total) = entry
            copy = SectionData(node.type, node.values)
            _complete(copy, layout, (line + newlines) << COLUMN_BITS | indent)
            append(copy)
            line += total
            offset = match.end()
        lines.line, lines.position, lines.line_start = line, offset, offset
        return offset

    def parse_data_line(self, text: str) -> tuple[SectionData, _Entry] | None:
        """Parse one data line with the full grammar and cache it; None if it is more than that."""
        cursor = Cursor(text)
        try:
            node = parse_section_statement(cursor, None)
        except Failure:
            return None
        if cursor.taken_end != len(text) or not isinstance(node, SectionData) or node.layout is None:
            return None
        entry = (node, _measure(node.layout))
        if len(text) < _LONGEST and len(self.data) < _LARGEST:
            self.data[text] = entry
        return entry

    def parse_declaration(self, key: tuple[str, str, str]) -> _Declared:
        """Parse a declaration with the full grammar and cache it: most functions repeat the same few."""
        cursor = Cursor("".join(key))
        parse = parse_register_declaration if key[1].startswith(".reg") else parse_variable_declaration
        node = parse(cursor, None)
        if cursor.taken_end != sum(map(len, key)) or node.layout is None:
            raise _NotPlain
        fields = tuple([getattr(node, name) for name in list_field_names(type(node)) if name not in NOT_COMPARED])
        entry = (type(node), fields, _measure(node.layout))
        if len(self.declared) >= _LARGEST:
            raise TablesFull
        if sum(map(len, key)) < _LONGEST:
            self.declared[key] = entry
        return entry

    def split_arguments(self, listing: str) -> tuple[tuple[Operand, ...], str]:
        """Split operands, some of which contain brackets."""
        texts = _list_parts(listing)
        if sum(map(len, texts)) + 2 * len(texts) - 2 != len(listing):
            raise _NotPlain
        operands = tuple(map(self.operands.__getitem__, texts))
        return operands, "".join(map(self.operands.shapes.get, texts, repeat(_SINGLE)))

    def parse_guard(self, text: str) -> tuple[Predicate, str]:
        """Return the predicate of `@!%p `, and the rest of its layout."""
        entry = self.guards.get(text)
        if entry is None:
            if len(self.guards) >= _LARGEST:
                raise TablesFull
            is_negated = text[1] == "!"
            register = text[1 + is_negated :].rstrip()
            if register == "_" or not _is_name(register):
                raise _NotPlain
            gap = text[1 + is_negated + len(register) :]
            entry = self.guards[text] = (Predicate(register, is_negated), "!" * is_negated + gap)
        return entry

    def find_label_layout(self, gaps: tuple[str, ...]) -> _Entry:
        """Return the cached layout of a label or `.loc`."""
        if len(self.labels) >= _LARGEST:
            raise TablesFull
        layout = _measure(layout_of(gaps))
        if len(gaps[0]) + len(gaps[-1]) < _LONGEST:
            self.labels[gaps] = layout
        return layout

    def find_layout(
        self, layouts: dict[tuple[str, ...], _Entry], opcode: str, modifiers: int, key: tuple[str, ...]
    ) -> _Entry:
        """Return the cached layout for `key`."""
        if self.layouts >= _LARGEST:
            raise TablesFull
        lead, gap, shape, tail, *guard = key
        if shape and opcode in ALONE:
            raise _NotPlain
        is_negated = bool(guard) and guard[0][:1] == "!"
        gaps = [lead, *[""] * (1 + is_negated), guard[0][is_negated:]] if guard else [lead]
        form = _escape(lead) + (f"%s{guard[0][is_negated:]}%s" if guard else "%s") + gap
        gaps += [*[""] * modifiers, gap]
        plain = True
        for index, character in enumerate(shape):
            own, default = self.operands.gaps[ord(character)]
            plain = plain and default
            if index:
                gaps.append(f" {own[0]}")
                form += ", "
            else:
                gaps[-1] += own[0]
            gaps += own[1:]
            form += f"{own[0]}%s{own[-1]}"
        candidate = Layout([*gaps, tail])
        if plain:
            candidate.form, candidate.guarded, candidate.arity = f"{form};{_escape(tail)}", bool(guard), len(shape)
        entry = _measure(candidate)
        if len(lead) + len(tail) < _LONGEST:
            layouts[key] = entry
            self.layouts += 1
        return entry


def _escape(gap: str) -> str:
    return gap.replace("%", "%%")


def _measure(layout: Layout) -> _Entry:
    lead = layout[0]
    newlines = lead.count("\n")
    return layout, newlines, len(lead) - lead.rfind("\n"), sum([gap.count("\n") for gap in layout])


def _complete(node: Statement, layout: Layout, place: int) -> None:
    """Set the layout and place of a new node."""
    slots = cast("Any", type(node))
    slots.layout.__set__(node, layout)
    slots._place.__set__(node, place)


class _Shared:
    """The tables in use."""

    plain = Plain()


def get_tables(*, fresh: bool = False) -> Plain:
    """Return the tables to parse with; new ones if the old ones are full. Threads share them: entries are only
    added."""
    if fresh:
        _Shared.plain = Plain()
    return _Shared.plain
