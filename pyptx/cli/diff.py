"""`pyptx diff ORIGINAL.ptx EDITED.py`: the statements that differ, and the Python lines that emit them."""

from __future__ import annotations

import argparse
import difflib
import re
import runpy
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pyptx.cli import FINDINGS, OK, UNUSABLE
from pyptx.cli.output import complain, place_findings, print_findings, print_json
from pyptx.cli.sources import STDIN, Source, Unreadable, read
from pyptx.diagnostics import Origin, PtxError, PythonFrame, escape_unprintable, format_count, render
from pyptx.ir import Instruction, IntrinsicScope, Label, LocDirective, Module, Statement, body_of, tokens
from pyptx.isa.special import find_special_register
from pyptx.parser import parse

_KERNELS = ("module", "ptx")
_NUMBERED = re.compile(r"%([A-Za-z_$][\w$]*?)\d+\b")
"""A register that a compiler has numbered."""


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
    rows = list_rows(old), list_rows(new)
    names = match_registers(*rows)
    changes = list(find_differences(*rows, names))
    if args.json:
        print_json([_convert_to_json(change) for change in changes])
    else:
        _print_changes(changes, original.name, args.edited, sum(name != other for name, other in names.items()))
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


def match_registers(old: Sequence[Row], new: Sequence[Row]) -> dict[str, str]:
    """Return the new name of each numbered register of the old statements: the one that most statements of equal shape
    have in its place. No two registers get one name, and only numbers change."""
    shapes = [[_replace_registers(row.text, {}) for row in rows] for rows in (old, new)]
    votes = Counter[tuple[str, str]]()
    for tag, a, b, c, d in _compare_texts(*shapes):
        for before, after in zip(old[a:b], new[c:d], strict=True) if tag == "equal" else ():
            votes.update(zip(_list_registers(before.text), _list_registers(after.text), strict=True))
    names: dict[str, str] = {}
    for (name, other), _ in votes.most_common():
        if name not in names and other not in names.values():
            names[name] = other
    return names


def _list_registers(text: str) -> list[str]:
    return [match[0] for match in _NUMBERED.finditer(text) if find_special_register(match[0]) is None]


def _replace_registers(text: str, names: Mapping[str, str]) -> str:
    """Return a statement with other names of its numbered registers; only the stem, which no register is called, if
    there is none."""
    return _NUMBERED.sub(
        lambda match: match[0] if find_special_register(match[0]) else names.get(match[0], f"%{match[1]}#"), text
    )


def _compare_texts(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, int, int, int, int]]:
    """Yield which texts are equal, and which are not, as `difflib` does."""
    first = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    last = 0
    while last < min(len(old), len(new)) - first and old[-1 - last] == new[-1 - last]:
        last += 1
    ends = len(old) - last, len(new) - last
    yield "equal", 0, first, 0, first
    matcher = difflib.SequenceMatcher(None, old[first : ends[0]], new[first : ends[1]], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        yield tag, first + a, first + b, first + c, first + d
    yield "equal", ends[0], len(old), ends[1], len(new)


def find_differences(
    old: Sequence[Row], new: Sequence[Row], names: Mapping[str, str] | None = None
) -> Iterator[Change]:
    """Yield the changes, in order. `names`: the new names of old registers."""
    texts = [row.text if names is None else _replace_registers(row.text, names) for row in old]
    for tag, a, b, c, d in _compare_texts(texts, [row.text for row in new]):
        if tag != "equal":
            yield Change(old[a:b], new[c:d], new[c - 1] if c > 0 else None)


def _format_place(row: Row) -> str:
    if isinstance(row.origin, PythonFrame):
        return f"{row.origin.file}:{row.origin.line}"
    return "" if row.origin is None else f"line {row.origin.line}"


def _print_changes(changes: Sequence[Change], original: str, new_name: str, renamed: int) -> None:
    renaming = f"{format_count('register', renamed)} renamed"
    if not changes:
        suffix = f", with {renaming}" if renamed else ""
        print(escape_unprintable(f"{new_name} emits the same statements as {original}{suffix}"))
    elif renamed:
        print(f"{renaming}; the other changes are:")
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
            place = _format_place(change.after)
            print(escape_unprintable(f"  (after {f'{place}: ' if place else ''}{change.after.text})"))


def _convert_to_json(change: Change) -> dict[str, Any]:
    sides = {"old": change.old, "new": change.new}
    return {name: [{"text": row.text, "at": _format_place(row)} for row in rows] for name, rows in sides.items()}
