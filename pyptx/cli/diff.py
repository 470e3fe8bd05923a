"""`pyptx diff ORIGINAL.ptx EDITED.py`: the statements that differ, and the Python lines that emit them."""

from __future__ import annotations

import argparse
import difflib
import runpy
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings, print_json
from pyptx.cli.sources import STDIN, Source, Unreadable, read
from pyptx.diagnostics import Origin, PtxError, PythonFrame, escape_unprintable, render
from pyptx.ir import Instruction, IntrinsicScope, Label, LocDirective, Module, Statement, body_of, tokens
from pyptx.parser import parse

_KERNELS = ("module", "ptx")


class Row(NamedTuple):
    """One statement as text, with its origin."""

    text: str
    origin: Origin | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("original", metavar="ORIGINAL", help="a PTX file, or - for standard input")
    parser.add_argument("edited", metavar="EDITED", help="a Python file that defines a module or kernel, or a PTX file")
    parser.add_argument(
        "--name", metavar="NAME", help="the variable in the Python file (default: module, or the only kernel)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    try:
        original = read(args.original)
        changed_source = read(args.edited)
    except Unreadable as error:
        complain(str(error))
        return UNUSABLE
    python = args.edited != STDIN and args.edited.endswith(".py")
    old = _parse(original)
    new = _trace(args.edited, args.name) if python else _parse(changed_source)
    if isinstance(old, int) or isinstance(new, int):
        return max(code for code in (old, new) if isinstance(code, int))
    changes = list(find_differences(list_rows(old), list_rows(new)))
    if args.json:
        print_json([_convert_to_json(change) for change in changes])
    else:
        _print_changes(changes, original.name, args.edited)
    return FINDINGS if changes else OK


def _parse(source: Source) -> Module | int:
    module, syntax = parse(source.text, recover=True)
    if syntax:
        print_findings(place_findings(syntax, source), source, sys.stderr)
        return FINDINGS
    return module


def _trace(path: str, name: str | None) -> Module | int:
    """Run a Python file, which the user trusts, and return its module."""
    scope = runpy.run_path(str(Path(path)), run_name="pyptx.diff")
    if name is not None:
        kernel: Any = scope.get(name)
    else:
        kernels = [value for value in scope.values() if _is_kernel(value)]
        kernel = scope.get("module") or (kernels[0] if len(kernels) == 1 else None)
    if not _is_kernel(kernel):
        complain(f"{path}: no module or kernel{f' {name}' if name else ''} found; name the variable with --name")
        return UNUSABLE
    try:
        return kernel.module()
    except PtxError as error:
        print(render(error.diagnostics, error.source), file=sys.stderr)
        return FINDINGS


def _is_kernel(value: object) -> bool:
    return all(callable(getattr(value, name, None)) for name in _KERNELS) and not isinstance(value, type)


def list_rows(module: Module) -> list[Row]:
    """Return a row for each statement and closing brace of a module, except `.loc`, which changes no code."""
    out: list[Row] = []
    stack: list[tuple[Iterator[Statement], bool]] = [(iter(module.statements), False)]
    while stack:
        for node in stack[-1][0]:
            origin: Origin | None = node.origin  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
            scope = isinstance(node, IntrinsicScope)
            if not scope and not isinstance(node, LocDirective):
                out.append(Row(_format_statement(node), origin))
            inside = body_of(node)
            if inside is not None:
                stack.append((iter(inside), not scope))
                break
        else:
            if stack.pop()[1]:
                out.append(Row("}", None))
    return out


def _format_statement(node: Statement) -> str:
    """Return a statement in uniform spacing, so that only its tokens are compared."""
    words = tokens(node)
    if isinstance(node, Label):
        return "".join(words)
    if isinstance(node, Instruction):
        guard = "" if node.predicate is None else "".join(tokens(node.predicate)) + " "
        start = 1 + len(node.modifiers) + len(tokens(node.predicate) if node.predicate is not None else ())
        operands = "".join([f"{word} " if word == "," else word for word in words[start:]])
        return f"{guard}{node.full_opcode}{' ' if node.operands else ''}{operands}"
    return " ".join(words)


class Change(NamedTuple):
    """A change: the old and the new statements."""

    old: Sequence[Row]
    new: Sequence[Row]
    after: Row | None


def find_differences(old: Sequence[Row], new: Sequence[Row]) -> Iterator[Change]:
    """Yield the changes, in order."""
    texts = [row.text for row in old], [row.text for row in new]
    first = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    last = 0
    while last < min(map(len, texts)) - first and texts[0][-1 - last] == texts[1][-1 - last]:
        last += 1
    ends = len(old) - last, len(new) - last
    matcher = difflib.SequenceMatcher(None, texts[0][first : ends[0]], texts[1][first : ends[1]], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            before = new[first + c - 1] if first + c > 0 else None
            yield Change(old[first + a : first + b], new[first + c : first + d], before)


def _format_place(row: Row) -> str:
    if isinstance(row.origin, PythonFrame):
        return f"{row.origin.file}:{row.origin.line}"
    return "" if row.origin is None else f"line {row.origin.line}"


def _print_changes(changes: Sequence[Change], original: str, new_name: str) -> None:
    if not changes:
        print(escape_unprintable(f"{new_name} emits the same statements as {original}"))
    for change in changes:
        for row in change.old:
            print(
                escape_unprintable(
                    f"- {row.text}    [{original} {_format_place(row)}]" if _format_place(row) else f"- {row.text}"
                )
            )
        for row in change.new:
            print(
                escape_unprintable(f"+ {row.text}    [{_format_place(row)}]" if _format_place(row) else f"+ {row.text}")
            )
        if not change.new and change.after is not None:
            print(escape_unprintable(f"  (after {_format_place(change.after)}: {change.after.text})"))


def _convert_to_json(change: Change) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    return {name: [{"text": row.text, "at": _format_place(row)} for row in rows] for name, rows in sides.items()}
