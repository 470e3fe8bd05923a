"""Finds the names that statements use, and renames them. Knows that a name declared inside a function hides the
module's."""

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
from pyptx.ir.base import Node, list_field_names
from pyptx.ir.nodes import Declarator
from pyptx.ir.walk import parts_of, replace_statements
from pyptx.sim.rules import faults

_NAMED: dict[type[Node], str] = {
    RegisterOperand: "name", LabelOperand: "name", IndexedOperand: "name", AddressOperand: "base",
    GenericOperand: "symbol",
}  # fmt: skip
"""The field that holds the name, by type of operand."""


def find_names(module: Module) -> set[str]:
    """Return every name in instructions, initializers and aliases: all that must be defined."""
    names: set[str] = set()
    for statement in visit(module):
        if isinstance(statement, Instruction):
            for operand in statement.operands:
                _add_names(operand, names)
        elif isinstance(statement, VarDecl):
            for item in statement.declarators:
                _add_initial_values(item, names)
        elif isinstance(statement, AliasDirective):
            names.add(statement.aliasee)
    return names


def _add_initial_values(item: Declarator, names: set[str]) -> None:
    for value in item.initializer or ():
        if isinstance(value, str):
            names.add(value)
        else:
            _add_names(value, names)


def _add_names(operand: Node, names: set[str]) -> None:
    for part in parts_of(operand):
        name = _NAMED.get(type(part))
        if name is not None:
            names.add(getattr(part, name))


def rename(module: Module, statement: Statement, names: Mapping[str, str]) -> Statement:
    """Return a statement of a module with the module's names replaced."""
    if not names:
        return statement
    if isinstance(statement, Function):
        return _rename_function(module, statement, names)
    return _rename_statement(statement, names)


def _rename_function(module: Module, function: Function, names: Mapping[str, str]) -> Function:
    """Return a function with its own name and the module's names in its body replaced."""
    shadows = names.keys() & _find_local_names(function)
    visible_names = {name: new for name, new in names.items() if name not in shadows}
    if shadows:
        _refuse_shadows(module, function, shadows)
    name = names.get(function.name, function.name)
    if visible_names and function.definition:
        body = replace_statements(
            Module(module.version, module.target, None, function.body),
            lambda inner: _rename_statement(inner, visible_names),
        )
        return function.replace(name=name, body=body.directives)
    return function.replace(name=name) if name != function.name else function


def _find_local_names(function: Function) -> set[str]:
    """Return all names that a function declares."""
    names = {param.name for param in (*(function.return_params or ()), *function.params)}
    for statement in visit(function):
        if isinstance(statement, Label):
            names.add(statement.name)
        elif isinstance(statement, RegDecl | VarDecl):
            for item in statement.declarators:
                names.update(f"{item.name}{n}" for n in range(item.count or 0))
                names.add(item.name)
    return names


def _refuse_shadows(module: Module, function: Function, shadows: set[str]) -> None:
    """Raise PtxError if a name is the module's at one place of a function and local at another."""
    bodies, names, _ = checker.collect_bodies(module)
    for step in (step for body in bodies if body.function is function for step in body.steps):
        mentions: set[str] = set()
        for operand in step.instruction.operands:
            _add_names(operand, mentions)
        for name in sorted(mentions & shadows):
            if step.scope.find(name) is names.find(name):
                text = f"`{name}`, which another module also declares, is hidden by a name in `{function.name}`"
                raise PtxError([faults.LINKING.report(step.instruction.origin, text, help="rename one of them")])


def _rename_statement(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Return a statement with names replaced, except in nested statements."""
    if isinstance(statement, Instruction):
        operands = tuple(cast("Any", _rename_operand(operand, names)) for operand in statement.operands)
        is_unchanged = all(new is old for new, old in zip(operands, statement.operands, strict=True))
        return statement if is_unchanged else statement.replace(operands=operands)
    if isinstance(statement, VarDecl):
        return _rename_variables(statement, names)
    if isinstance(statement, CallTargets):
        return statement.replace(targets=tuple(names.get(name, name) for name in statement.targets))
    if isinstance(statement, AliasDirective):
        return statement.replace(
            name=names.get(statement.name, statement.name), aliasee=names.get(statement.aliasee, statement.aliasee)
        )
    return statement


def _rename_variables(statement: VarDecl, names: Mapping[str, str]) -> VarDecl:
    changes: dict[str, Any] = {}
    if statement.name in names:
        changes["name"] = names[statement.name]
    if statement.initializer is not None:
        changes["initializer"] = _rename_values(statement.initializer, names)
    if statement.more:
        changes["more"] = tuple(
            item.replace(
                name=names.get(item.name, item.name),
                initializer=None if item.initializer is None else _rename_values(item.initializer, names),
            )
            for item in statement.more
        )
    return statement.replace(**changes) if changes else statement


def _rename_values(values: tuple[Any, ...], names: Mapping[str, str]) -> tuple[Any, ...]:
    return tuple(
        names.get(value, value) if isinstance(value, str) else _rename_operand(value, names) for value in values
    )


def _rename_operand(operand: Node, names: Mapping[str, str]) -> Node:
    """Return an operand with names replaced, or the same object if it uses none of them."""
    mentions: set[str] = set()
    _add_names(operand, mentions)
    if not mentions & names.keys():
        return operand
    changes: dict[str, Any] = {}
    name_field = _NAMED.get(type(operand))
    for name in list_field_names(type(operand)):
        value: Any = getattr(operand, name)
        if name == name_field:
            changes[name] = names.get(value, value)
        elif isinstance(value, Node):
            changes[name] = _rename_operand(value, names)
        elif isinstance(value, tuple):
            parts = cast("tuple[Any, ...]", value)
            changes[name] = tuple(_rename_operand(part, names) if isinstance(part, Node) else part for part in parts)
    return operand.replace(**changes)
