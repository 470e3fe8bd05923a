"""The parts of a generated file around its statements: imports, the module's header and style, and the main program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyptx.codegen.digest import hash_text, hash_tokens
from pyptx.codegen.operands import parse_integer
from pyptx.codegen.plan import (
    Blank,
    Call,
    Doc,
    Expr,
    Import,
    Line,
    Literal,
    Main,
    Name,
    Plan,
    Step,
    Tuple,
    build_literal,
    build_path,
    call,
)
from pyptx.dsl.exact_layout import apply_layout
from pyptx.emitter.styles import DEFAULT, Style
from pyptx.ir.directives import AddressSize, Module
from pyptx.ir.kinds import spell_number
from pyptx.ir.nodes import Function

ORIGINAL, STYLE, MODULE = Name("ORIGINAL"), Name("STYLE"), Name("module")


def build_frame(
    module: Module,
    style: Style,
    source: str,
    newline: str,
    body: Sequence[Step],
    types: Iterable[str],
) -> Plan:
    """Return the whole file with the statements that follow the header."""
    start: list[Step] = [
        Doc(_format_summary(module)),
        Blank(),
        Import("__future__", ("annotations",)),
        Blank(),
        Import("sys", ()),
        Blank(),
        Import("pyptx", ("ptx",)),
        Import("pyptx.codegen.program", ("main",)),
    ]
    if types:
        start.append(Import("pyptx.types", tuple(sorted(types, key=make_sort_key))))
    digests = build_literal((hash_text(source), hash_tokens(module)))
    start += [Blank(), Line(digests, (), ORIGINAL)]
    if style != DEFAULT:
        start.append(Line(build_style(style), (), STYLE))
    start += [Line(build_header(module, style, newline), (), MODULE), Blank()]
    end = [Blank(2), Main((Line(call(build_path("sys.exit"), call(Name("main"), MODULE, ORIGINAL))),))]
    return Plan(_join_gaps((*start, *body, *end)))


def _join_gaps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Merge runs of empty lines."""
    out: list[Step] = []
    for step in steps:
        if isinstance(step, Blank) and out and isinstance(out[-1], Blank):
            out[-1] = Blank(max(step.count, out[-1].count))
        else:
            out.append(step)
    return tuple(out)


def _format_summary(module: Module) -> str:
    entries = sum(isinstance(node, Function) and node.is_entry and node.definition for node in module.directives)
    subject = "A kernel" if entries == 1 else f"{entries} kernels" if entries else "A module"
    target = module.target.targets[0][:40] if module.target.targets else "no target"
    return f"{subject} for {target}, generated from PTX by pyptx.codegen; run it with --help."


def make_sort_key(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts `b8` before `b32`, like import sorters."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"(\D*)(\d*)", name)]


def build_header(module: Module, style: Style, newline: str) -> Expr:
    """Return `ptx.module(…)`."""
    version, target, size = module.version, module.target, module.address_size
    if version.implied or target.implied or not target.targets:
        raise ValueError("a module without a header cannot be written in Python")
    numbers = spell_number(version.major), spell_number(version.minor)
    plain = [parse_integer(number) for number in numbers]
    exact = all(number is not None for number in plain)
    version_expr = (
        Tuple(tuple([number for number in plain if number is not None])) if exact else Literal(".".join(numbers))
    )
    names = build_literal(target.targets[0] if len(target.targets) == 1 else target.targets)
    before, layouts = _find_spacing(module)
    keywords: dict[str, Expr | None] = {
        "address_size": None if size is None else _build_size(size),
        "style": STYLE if style != DEFAULT else None,
        "before": Literal(before) if before else None,
        "layouts": build_literal(layouts) if any(layouts) else None,
        "ending": Literal(module.layout[0]) if module.layout and module.layout[0] else None,
        "newline": Literal(newline) if newline != "\n" else None,
    }
    return call(build_path("ptx.module"), version_expr, names, **keywords)


def _build_size(size: AddressSize) -> Expr:
    text = spell_number(size.size)
    return parse_integer(text) or call(build_path("ptx.imm"), Literal(text))


def _find_spacing(module: Module) -> tuple[str, tuple[tuple[str, ...] | None, ...]]:
    """Return the text before the header, and the gaps of its lines if they differ from the default."""
    lines: list[Any] = [line for line in (module.version, module.target, module.address_size) if line is not None]
    usual: list[Any] = apply_layout([line.replace(layout=None) for line in lines], DEFAULT)
    before: str = lines[0].layout[0]
    layouts: list[tuple[str, ...] | None] = []
    for index, (line, usual_line) in enumerate(zip(lines, usual, strict=True)):
        gaps = tuple(line.layout)
        gaps = ("", *gaps[1:]) if index == 0 else gaps
        layouts.append(None if gaps == tuple(usual_line.layout) else gaps)
    return before, tuple(layouts)


def build_style(style: Style) -> Call:
    """Return `ptx.Style(…)` with the values that differ from the default."""
    keywords: dict[str, Expr | None] = {}
    for name, value, usual in zip(Style._fields, style, DEFAULT, strict=True):
        if value == usual:
            continue
        if isinstance(value, Style):
            keywords[name] = build_style(value)
        else:
            keywords[name] = build_literal(_convert_to_plain(value))
    return call(build_path("ptx.Style"), **keywords)


def _convert_to_plain(value: Any) -> Any:  # noqa: ANN401 - a field of a style
    if isinstance(value, str | bool):
        return value
    return {key: item if isinstance(item, str) else dict(item) for key, item in value.items()}
