"""The grammar of DWARF sections: labels and data lines."""

from __future__ import annotations

from pyptx.diagnostics import Origin
from pyptx.ir.directives import SectionData, SectionLabel
from pyptx.ir.kinds import Number, ScalarType
from pyptx.ir.nodes import Label, Statement
from pyptx.parser.cursor import Cursor


def parse_section_statement(cursor: Cursor, place: Origin | None) -> Statement:
    """Parse a label or a data line in a DWARF section."""
    if cursor.kind == "NAME":
        name = cursor.take()
        cursor.expect(":", "after the label")
        return Label(name, cursor.finish(), place)
    if cursor.kind != "DOTTED" or cursor.token not in (".b8", ".b16", ".b32", ".b64"):
        cursor.fail("`.b8`, `.b16`, `.b32`, `.b64`, a label or `}`")
    kind = ScalarType.from_ptx(cursor.take())
    values = [parse_section_value(cursor)]
    while cursor.accept(","):
        values.append(parse_section_value(cursor))
    return SectionData(kind, tuple(values), cursor.finish(), place)


def parse_section_value(cursor: Cursor) -> int | SectionLabel:
    """Take an integer or a label."""
    if cursor.kind == "NUMBER":
        return cursor.take_number("an integer")
    if cursor.token == "WARP_SZ":
        cursor.fail("an integer, a label or a section")
    if cursor.token == "-":
        cursor.take()
        text = cursor.token
        value = -cursor.take_number("an integer")
        return value if f"-{text}" == int.__repr__(value) else Number(value, f"-{text}")
    return parse_section_label(cursor)


def parse_section_label(cursor: Cursor) -> SectionLabel:
    """Take a label with the offset added to or the label subtracted from it."""
    if cursor.kind not in ("NAME", "DOTTED"):
        cursor.fail("an integer, a label or a section")
    name = cursor.take()
    if cursor.token == "+":
        cursor.take()
        return SectionLabel(name, cursor.take_number("an integer"))
    if cursor.token == "-":
        cursor.take()
        return SectionLabel(name, None, cursor.take_name("a label"))
    return SectionLabel(name)
