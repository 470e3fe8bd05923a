"""Joins semantics to the instruction table: asks the module that mirrors a row's file for its operation."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec

from pyptx.isa import table
from pyptx.isa.model import Form, Match
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature


@cache
def map_sections() -> dict[int, str]:
    """Return the table file of every row, by the row's identity."""
    return {id(row): section for section in table.SECTIONS for row in import_module(f"pyptx.isa.table.{section}").FORMS}


@cache
def find_builders(section: str) -> dict[str, Builder]:
    """Return the builders of the module that mirrors a table file, by opcode; none if there is no such module."""
    name = f"pyptx.sim.semantics.{section}"
    return import_module(name).BUILDERS if find_spec(name) is not None else {}


def find_operation(match: Match, signature: Signature) -> Operation | None:
    """Return the operation of a spelling, None if it has no semantics."""
    builder = find_builders(find_section(match.form)).get(match.form.opcode)
    return builder(match, signature) if builder is not None else None


def find_section(form: Form) -> str:
    """Return the table file that contains a row."""
    return map_sections()[id(form)]
