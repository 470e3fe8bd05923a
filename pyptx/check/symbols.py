"""Name resolution: what a register, variable, parameter, label or function name means at a point of a module.

Scopes nest like blocks; a declaration is visible from its position on, a label in its whole block and nested blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from pyptx.check import initial_values, redeclarations
from pyptx.diagnostics import Diagnostic, Origin, Rule
from pyptx.ir import (
    AliasDirective,
    Block,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Function,
    IntrinsicScope,
    Label,
    LinkingDirective,
    Param,
    RegDecl,
    Statement,
    VarDecl,
    part_span,
    word_span,
)
from pyptx.isa.targets import Target, Version

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<4>;
    {}
    ret;
}}
"""

UNDECLARED = Rule(
    "PTX0401",
    "undeclared name",
    "A register, variable or parameter must be declared before use, in the same block or an enclosing one.",
    _FRAME.format("add.s32 %r0, %r1, %x2;"),
    _FRAME.format("add.s32 %r0, %r1, %r2;"),
)
DUPLICATE = Rule(
    "PTX0402",
    "name declared twice",
    "A name can be declared once per block; a nested block may redeclare it.",
    _FRAME.format(".reg .b64 %r2;"),
    _FRAME.format("{ .reg .b64 %r2; }"),
)
UNKNOWN_LABEL = Rule(
    "PTX0403",
    "unknown label",
    "A branch target must be a label of the same block or an enclosing one; a branch cannot enter a block.",
    _FRAME.format("bra $done;"),
    _FRAME.format("bra $done;\n$done:"),
)
UNKNOWN_FUNCTION = Rule(
    "PTX0404",
    "unknown function",
    "A function must be declared or defined before it is called.",
    _FRAME.format("call helper;"),
    _FRAME.format("call helper;").replace(".visible", ".func helper() { ret; }\n.visible"),
)

ALIGNMENT = Rule(
    "PTX0408",
    "alignment is not a power of two",
    "Variables and parameters can be aligned to 1, 2, 4, 8, … bytes.",
    _FRAME.format(".shared .align 12 .b8 tile[64];"),
    _FRAME.format(".shared .align 16 .b8 tile[64];"),
)

RULES = (UNDECLARED, DUPLICATE, UNKNOWN_LABEL, UNKNOWN_FUNCTION, ALIGNMENT)


class Kind(StrEnum):
    """What a name refers to."""

    REGISTER = "register"
    VARIABLE = "variable"
    LABEL = "label"
    FUNCTION = "function"
    TARGETS = "target list"
    PROTOTYPE = "prototype"


@dataclass(frozen=True, slots=True)
class Symbol:
    """The meaning of a name. `type` is without its dot; `entry` marks a kernel and a kernel's parameter."""

    kind: Kind
    type: str = ""
    space: str = ""
    vector: int = 0
    entry: bool = False
    declaration: Statement | Param | None = None
    plain: str = ""
    """The type of a scalar register, else empty."""


_LABEL = Symbol(Kind.LABEL)


def make_register(type_name: str, vector: int = 0, declaration: Statement | Param | None = None) -> Symbol:
    """Return the symbol of a register."""
    plain = "" if vector else type_name
    return Symbol(Kind.REGISTER, type_name, "reg", vector, declaration=declaration, plain=plain)


