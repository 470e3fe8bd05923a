"""Writes statements as calls, one each. `plain.py` handles what depends on their position."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Sequence
from typing import Any

from pyptx.codegen.operands import NONE, Operands
from pyptx.codegen.plan import Attribute, Call, Expr, Item, List, Literal, Name, Tuple, Unary, build_literal, build_path
from pyptx.codegen.scopes import Scope
from pyptx.dsl.emit import spell
from pyptx.dsl.exact import find_address_places
from pyptx.ir.directives import (
    AliasDirective,
    BranchTargets,
    CallPrototype,
    CallTargets,
    DwarfDirective,
    FileDirective,
    LocDirective,
    PragmaDirective,
    SectionLabel,
    Target,
)
from pyptx.ir.nodes import Attribute as VariableAttribute
from pyptx.ir.nodes import (
    Declarator,
    Function,
    FunctionDirective,
    Instruction,
    Label,
    Param,
    RegDecl,
    Statement,
    VarDecl,
)
from pyptx.ir.operands import Operand
from pyptx.isa.lookup import lookup
from pyptx.isa.model import Match
from pyptx.isa.targets import Target as Arch
from pyptx.isa.targets import Version
from pyptx.ptx.chain import parse_word

INST = build_path("ptx.inst")
TRUE, FALSE = Literal(True), Literal(False)
_UNCHECKED = (("unchecked", TRUE),)
_LONGEST_CHAIN = 60
"""Maximum length of an instruction spelled as attributes, where lines cannot be broken; longer ones become a string."""
Keywords = tuple[tuple[str, Expr], ...]


class Statements:
    """Builds the expression of a statement. `inside` names the module on which declarations in functions are called
    (`ptx.decl`, `ptx`); module-level ones are methods of the module."""

    def __init__(self, target: Arch | None, version: Version, module: str) -> None:
        self.operands = Operands()
        self.target, self.version = target, version
        self.module = Name(module)
        self.spellings: dict[tuple[str, tuple[str, ...], int], tuple[Expr, tuple[bool, ...], Keywords]] = {}

    def build_instruction(self, node: Instruction, scope: Scope) -> Expr:
        """Return `ptx.inst.…(…)`."""
        count = len(node.operands)
        key = node.opcode, node.modifiers, count
        entry = self.spellings.get(key)
        if entry is None:
            entry = self.spellings[key] = self._spell(*key)
        function, places, keywords = entry
        expr = self.operands.build_expression
        if places:
            operands = tuple([expr(o, scope, place) for o, place in zip(node.operands, places, strict=True)])
        else:
            operands = tuple([expr(o, scope) for o in node.operands])
        if node.predicate is not None:
            guard = self.build_guard(node.predicate.register, node.predicate.negated, scope)
            keywords = (("pred", guard), *keywords)
        return Call(function, operands, keywords)

    def build_guard(self, name: str, is_negated: bool, scope: Scope) -> Expr:
        """Return a guard's expression."""
        expression = self.operands.build_name(name, scope)
        if not is_negated:
            return expression
        return (
            Unary("~", expression)
            if scope.is_predicate(expression)
            else Call(build_path("ptx.op.negated"), (expression,))
        )

    def _spell(self, opcode: str, modifiers: tuple[str, ...], count: int) -> tuple[Expr, tuple[bool, ...], Keywords]:
        words = tuple([m[1:] for m in modifiers])
        entry = (
            None
            if self.target is None
            else find_address_places(spell(opcode, *words), count, self.target, self.version)
        )
        match = lookup(opcode, words) if entry is not None else None
        names = [spell_attribute(w) for w in (opcode, *words)]
        usual = isinstance(match, Match) and match.canonical is None
        if usual and None not in names and sum(map(len, words)) < _LONGEST_CHAIN:
            function: Expr = INST
            for name in names:
                function = Attribute(function, str(name))
        else:
            function = Item(INST, Literal(opcode + "".join(modifiers)))
        places = () if entry is None or not any(entry[0]) else entry[0]
        return function, places, () if entry is not None else _UNCHECKED

    def build_registers(self, node: RegDecl, inside: bool) -> Expr:
        """Return `ptx.decl.reg(…)`."""
        names = [
            Literal(item.name if item.count is None else f"{item.name}<{_format_count(item.count)}>")
            for item in node.declarators
        ]
        return self._build_call("decl.reg" if inside else "reg", inside, [self.operands.build_type(node.type), *names],
                          vector=self._build_number(node.vector), align=self._build_number(node.alignment))  # fmt: skip

    def build_variable(self, node: VarDecl, scope: Scope, inside: bool) -> Expr:
        """Return `ptx.decl.var(…)`."""
        first, *further = node.declarators
        shape = self._build_shape(first)
        arguments = [Literal(node.state_space.ptx[1:]), self.operands.build_type(node.type), Literal(node.name)]
        if shape is not None or further:
            arguments.append(shape or NONE)
        arguments += [self._build_item(item, scope) for item in further]
        return self._build_call(
            "decl.var" if inside else "var", inside, arguments,
            init=self._build_init(first, scope), align=self._build_number(node.alignment),
            linking=None if node.linking is None else Literal(node.linking.ptx[1:]),
            vector=self._build_number(node.vector), count=self._build_number(node.count),
            braces=_build_bool(node.braces), attributes=self._build_attributes(node.attributes),
            attributes_first=None if node.attributes_first else FALSE, bank=self._build_number(node.bank),
        )  # fmt: skip

    def _build_item(self, item: Declarator, scope: Scope) -> Expr:
        shape = self._build_shape(item)
        fields = [("init", self._build_init(item, scope)), ("count", self._build_number(item.count))]
        keywords = [(name, expr) for name, expr in (*fields, ("braces", _build_bool(item.braces))) if expr is not None]
        arguments = (Literal(item.name),) if shape is None else (Literal(item.name), shape)
        return Call(build_path("ptx.decl.item"), arguments, tuple(keywords))

    def _build_shape(self, item: Declarator) -> Expr | None:
        if item.array_size is None:
            return None
        sizes = [self.operands.build_integer(size) for size in (item.array_size, *item.dims)]
        return sizes[0] if len(sizes) == 1 and sizes[0] is not NONE else Tuple(tuple(sizes))

    def _build_init(self, item: Declarator, scope: Scope) -> Expr | None:
        if item.initializer is None:
            return None
        return List(tuple([self._build_initial(value, scope) for value in item.initializer]))

    def _build_initial(self, value: str | Operand, scope: Scope) -> Expr:
        if isinstance(value, Operand):
            return self.operands.build_expression(value, scope)
        return self.operands.build_number(value) if value[0] in "-.0123456789" else Literal(value)

    def build_parameter(self, node: Param) -> Expr:
        """Return `ptx.decl.param(…)`."""
        value = self._build_number
        arguments: list[Expr] = [self.operands.build_type(node.type), Literal(node.name)]
        if node.array_size is not None:
            size = self.operands.build_integer(node.array_size)
            arguments.append(Tuple() if size is NONE else size)
        pointer: Expr | None = None
        if node.ptr_state_space is not None:
            pointer = Literal(node.ptr_state_space.ptx[1:])
        elif node.pointer or node.ptr_alignment is not None:
            pointer = TRUE
        space = node.state_space.ptx[1:]
        return _call_with_keywords(
            build_path("ptx.decl.param"), arguments, space=None if space == "param" else Literal(space),
            align=value(node.alignment), ptr=pointer, ptr_align=value(node.ptr_alignment), vector=value(node.vector),
            trailing_align=value(node.trailing_alignment),
        )  # fmt: skip

    def build_header(self, node: Function) -> Expr:
        """Return `module.entry(…)`, `module.func(…)` or, without a body, `module.declare(…)`."""
        method = "declare" if not node.definition else "entry" if node.is_entry else "func"
        returns = None
        if node.return_params is not None:
            returns = List(tuple([self.build_parameter(param) for param in node.return_params]))
        arguments = [Literal(node.name), *[self.build_parameter(param) for param in node.params]]
        return _call_with_keywords(
            Attribute(self.module, method), arguments,
            entry=TRUE if node.is_entry and not node.definition else None, returns=returns,
            linking=None if node.linking is None else Literal(node.linking.ptx[1:]),
            directives=self._build_directives(node.directives), attributes=self._build_attributes(node.attributes),
            parens=None if node.parens or node.params else FALSE,
        )  # fmt: skip

    def _build_directives(self, nodes: Sequence[FunctionDirective]) -> Expr | None:
        directives: list[Expr] = []
        for item in nodes:
            values = [self.operands.build_integer(v) for v in item.values]
            directives.append(Tuple((Literal(item.name), *values)) if values else Literal(item.name))
        return List(tuple(directives)) if directives else None

    def _build_attributes(self, nodes: Sequence[VariableAttribute]) -> Expr | None:
        attributes: list[Expr] = []
        for item in nodes:
            name = Literal(item.name.removeprefix("."))
            attributes.append(Tuple((name, *map(self.operands.build_integer, item.values))) if item.values else name)
        return List(tuple(attributes)) if attributes else None

    def build_label(self, node: Label, inside: bool) -> Expr:
        """Return `ptx.label(…)`."""
        return self._build_call("label", inside, [Literal(node.name)])

    def build_directive(self, node: Statement, inside: bool) -> Expr:
        """Return `ptx.directive(…)`."""
        make = _DIRECTIVES.get(type(node))
        if make is None:
            raise ValueError(f"{node!r} cannot be written in Python")
        word, values, keywords = make(self, node)
        return self._build_call("directive", inside, [Literal(word), *values], **keywords)

    def _build_section_value(self, value: int | str | SectionLabel) -> Expr:
        if isinstance(value, str):
            return Literal(value)
        if not isinstance(value, SectionLabel):
            return self.operands.build_integer(value)
        if value.minus is not None:
            return build_literal((value.name, "-", value.minus))
        return Literal(value.name) if value.offset is None else Tuple(
            (Literal(value.name), self.operands.build_integer(value.offset))
        )  # fmt: skip

    def _build_call(self, method: str, inside: bool, arguments: Sequence[Expr], **keywords: Expr | None) -> Expr:
        function = build_path(f"ptx.{method}") if inside else Attribute(self.module, method)
        return _call_with_keywords(function, arguments, **keywords)

    def _build_number(self, value: int | None) -> Expr | None:
        return None if value is None else self.operands.build_integer(value)

    def build_loc(self, node: LocDirective) -> tuple[str, list[Expr], dict[str, Expr | None]]:
        """Return the arguments of `.loc`."""
        value = self.operands.build_integer
        name = None if node.function_name is None else self._build_section_value(node.function_name)
        caller = None if node.inlined_at is None else Tuple(tuple([value(number) for number in node.inlined_at]))
        keywords = {"function_name": name, "inlined_at": caller, "intermediate": TRUE if node.intermediate else None}
        return "loc", [value(node.file), value(node.line), value(node.column)], keywords

    def build_file(self, node: FileDirective) -> tuple[str, list[Expr], dict[str, Expr | None]]:
        """Return the arguments of `.file`."""
        stamps = [self.operands.build_integer(stamp) for stamp in (node.timestamp, node.size) if stamp is not None]
        return "file", [self.operands.build_integer(node.index), Literal(node.path), *stamps], {}

    def build_prototype(self, node: CallPrototype) -> tuple[str, list[Expr], dict[str, Expr | None]]:
        """Return the arguments of `.callprototype`."""
        params, returns = (
            None if parameters is None else List(tuple([self.build_parameter(param) for param in parameters]))
            for parameters in (node.params or None, node.return_params)
        )
        parens = None if node.parens or node.params else FALSE
        keywords = {
            "params": params,
            "returns": returns,
            "directives": self._build_directives(node.directives),
            "parens": parens,
        }
        return "callprototype", [], keywords

    def build_branches(self, node: BranchTargets) -> tuple[str, list[Expr], dict[str, Expr | None]]:
        """Return the arguments of `.branchtargets`."""
        labels: list[Expr] = []
        for item in node.targets:
            name = Literal(item.name)
            labels.append(name if item.count is None else Tuple((name, self.operands.build_integer(item.count))))
        return "branchtargets", labels, {}

    def build_dwarf(self, node: DwarfDirective) -> tuple[str, list[Expr], dict[str, Expr | None]]:
        """Return the arguments of `@@DWARF`."""
        return "dwarf", [Literal(node.keyword), *[self._build_section_value(value) for value in node.values]], {}


