"""The plan of a Python file: a tree of statements, each recording the PTX statements that it emits.

Every pass of the transpiler is a function from plan to plan. Expressions and statements are frozen nodes, never text;
only `printer.print_plan` turns them into Python text. The contract of every pass is

    find_broken_promise(plan, module) is None

that is: `flatten(plan)` yields the statements of the module, the same objects in the same order. That order is
`list_emitted(module)`: a statement with a body (function, block, section) comes before its contents, `End(statement)`
after them. So a pass may freely change what is *written*, and any change of what is *emitted* is detected.

Expressions: `Name`, `Literal`, `Attribute`, `Item`, `Slice`, `Call`, `Unary`, `Binary`, `List`, `Tuple`, `Dict`,
`Lambda`.
Statements:

- `Line(value, emits, target)`: `target = value`, or `value` alone. `emits` are the PTX statements that it emits.
- `Block(header, body, opens, closes, target)`: `with header as target:`. `opens` come before the body, `closes` after:
  `with ptx.if_(p, label="L"):` opens with the branch and closes with the label; `with ptx.block():` opens with the
  `ir.Block` and closes with its `End`.
- `Repeat(target, values, body, emits)`: `for target in values:`. The body is written once and represents
  `emits`, the statements of all iterations in order; the `emits` of the body's own statements are ignored.
- `Define(name, body, decorators, opens, closes)`: a function, for an `ir.Function` with a body.
- `Main(body)`: the main program. `Note(text)`: a
  comment. `Doc(text)`: a docstring. `Blank(count)`: empty lines. `Import(module, names)`: `from module import names`.

`Line.comment` and `Block.comment` follow the code on its line. Registers and symbols get their identifiers from
`Names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, cast

from pyptx.codegen.names import Names
from pyptx.ir.base import Node
from pyptx.ir.directives import Module
from pyptx.ir.nodes import Statement
from pyptx.ir.walk import body_of

__all__ = [
    "Attribute",
    "Binary",
    "Blank",
    "Block",
    "Call",
    "Comprehension",
    "Define",
    "Dict",
    "Doc",
    "Emitted",
    "End",
    "Expr",
    "Import",
    "Item",
    "Lambda",
    "Line",
    "List",
    "Literal",
    "Main",
    "Name",
    "Names",
    "Note",
    "Plan",
    "Repeat",
    "Slice",
    "Step",
    "Tuple",
    "Unary",
    "find_broken_promise",
    "call",
    "build_path",
    "flatten",
    "build_literal",
    "list_emitted",
    "walk",
]


class End(NamedTuple):
    """The end of a statement's body, its closing brace."""

    of: Statement


Emitted = Statement | End


class Expr(Node):
    """The base of expressions. Expressions are shared freely; the printer caches their text."""

    __slots__ = ("_text",)

    if TYPE_CHECKING:
        _text: ClassVar[str | None]


class Name(Expr):
    """A Python identifier; the printer rejects anything else."""

    id: str


class Literal(Expr):
    """A string, number, bool or None, printed with `ascii`; integers in hexadecimal with `hex`. A long string is split
    at each line of its text, or with `dense` only where a line is full."""

    value: str | int | float | bool | None
    hex: bool = False
    dense: bool = False


class Attribute(Expr):
    """`value.name`."""

    value: Expr
    name: str


class Item(Expr):
    """`value[index]`."""

    value: Expr
    index: Expr


class Slice(Expr):
    """`start:stop:step`, as an index."""

    start: Expr | None = None
    stop: Expr | None = None
    step: Expr | None = None


class Call(Expr):
    """`function(arguments, keyword=…)`."""

    function: Expr
    arguments: tuple[Expr, ...] = ()
    keywords: tuple[tuple[str, Expr], ...] = ()


class Unary(Expr):
    """`-x`, `~x`, `not x`, `*x` (as an argument or element)."""

    operator: str
    operand: Expr


class Binary(Expr):
    """`left operator right`: arithmetic, comparison, `and`, `or`."""

    operator: str
    left: Expr
    right: Expr


class List(Expr):
    """`[a, b]`."""

    elements: tuple[Expr, ...] = ()


class Tuple(Expr):
    """`(a, b)`."""

    elements: tuple[Expr, ...] = ()


class Dict(Expr):
    """`{key: value}`."""

    items: tuple[tuple[Expr, Expr], ...] = ()


class Comprehension(Expr):
    """`[body for target in values]`."""

    body: Expr
    target: Expr
    values: Expr


class Lambda(Expr):
    """`lambda: body`, for expressions evaluated later, such as the condition at the end of a loop."""

    body: Expr


class Step(Node):
    """The base of the plan's statements."""

    __slots__ = ()


class Line(Step):
    """`target = value`, or `value`; with an `operator`, `target += value`."""

    value: Expr
    emits: tuple[Emitted, ...] = ()
    target: Expr | None = None
    comment: str | None = None
    operator: str = ""


