"""Detects Python's `return` out of a `with` block of a kernel, from the syntax tree of the source and the line where
the function's frame ended.

A block cannot tell a `return` from falling off its end. The frame can, afterward: a `return` out of a block ends the
frame on the line of that `with`. Without the source, nothing is refused.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING, NamedTuple

from pyptx.diagnostics import PtxError, PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.origin import list_lines

if TYPE_CHECKING:
    from pyptx.dsl.trace import Trace

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Block(NamedTuple):
    """A `with` statement that contains a `return`: its first line, the last lines of its items and of its body, and for
    each enclosing `with` (by first line; 0 is the function), whether more statements follow when the block falls off
    its end."""

    first: int
    items: int
    last: int
    goes_on: tuple[tuple[int, bool], ...]

    def continues_in(self, line: int) -> bool:
        """Tell whether more statements follow inside the `with` statement starting on this line, or in the function
        (0)."""
        return any(continues for outer, continues in self.goes_on if outer >= line)


class Exit(NamedTuple):
    """A block that was left without an exception, and the number of statements of the body before and after its end."""

    block: Block
    title: str
    place: PythonFrame | None
    before: int
    after: int


def note_exit(trace: Trace, frame: FrameType, title: str, place: PythonFrame | None, before: int) -> None:
    """Record the end of a block in a function that may have left it by `return`."""
    blocks, lines = _analyze(frame.f_code)
    if not blocks:
        return
    line = lines[frame.f_lasti // 2][0]
    around = [block for block in blocks if block.first <= line <= block.items]
    if not around:
        return
    exits = trace.exits.setdefault(id(frame), (frame, []))[1]
    exit = Exit(around[-1], title, place, before, len(trace.body))
    if exits and exits[-1].block is exit.block and exits[-1].after == before:
        exit = exit._replace(title=exits[-1].title, place=exits[-1].place, before=exits.pop().before)
    exits.append(exit)


def refuse_returns(trace: Trace) -> None:
    """Refuse a Python `return` out of a block: the rest of the kernel would be missing on every path."""
    exits, trace.exits = trace.exits, {}
    for frame, frame_exits in exits.values():
        inner = last = frame_exits[-1]
        if not last.block.first <= frame.f_lineno <= last.block.last:
            continue
        loses_statements = last.block.continues_in(0)
        for outer, inner_exit in zip(reversed(frame_exits), reversed(frame_exits[:-1]), strict=False):
            inside = outer.block.first < inner_exit.block.first and inner_exit.block.last <= outer.block.last
            if not inside or inner_exit.after != outer.before:
                break
            inner, loses_statements = inner_exit, loses_statements or inner_exit.block.continues_in(outer.block.first)
        if loses_statements:
            raise PtxError([rules.PYTHON_EXIT.report(
                inner.place, (
                    f"`return` inside `{inner.title}` ends tracing on every path, not only for the threads in the "
                    "block"
                ),
                help="use ptx.ret() there, and put the rest of the kernel after the block",
            )])  # fmt: skip


def _analyze(code: CodeType) -> tuple[tuple[Block, ...], list[tuple[int, int]]]:
    """Return the blocks of a function and the lines of its instructions. Cached, because hashing a code object and
    asking a frame for its line take time proportional to the function."""
    entry = _ANALYSES.get(id(code))
    if entry is None:
        if len(_ANALYSES) >= _MOST:
            _ANALYSES.clear()
        blocks = parse_blocks(code)
        entry = _ANALYSES[id(code)] = code, blocks, list_lines(code) if blocks else []
    return entry[1], entry[2]


_ANALYSES: dict[int, tuple[CodeType, tuple[Block, ...], list[tuple[int, int]]]] = {}
"""By identity of the code object, which the entry keeps alive."""
_MOST = 1024


def parse_blocks(code: CodeType) -> tuple[Block, ...]:
    """Return the `with` statements of a function that contain a `return`, outer ones first."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not any("return" in line for line in lines[code.co_firstlineno - 1 :]):
        return ()
    function = _parse_functions("".join(lines)).get((code.co_name, code.co_firstlineno))
    return () if function is None else tuple(_find_blocks(function.body, ((0, False),)))


@lru_cache(maxsize=64)
def _parse_functions(source: str) -> dict[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions of a file by name and first line."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {(node.name, min([node.lineno, *(d.lineno for d in node.decorator_list)])): node for node in functions}


def _find_blocks(body: list[ast.stmt], goes_on: tuple[tuple[int, bool], ...]) -> Iterator[Block]:
    """Yield the blocks in a list of statements."""
    for index, statement in enumerate(body):
        line, continues = goes_on[0]
        after = ((line, continues or _does_something(body[index + 1 :])), *goes_on[1:])
        if isinstance(statement, ast.With):
            if not any(isinstance(node, ast.Return) for node in _walk(statement)):
                continue
            items = max(item.context_expr.end_lineno or statement.lineno for item in statement.items)
            yield Block(statement.lineno, items, statement.end_lineno or items, after)
            yield from _find_blocks(statement.body, ((statement.lineno, False), *after))
            continue
        if isinstance(statement, ast.For | ast.While):
            after = ((line, True), *goes_on[1:])
        for inner in _list_bodies(statement):
            yield from _find_blocks(inner, after)


def _list_bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the statement lists inside a statement other than `with`."""
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one, excluding inner functions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _FUNCTIONS):
            yield child
            yield from _walk(child)


def _does_something(statements: list[ast.stmt]) -> bool:
    """Tell whether statements do more than `return` a known value."""
    for statement in statements:
        if isinstance(statement, ast.Return):
            return not (statement.value is None or isinstance(statement.value, ast.Name | ast.Constant))
        if not isinstance(statement, ast.Pass):
            return True
    return False