@dataclass(slots=True)
class Scope:
    """The names of one block; `ranges` holds `%r<10>` as base -> (count, symbol); `header` is the module's target.

    `longest` is the length of the longest base; `cache` holds lookups; `everywhere` holds the names that any block of
    the module declares, except ranges; `near` and `index_counts` belong to `suggestions`.
    """

    parent: Scope | None = None
    header: tuple[Target, Version] | None = None
    names: dict[str, Symbol] = field(default_factory=dict[str, Symbol])
    ranges: dict[str, tuple[int, Symbol]] = field(default_factory=dict[str, tuple[int, Symbol]])
    cache: dict[str, Symbol] = field(default_factory=dict[str, Symbol])
    longest: int = 0
    near: dict[str, str] = field(default_factory=dict[str, str])
    index_counts: list[int] = field(default_factory=lambda: [0, 0])
    everywhere: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        if self.parent is not None:
            self.everywhere = self.parent.everywhere

    def walk_outward(self) -> Iterator[Scope]:
        """Yield this scope and the enclosing ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def find(self, name: str) -> Symbol | None:
        """Return what a name means here, or None if it is undeclared."""
        if name not in self.everywhere and not name[-1:].isdigit():
            return None
        scope: Scope | None = self
        while scope is not None:
            symbol = scope.cache.get(name) or scope._find_own(name)
            if symbol is not None:
                self.cache[name] = symbol
                return symbol
            scope = scope.parent
        return None

    def _find_own(self, name: str) -> Symbol | None:
        symbol = self.names.get(name)
        if symbol is not None or not self.ranges:
            return symbol
        base = name.rstrip("0123456789")
        while len(base) < len(name) and len(base) <= self.longest:
            entry = self.ranges.get(base)
            if entry is not None and _parse_index(name[len(base) :]) < entry[0]:
                return entry[1]
            base = name[: len(base) + 1]
        return None

    def declare(self, name: str, symbol: Symbol) -> bool:
        """Add a name; return False if this block already has it."""
        if self._find_own(name) is not None:
            return False
        self.put(name, symbol)
        self.cache.pop(name, None)
        return True

    def put(self, name: str, symbol: Symbol) -> None:
        """Set or replace the meaning of a name."""
        self.names[name] = symbol
        self.everywhere.add(name)

    def declare_range(self, base: str, count: int, symbol: Symbol) -> bool:
        """Add `base<count>`; return False if this block already has a range with that base."""
        if base in self.ranges:
            return False
        self.ranges[base] = (count, symbol)
        self.longest = max(self.longest, len(base))
        self.cache.clear()
        return True


def _parse_index(digits: str) -> int:
    """Return the index that digits spell; Python refuses to parse thousands of them."""
    return int(digits if len(digits) < _MOST_DIGITS else digits.lstrip("0")[:_MOST_DIGITS] or "0")


_MOST_DIGITS = 20
"""More digits than any range needs."""


def declare(statement: Statement, scope: Scope) -> Iterator[Diagnostic]:
    """Add what a statement declares to the scope; yield duplicate declarations."""
    if isinstance(statement, RegDecl):
        yield from _declare_registers(statement, scope)
    elif isinstance(statement, VarDecl):
        yield from _declare_variables(statement, scope)
    elif isinstance(statement, Function):
        yield from _declare_function(statement, scope)
    elif isinstance(statement, AliasDirective):
        scope.declare(statement.name, Symbol(Kind.FUNCTION, declaration=statement))


def _declare_registers(statement: RegDecl, scope: Scope) -> Iterator[Diagnostic]:
    symbol = make_register(statement.type.ptx[1:], statement.vector or 0, statement)
    for item in statement.declarators:
        if item.count is None:
            fresh = scope.declare(item.name, symbol)
        else:
            fresh = scope.declare_range(item.name, item.count, symbol)
        if not fresh:
            yield report_duplicate(item.name, "register", word_span(statement, item.name), scope)


def _declare_variables(statement: VarDecl, scope: Scope) -> Iterator[Diagnostic]:
    yield from _check_alignment(statement, statement.name, statement.alignment)
    space = statement.state_space.ptx[1:]
    symbol = Symbol(Kind.VARIABLE, statement.type.ptx[1:], space, declaration=statement)
    for item in statement.declarators:
        if item.count is not None:
            fresh = scope.declare_range(item.name, item.count, symbol)
        else:
            fresh = scope.declare(item.name, symbol)
        if not fresh:
            yield from _redeclare_variable(item.name, symbol, statement, scope)
        if redeclarations.has_extern_value(statement, item):
            yield redeclarations.EXTERN_VALUE.report(
                word_span(statement, item.name), f"`{item.name}` is `.extern` but has an initial value",
                help="use .visible if this module defines it, or remove the value",
            )  # fmt: skip
            continue
        why = initial_values.find_misfit(statement, item, lambda name: scope.find(name) is not None)
        if why is not None:
            yield initial_values.INITIAL_VALUE.report(word_span(statement, item.name), why)


def _check_alignment(statement: Statement, name: str, bytes: int | None) -> Iterator[Diagnostic]:
    if bytes is not None and bytes.bit_count() != 1:
        place = word_span(statement, ".align")
        yield ALIGNMENT.report(place, f"the alignment of `{name}` must be a power of two, found {int(bytes)}")


def _redeclare_variable(name: str, symbol: Symbol, statement: VarDecl, scope: Scope) -> Iterator[Diagnostic]:
    """Check a second declaration of a variable; the definition is kept."""
    earlier = scope.names.get(name)
    before = earlier.declaration if earlier else None
    if not isinstance(before, VarDecl) or redeclarations.is_second_definition(before, statement):
        yield report_duplicate(name, "variable", word_span(statement, name), scope)
        return
    difference = redeclarations.describe_variable_difference(before, statement, name)
    if difference is not None:
        yield _report_difference(f"variable `{name}`", difference, before, word_span(statement, name))
    if before.linking is LinkingDirective.EXTERN:
        scope.put(name, symbol)
        scope.cache.pop(name, None)


def _report_difference(noun: str, difference: str, before: Statement, place: Origin | None) -> Diagnostic:
    line = f" on line {before.origin.line}" if before.origin is not None else ""
    remedy = "make the two declarations agree"
    return redeclarations.DIFFERENT.report(place, f"{noun} was already declared{line}: {difference}", help=remedy)


def _declare_function(function: Function, scope: Scope) -> Iterator[Diagnostic]:
    earlier = scope.names.get(function.name)
    before = earlier.declaration if earlier else None
    if earlier is not None and (not isinstance(before, Function) or before.definition):
        yield report_duplicate(function.name, "function", word_span(function, function.name), scope)
        return
    if before is None and function.definition and function.linking is LinkingDirective.EXTERN:
        place = word_span(function, function.name)
        fix = "use `.visible`, or end the declaration with `;`"
        yield redeclarations.EXTERN_BODY.report(place, f"`{function.name}` is `.extern` but has a body", help=fix)
    if isinstance(before, Function):
        difference = redeclarations.describe_function_difference(before, function)
        if difference is not None:
            place = word_span(function, function.name)
            yield _report_difference(f"function `{function.name}`", difference, before, place)
    scope.put(function.name, Symbol(Kind.FUNCTION, entry=function.is_entry, declaration=function))
    scope.cache.pop(function.name, None)


def create_function_scope(function: Function, module: Scope) -> tuple[Scope, list[Diagnostic]]:
    """Return the scope of a function's body, with its parameters."""
    scope = Scope(module, module.header)
    findings: list[Diagnostic] = []
    for param in (*(function.return_params or ()), *function.params):
        findings += _check_alignment(function, param.name, param.alignment)
        space = param.state_space.ptx[1:]
        type_name, vector = param.type.ptx[1:], param.vector or 0
        if space == "reg":
            symbol = make_register(type_name, vector, param)
        else:
            symbol = Symbol(Kind.VARIABLE, type_name, space, vector, function.is_entry, param)
        if not scope.declare(param.name, symbol) and param.name != "_":
            findings.append(report_duplicate(param.name, "parameter", part_span(function, param), scope))
    return scope, findings