class Block(Step):
    """`with header as target:`."""

    header: Expr
    body: tuple[Step, ...]
    opens: tuple[Emitted, ...] = ()
    closes: tuple[Emitted, ...] = ()
    target: Expr | None = None
    comment: str | None = None


class Repeat(Step):
    """`for target in values:`, written once for the statements of all iterations."""

    target: Expr
    values: Expr
    body: tuple[Step, ...]
    emits: tuple[Emitted, ...] = ()
    comment: str | None = None


class Define(Step):
    """`def name():` with decorators."""

    name: str
    body: tuple[Step, ...]
    decorators: tuple[Expr, ...] = ()
    opens: tuple[Emitted, ...] = ()
    closes: tuple[Emitted, ...] = ()


class Note(Step):
    """`# text`, one comment line for each line of the text."""

    text: str


class Doc(Step):
    """A docstring."""

    text: str


class Blank(Step):
    """Empty lines."""

    count: int = 1


class Main(Step):
    """`if __name__ == "__main__":`."""

    body: tuple[Step, ...]


class Import(Step):
    """`from module import names`, or `import module` without names."""

    module: str
    names: tuple[str, ...]


class Plan(NamedTuple):
    """A whole file."""

    body: tuple[Step, ...]


def call(function: Expr, *arguments: Expr, **keywords: Expr | None) -> Call:
    """Return a call; keywords that are None are omitted."""
    return Call(function, arguments, tuple([(name, value) for name, value in keywords.items() if value is not None]))


def build_path(path: str) -> Expr:
    """Return `a.b.c`, every part checked by the printer. For names of our own API."""
    first, *attributes = path.split(".")
    expression: Expr = Name(first)
    for name in attributes:
        expression = Attribute(expression, name)
    return expression


def format_path(expr: Expr) -> str:
    """Return `a.b.c` of such an expression, or an empty string for any other."""
    names: list[str] = []
    while isinstance(expr, Attribute):
        names.append(expr.name)
        expr = expr.value
    return ".".join([expr.id, *reversed(names)]) if isinstance(expr, Name) else ""


def build_literal(value: Any) -> Expr:  # noqa: ANN401 - any value that Python writes as a display
    """Return a value as an expression: strings, numbers, None, lists, tuples and dicts of these."""
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return Dict(tuple([(build_literal(key), build_literal(item)) for key, item in pairs]))
    if isinstance(value, tuple | list):
        items = tuple([build_literal(item) for item in cast("Sequence[Any]", value)])
        return Tuple(items) if isinstance(value, tuple) else List(items)
    return Literal(value)


def walk(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield every step in text order, enclosing steps before their contents."""
    stack = [iter(steps)]
    while stack:
        for step in stack[-1]:
            yield step
            if isinstance(step, Block | Repeat | Define | Main):
                stack.append(iter(step.body))
                break
        else:
            stack.pop()


def flatten(plan: Plan | Iterable[Step]) -> Iterator[Emitted]:
    """Yield the statements that the plan emits, in order."""
    stack: list[tuple[Iterator[Step], tuple[Emitted, ...]]] = []
    steps = iter(plan.body if isinstance(plan, Plan) else plan)
    while True:
        for step in steps:
            if isinstance(step, Line | Repeat):
                yield from step.emits
            elif isinstance(step, Block | Define):
                yield from step.opens
                stack.append((steps, step.closes))
                steps = iter(step.body)
                break
        else:
            if not stack:
                return
            steps, closes = stack.pop()
            yield from closes


def list_emitted(statements: Module | Iterable[Statement]) -> Iterator[Emitted]:
    """Yield statements in text order: those with a body before its contents, and their `End` after it. The module
    header (version, target, address size) is excluded: `ptx.module(…)` covers it."""
    stack: list[tuple[Iterator[Statement], Statement]] = []
    current = iter(statements.directives if isinstance(statements, Module) else statements)
    while True:
        for statement in current:
            yield statement
            inside = body_of(statement)
            if inside is not None:
                stack.append((current, statement))
                current = iter(inside)
                break
        else:
            if not stack:
                return
            current, owner = stack.pop()
            yield End(owner)


def find_broken_promise(plan: Plan | Iterable[Step], of: Module | Iterable[Statement]) -> str | None:
    """Return where a plan does not emit the statements of its module, or None."""
    plan_items, module_items = flatten(plan), list_emitted(of)
    index = 0
    while True:
        mine, theirs = next(plan_items, None), next(module_items, None)
        if mine is None and theirs is None:
            return None
        if not _is_same(mine, theirs):
            return f"statement {index}: the plan emits {_format_item(mine)}, the module has {_format_item(theirs)}"
        index += 1


def _is_same(mine: Emitted | None, theirs: Emitted | None) -> bool:
    if isinstance(mine, End) and isinstance(theirs, End):
        return mine.of is theirs.of
    return mine is theirs


def _format_item(item: Emitted | None) -> str:
    if item is None:
        return "nothing more"
    text = f"the end of {item.of!r}" if isinstance(item, End) else repr(item)
    return text if len(text) <= 160 else f"{text[:157]}..."
