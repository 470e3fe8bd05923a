"""Scopes, groups of instructions, and directives in the instruction stream."""

from __future__ import annotations

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.scopes import Named, Scope, announce
from pyptx.dsl.trace import fail, get_trace
from pyptx.dsl.values import is_integer
from pyptx.ir.directives import LocDirective, PragmaDirective
from pyptx.isa.directives import find_pragma as known_pragma


def scope() -> Scope:
    """Open `{ … }`: registers created inside are declared there and are not visible outside."""
    return announce(Scope())


def expr() -> Named:
    """Group the instructions emitted inside under one comment; control flow inside is refused."""
    return announce(Named("expr", pure=True))


def pragma(value: str) -> None:
    """Emit `.pragma "value";`."""
    trace = get_trace()
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(
            rules.ARGUMENT, f"`ptx.pragma` takes a string, found {describe(value)}", help='write ptx.pragma("nounroll")'
        )
    entry = known_pragma(value)
    first = entry.available.find_first_version(trace.target) if entry is not None and trace.exact is None else None
    if first is not None:
        trace.require_version(first, f'`.pragma "{value}"`')
    trace.append(PragmaDirective(_check_quotable(value), origin=trace.locate()))


def loc(file_idx: int, line: int, col: int = 0) -> None:
    """Emit `.loc file line column`."""
    trace = get_trace()
    for number in (file_idx, line, col):
        if not is_integer(number, 0):
            fail(rules.ARGUMENT, f"`ptx.loc` takes nonnegative numbers, found {describe(number)}",
                 help="call ptx.file_(file, name) first, then ptx.loc(file, line, column)")  # fmt: skip
    trace.append(LocDirective(file_idx, line, col, origin=trace.locate()))


def file_(file_idx: int, filename: str) -> None:
    """Declare `.file index "name"` at module level."""
    trace = get_trace()
    if not is_integer(file_idx, 1) or not isinstance(filename, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(rules.ARGUMENT, f"`ptx.file_` takes a positive number and a name, found {file_idx!r}, {filename!r}",
             help='write ptx.file_(1, "kernel.cu")')  # fmt: skip
    files = trace.unit.files
    if files.get(file_idx, filename) != filename:
        fail(rules.NAME, f"file {file_idx} is already {files[file_idx]!r}", help="use another number")
    files[file_idx] = _check_quotable(filename)


def _check_quotable(text: str) -> str:
    if '"' in text or "\n" in text or not (text.isascii() and text.isprintable()):
        fail(rules.ARGUMENT, f"expected text without quotes or line breaks, found {text!r}")
    return text
