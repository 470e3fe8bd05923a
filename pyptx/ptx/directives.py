"""`ptx.directive(name, …)`: any directive allowed in the instruction stream, as a statement of an exact transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import describe
from pyptx.dsl.exact import check_symbol_name
from pyptx.dsl.exact_declarations import (
    check_dotted,
    check_text,
    parse_directives,
    parse_label_place,
    to_integer,
    to_optional_integer,
    to_scalar_type,
)
from pyptx.dsl.registers import Dtype
from pyptx.dsl.trace import fail
from pyptx.ir.directives import (
    AliasDirective,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Directive,
    DwarfDirective,
    FileDirective,
    LabelRange,
    LocDirective,
    PragmaDirective,
    SectionData,
    Target,
)
from pyptx.ir.nodes import Param
from pyptx.ptx.exact import require_exact

__all__ = ["build_data", "directive", "build_directive"]


def directive(name: str, *values: Any, **options: Any) -> None:
    """Emit a directive: `ptx.directive("loc", 1, 21, 3)`, `("pragma", "nounroll")`, `("branchtargets", "A", ("L", 4))`,
    `("callprototype", params=(…,), returns=(…,))`, `("calltargets", …)`, `("alias", name, aliasee)`, `("target", …)`,
    `("file", 1, "a.cu")`, `("dwarf", ".byte", 1, 2)`. `.loc` takes `function_name=` (a label, optionally with an
    offset) and `inlined_at=` (file, line, column)."""
    trace = require_exact("ptx.directive").trace
    trace.append(build_directive(name, *values, **options).replace(origin=trace.locate()))


def build_directive(name: str, *values: Any, **options: Any) -> Any:
    """Return the node of a directive."""
    make = _MAKERS.get(name)
    if make is None:
        fail(rules.ARGUMENT, f"unknown directive {describe(name)}", help=f"use one of {', '.join(sorted(_MAKERS))}")
    try:
        return make(*values, **options)
    except TypeError as wrong:
        fail(rules.ARGUMENT, f"`.{name}` {str(wrong).partition('() ')[2]}")


def build_data(dtype: Dtype, *values: Any) -> SectionData:
    """Return a line of a section: numbers, labels, (label, offset), (label, "-", label)."""
    parts = [parse_label_place(value) if isinstance(value, str | tuple) else to_integer(value) for value in values]
    return SectionData(to_scalar_type(dtype), tuple(parts))


def _make_loc(
    file: Any, line: Any, column: Any, *, function_name: Any = None, inlined_at: Any = None, intermediate: bool = False
) -> Directive:
    caller = None if inlined_at is None else tuple(map(to_integer, inlined_at))
    if caller is not None and len(caller) != 3:
        fail(rules.ARGUMENT, f"`inlined_at` must be (file, line, column), found {describe(inlined_at)}")
    name = None if function_name is None else parse_label_place(function_name)
    return LocDirective(to_integer(file), to_integer(line), to_integer(column), name, caller, intermediate)  # pyright: ignore[reportArgumentType]


def _make_pragma(first: str, *further: str) -> Directive:
    return PragmaDirective(check_text(first), tuple(map(check_text, further)))


def _make_file(index: Any, path: str, timestamp: Any = None, size: Any = None) -> Directive:
    return FileDirective(to_integer(index), check_text(path), to_optional_integer(timestamp), to_optional_integer(size))


def _make_prototype(
    *, params: Sequence[Param] = (), returns: Sequence[Param] | None = None, directives: Any = (), parens: bool = True
) -> Directive:
    back = None if returns is None else tuple(returns)
    return CallPrototype(tuple(params), back, parse_directives(directives), parens)


def _make_branch_targets(*labels: Any) -> Directive:
    return BranchTargets(tuple([_make_label_range(label) for label in labels]))


def _make_label_range(label: Any) -> LabelRange:
    if isinstance(label, str):
        return LabelRange(check_symbol_name(label))
    name, count = label
    return LabelRange(check_symbol_name(name), to_integer(count))


def _make_dwarf(keyword: Any, *values: Any) -> Directive:
    if keyword == ":":
        return DwarfDirective(":", (check_symbol_name(values[0]),))
    items: list[Any] = []
    for value in values:
        if isinstance(value, str) and value[:1] == '"':
            items.append(f'"{check_text(value[1:-1])}"')
        else:
            items.append(parse_label_place(value) if isinstance(value, str | tuple) else to_integer(value))
    return DwarfDirective(check_dotted(keyword, "a keyword such as '.byte'"), tuple(items))


def _make_alias(name: str, aliasee: str) -> Directive:
    return AliasDirective(check_symbol_name(name), check_symbol_name(aliasee))


_MAKERS: dict[str, Callable[..., Directive]] = {
    "loc": _make_loc,
    "pragma": _make_pragma,
    "file": _make_file,
    "callprototype": _make_prototype,
    "calltargets": lambda *names: CallTargets(tuple(map(check_symbol_name, names))),
    "branchtargets": _make_branch_targets,
    "alias": _make_alias,
    "target": lambda *targets: Target(tuple(map(check_symbol_name, targets))),
    "dwarf": _make_dwarf,
}
