"""Names that a module's statements use, and the same statements under other names. Knows what declares a name inside a
function, which hides the module's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pyptx.check import checker
from pyptx.diagnostics import PtxError
from pyptx.ir import (
    AddressOperand,
    AliasDirective,
    CallTargets,
    Function,
    GenericOperand,
    IndexedOperand,
    Instruction,
    Label,
    LabelOperand,
    Module,
    RegDecl,
    RegisterOperand,
    Statement,
    VarDecl,
    visit,
)
from pyptx.ir.base import Node, field_names
from pyptx.ir.nodes import Declarator
from pyptx.ir.walk import parts_of, replace_statements
from pyptx.sim.rules import faults

_NAMED: dict[type[Node], str] = {
    RegisterOperand: "name", LabelOperand: "name", IndexedOperand: "name", AddressOperand: "base",
    GenericOperand: "symbol",
}  # fmt: skip
"""Operands that name something, and the field that holds the name."""


def names_used(module: Module) -> set[str]:
    """Return every name that instructions, initial values, target lists and aliases mention."""
    found: set[str] = set()
    for statement in visit(module):
        if isinstance(statement, Instruction):
            for operand in statement.operands:
                _mention(operand, found)
        elif isinstance(statement, VarDecl):
            for item in statement.declarators:
                _values(item, found)
        elif isinstance(statement, CallTargets):
            found.update(statement.targets)
        elif isinstance(statement, AliasDirective):
            found.add(statement.aliasee)
    return found


def _values(item: Declarator, found: set[str]) -> None:
    for value in item.initializer or ():
        if isinstance(value, str):
            found.add(value)
        else:
            _mention(value, found)


def _mention(operand: Node, found: set[str]) -> None:
    for part in parts_of(operand):
        name = _NAMED.get(type(part))
        if name is not None:
            found.add(getattr(part, name))


def renamed(module: Module, statement: Statement, names: Mapping[str, str]) -> Statement:
    """Return a statement of a module with the module's names in it replaced."""
    if not names:
        return statement
    if isinstance(statement, Function):
        return _function(module, statement, names)
    return _changed(statement, names)


def _function(module: Module, function: Function, names: Mapping[str, str]) -> Function:
    """Return a function under its new name, with the module's names in its body replaced."""
    hidden = names.keys() & _local(function)
    inside = {name: new for name, new in names.items() if name not in hidden}
    if hidden:
        _refuse(module, function, hidden)
    name = names.get(function.name, function.name)
    if inside and function.definition:
        body = replace_statements(
            Module(module.version, module.target, None, function.body), lambda inner: _changed(inner, inside)
        )
        return function.replace(name=name, body=body.directives)
    return function.replace(name=name) if name != function.name else function


def _local(function: Function) -> set[str]:
    """Return the names that a function declares anywhere."""
    found = {param.name for param in (*(function.return_params or ()), *function.params)}
    for statement in visit(function):
        if isinstance(statement, Label):
            found.add(statement.name)
        elif isinstance(statement, RegDecl | VarDecl):
            for item in statement.declarators:
                found.update(f"{item.name}{n}" for n in range(item.count or 0))
                found.add(item.name)
    return found


def _refuse(module: Module, function: Function, hidden: set[str]) -> None:
    """Refuse a function in which a name is the module's at one place and its own at another."""
    bodies, names, _ = checker.collect_bodies(module)
    for step in (step for body in bodies if body.function is function for step in body.steps):
        used: set[str] = set()
        for operand in step.instruction.operands:
            _mention(operand, used)
        for name in sorted(used & hidden):
            if step.scope.find(name) is names.find(name):
                text = f"`{name}`, which another module has too, is hidden by a name of `{function.name}`"
                raise PtxError([faults.LINKING.found(step.instruction.origin, text, help="rename one of them")])


def _changed(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Return one statement, without what is inside it, under new names."""
    if isinstance(statement, Instruction):
        operands = tuple(cast("Any", _operand(operand, names)) for operand in statement.operands)
        same = all(new is old for new, old in zip(operands, statement.operands, strict=True))
        return statement if same else statement.replace(operands=operands)
    if isinstance(statement, VarDecl):
        return _variables(statement, names)
    if isinstance(statement, CallTargets):
        return statement.replace(targets=tuple(names.get(name, name) for name in statement.targets))
    if isinstance(statement, AliasDirective):
        return statement.replace(
            name=names.get(statement.name, statement.name), aliasee=names.get(statement.aliasee, statement.aliasee)
        )
    return statement


def _variables(statement: VarDecl, names: Mapping[str, str]) -> VarDecl:
    changes: dict[str, Any] = {}
    if statement.name in names:
        changes["name"] = names[statement.name]
    if statement.initializer is not None:
        changes["initializer"] = _initial(statement.initializer, names)
    if statement.more:
        changes["more"] = tuple(
            item.replace(
                name=names.get(item.name, item.name),
                initializer=None if item.initializer is None else _initial(item.initializer, names),
            )
            for item in statement.more
        )
    return statement.replace(**changes) if changes else statement


def _initial(values: tuple[Any, ...], names: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple(names.get(value, value) if isinstance(value, str) else _operand(value, names) for value in values)


def _operand(operand: Node, names: Mapping[str, str]) -> Node:
    """Return an operand under new names, the same one if it names none of them."""
    used: set[str] = set()
    _mention(operand, used)
    if not used & names.keys():
        return operand
    changes: dict[str, Any] = {}
    named = _NAMED.get(type(operand))
    for name in field_names(type(operand)):
        value: Any = getattr(operand, name)
        if name == named:
            changes[name] = names.get(value, value)
        elif isinstance(value, Node):
            changes[name] = _operand(value, names)
        elif isinstance(value, tuple):
            parts = cast("tuple[Any, ...]", value)
            changes[name] = tuple(_operand(part, names) if isinstance(part, Node) else part for part in parts)
    return operand.replace(**changes)
