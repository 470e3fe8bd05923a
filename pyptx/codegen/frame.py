"""The parts of a generated file around its statements: imports, the module's header and style, and the main program."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pyptx.codegen.digest import of_bytes, of_words
from pyptx.codegen.operands import integer
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
    call,
    dotted,
    literal,
)
from pyptx.dsl.exact_layout import apply_layout
from pyptx.emitter.styles import DEFAULT, Style
from pyptx.ir.directives import AddressSize, Module
from pyptx.ir.kinds import spelling
from pyptx.ir.nodes import Function

ORIGINAL, STYLE, MODULE = Name("ORIGINAL"), Name("STYLE"), Name("module")


def framed(
    module: Module,
    style: Style,
    source: str,
    newline: str,
    body: Sequence[Step],
    types: Iterable[str],
    functions: Sequence[str],
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
        start.append(Import("pyptx.types", tuple(sorted(types, key=natural))))
    digests = literal((of_bytes(source), of_words(module)))
    start += [Blank(), Line(digests, (), ORIGINAL)]
    if style != DEFAULT:
        start.append(Line(style_expr(style), (), STYLE))
    start += [Line(header(module, style, newline), (), MODULE), Blank()]
    end = [Blank(2), Main((Line(call(dotted("sys.exit"), call(Name("main"), MODULE, ORIGINAL))),))]
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


def natural(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts `b8` before `b32`, like import sorters."""
    return [(word, int(digits or 0)) for word, digits in re.findall(r"(\D*)(\d*)", name)]


def header(module: Module, style: Style, newline: str) -> Expr:
    """Return `ptx.module(…)`."""
    version, target, size = module.version, module.target, module.address_size
    if version.implied or target.implied or not target.targets:
        raise ValueError("a module without a header cannot be written in Python")
    numbers = spelling(version.major), spelling(version.minor)
    plain = [integer(number) for number in numbers]
    exact = all(number is not None for number in plain)
    version_expr = (
        Tuple(tuple([number for number in plain if number is not None])) if exact else Literal(".".join(numbers))
    )
    names = literal(target.targets[0] if len(target.targets) == 1 else target.targets)
    before, layouts = _find_spacing(module)
    keywords: dict[str, Expr | None] = {
        "address_size": None if size is None else _build_size(size),
        "style": STYLE if style != DEFAULT else None,
        "before": Literal(before) if before else None,
        "layouts": literal(layouts) if any(layouts) else None,
        "ending": Literal(module.layout[0]) if module.layout and module.layout[0] else None,
        "newline": Literal(newline) if newline != "\n" else None,
    }
    return call(dotted("ptx.module"), version_expr, names, **keywords)


def _build_size(size: AddressSize) -> Expr:
    text = spelling(size.size)
    return integer(text) or call(dotted("ptx.imm"), Literal(text))


def _find_spacing(module: Module) -> tuple[str, tuple[tuple[str, ...] | None, ...]]:
    """Return the text before the header, and the gaps of its lines if they differ from the default."""
    lines: list[Any] = [line for line in (module.version, module.target, module.address_size) if line is not None]
    usual: list[Any] = apply_layout([line.replace(layout=None) for line in lines], DEFAULT)
    before: str = lines[0].layout[0]
    layouts: list[tuple[str, ...] | None] = []
    for at, (line, expected) in enumerate(zip(lines, usual, strict=True)):
        gaps = tuple(line.layout)
        gaps = ("", *gaps[1:]) if at == 0 else gaps
        layouts.append(None if gaps == tuple(expected.layout) else gaps)
    return before, tuple(layouts)


def style_expr(style: Style) -> Call:
    """Return `ptx.Style(…)` with the values that differ from the default."""
    keywords: dict[str, Expr | None] = {}
    for name, value, usual in zip(Style._fields, style, DEFAULT, strict=True):
        if value == usual:
            continue
        if isinstance(value, Style):
            keywords[name] = style_expr(value)
        else:
            keywords[name] = literal(_convert_to_plain(value))
    return call(dotted("ptx.Style"), **keywords)


def _convert_to_plain(value: Any) -> Any:  # noqa: ANN401 - a field of a style
    if isinstance(value, str | bool):
        return value
    return {key: item if isinstance(item, str) else dict(item) for key, item in value.items()}