_DIRECTIVES: dict[type, Callable[[Any, Any], tuple[str, list[Expr], dict[str, Expr | None]]]] = {
    LocDirective: Statements.build_loc,
    FileDirective: Statements.build_file,
    CallPrototype: Statements.build_prototype,
    BranchTargets: Statements.build_branches,
    DwarfDirective: Statements.build_dwarf,
    PragmaDirective: lambda statements, node: ("pragma", [Literal(text) for text in (node.value, *node.more)], {}),
    CallTargets: lambda statements, node: ("calltargets", [Literal(name) for name in node.targets], {}),
    Target: lambda statements, node: ("target", [Literal(name) for name in node.targets], {}),
    AliasDirective: lambda statements, node: ("alias", [Literal(node.name), Literal(node.aliasee)], {}),
}


def spell_attribute(modifier: str) -> str | None:
    """Return the attribute of `ptx.inst` that spells a modifier, or None."""
    name = modifier.replace("::", "__")
    if name[:1].isdigit():
        name = f"_{name}"
    if keyword.iskeyword(name) or name in _TAKEN:
        name = f"{name}_"
    return name if name.isidentifier() and name.isascii() and parse_word(name) == modifier else None


_TAKEN = frozenset(("global",))


def _call_with_keywords(function: Expr, arguments: Sequence[Expr], **keywords: Expr | None) -> Expr:
    present = [(name, value) for name, value in keywords.items() if value is not None]
    return Call(function, tuple(arguments), tuple(present))


def _format_count(count: int) -> str:
    return str(getattr(count, "text", int(count)))


def _build_bool(value: bool | None) -> Expr | None:
    return None if value is None else Literal(value)
