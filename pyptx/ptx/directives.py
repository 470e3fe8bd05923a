"""`ptx.directive(name, …)`: any directive allowed in the instruction stream, as a statement of an exact transcript."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.declared import dotted, function_directives, label_place, maybe, number, scalar, text
from pyptx.dsl.emit import shown
from pyptx.dsl.exact import checked_name
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
from pyptx.ptx.exact import exact_of

__all__ = ["data_node", "directive", "directive_node"]


def directive(name: str, *values: Any, **given: Any) -> None:
    """Emit a directive: `ptx.directive("loc", 1, 21, 3)`, `("pragma", "nounroll")`, `("branchtargets", "A", ("L", 4))`,
    `("callprototype", params=(…,), returns=(…,))`, `("calltargets", …)`, `("alias", name, aliasee)`, `("target", …)`,
    `("file", 1, "a.cu")`, `("dwarf", ".byte", 1, 2)`. `.loc` takes `function_name=` (a label, optionally with an
    offset) and `inlined_at=` (file, line, column)."""
    trace = exact_of("ptx.directive").trace
    trace.append(directive_node(name, *values, **given).replace(origin=trace.here(2)))


def directive_node(name: str, *values: Any, **given: Any) -> Any:
    """Return the node of a directive."""
    make = _MAKERS.get(name)
    if make is None:
        fail(rules.ARGUMENT, f"unknown directive {shown(name)}", help=f"use one of {', '.join(sorted(_MAKERS))}")
    try:
        return make(*values, **given)
    except TypeError as wrong:
        fail(rules.ARGUMENT, f"`.{name}` {str(wrong).partition('() ')[2]}")


def data_node(dtype: Dtype, *values: Any) -> SectionData:
    """Return a line of a section: numbers, labels, (label, offset), (label, "-", label)."""
    parts = [label_place(value) if isinstance(value, str | tuple) else number(value) for value in values]
    return SectionData(scalar(dtype), tuple(parts))


def _make_loc(
    file: Any, line: Any, column: Any, *, function_name: Any = None, inlined_at: Any = None, intermediate: bool = False
) -> Directive:
    at = None if inlined_at is None else tuple(map(number, inlined_at))
    if at is not None and len(at) != 3:
        fail(rules.ARGUMENT, f"`inlined_at` must be (file, line, column), found {shown(inlined_at)}")
    where = None if function_name is None else label_place(function_name)
    return LocDirective(number(file), number(line), number(column), where, at, intermediate)  # pyright: ignore[reportArgumentType]


def _make_pragma(first: str, *more: str) -> Directive:
    return PragmaDirective(text(first), tuple(map(text, more)))


def _make_file(index: Any, path: str, timestamp: Any = None, size: Any = None) -> Directive:
    return FileDirective(number(index), text(path), maybe(timestamp), maybe(size))


def _make_prototype(
    *, params: Sequence[Param] = (), returns: Sequence[Param] | None = None, directives: Any = (), parens: bool = True
) -> Directive:
    back = None if returns is None else tuple(returns)
    return CallPrototype(tuple(params), back, function_directives(directives), parens)


def _make_branch_targets(*labels: Any) -> Directive:
    return BranchTargets(tuple([_make_label_range(label) for label in labels]))


def _make_label_range(label: Any) -> LabelRange:
    if isinstance(label, str):
        return LabelRange(checked_name(label))
    name, count = label
    return LabelRange(checked_name(name), number(count))


def _make_dwarf(keyword: Any, *values: Any) -> Directive:
    if keyword == ":":
        return DwarfDirective(":", (checked_name(values[0]),))
    items: list[Any] = []
    for value in values:
        if isinstance(value, str) and value[:1] == '"':
            items.append(f'"{text(value[1:-1])}"')
        else:
            items.append(label_place(value) if isinstance(value, str | tuple) else number(value))
    return DwarfDirective(dotted(keyword, "a keyword such as '.byte'"), tuple(items))


def _make_alias(name: str, aliasee: str) -> Directive:
    return AliasDirective(checked_name(name), checked_name(aliasee))


_MAKERS: dict[str, Callable[..., Directive]] = {
    "loc": _make_loc,
    "pragma": _make_pragma,
    "file": _make_file,
    "callprototype": _make_prototype,
    "calltargets": lambda *names: CallTargets(tuple(map(checked_name, names))),
    "branchtargets": _make_branch_targets,
    "alias": _make_alias,
    "target": lambda *targets: Target(tuple(map(checked_name, targets))),
    "dwarf": _make_dwarf,
}