def declare_labels(body: tuple[Statement, ...], scope: Scope) -> Iterator[Diagnostic]:
    """Add a block's labels, which are visible in the whole block. A label before `.callprototype` or a target list
    names that list instead of a place."""
    for index, statement in enumerate(body):
        if isinstance(statement, IntrinsicScope):
            yield from declare_labels(statement.body, scope)
        if not isinstance(statement, Label):
            continue
        follower = body[index + 1] if index + 1 < len(body) else None
        symbol = _LABEL
        if isinstance(follower, CallPrototype):
            symbol = Symbol(Kind.PROTOTYPE, declaration=follower)
        elif isinstance(follower, BranchTargets | CallTargets):
            symbol = Symbol(Kind.TARGETS, declaration=follower)
        if not scope.declare(statement.name, symbol):
            yield report_duplicate(statement.name, "label", word_span(statement, statement.name), scope)


def create_inner_scope(block: Block, scope: Scope) -> tuple[Scope, list[Diagnostic]]:
    """Return the scope of a nested block."""
    inner = Scope(scope, scope.header)
    return inner, list(declare_labels(block.body, inner))


def report_duplicate(name: str, noun: str, origin: Origin | None, scope: Scope) -> Diagnostic:
    """Return the finding for a name that its block already declares."""
    first = scope.names.get(name) or scope.ranges.get(name, (0, None))[1]
    place = first.declaration.origin if first is not None and first.declaration is not None else None
    location = f", on line {place.line}" if place is not None else ""
    return DUPLICATE.report(
        origin, f"{noun} `{name}` is already declared in this block{location}", help="rename one of them"
    )
