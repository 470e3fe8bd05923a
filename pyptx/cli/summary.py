"""Summarizes a module as plain values, for `pyptx info`. Assembles nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

from pyptx.ir import Declarator, Function, Instruction, Module, Param, RegDecl, Statement, StateSpace, VarDecl, visit
from pyptx.isa.lookup import lookup
from pyptx.isa.model import Match
from pyptx.isa.targets import ASSEMBLED, FIRST_PTX, Availability, Version, find_target

Summary = dict[str, object]


def summarize(module: Module) -> Summary:
    """Return what `pyptx info --json` prints for a module, without resources."""
    functions = [s for s in module.directives if isinstance(s, Function)]
    variables = [s for s in module.directives if isinstance(s, VarDecl)]
    return {
        "version": f"{module.version.major}.{module.version.minor}",
        "target": list(module.target.targets),
        "address_size": module.address_size.size if module.address_size else 32,
        "needs": find_needs(module),
        "functions": [_summarize_function(function) for function in functions],
        "variables": [variable for declaration in variables for variable in _summarize_variables(declaration)],
    }


def find_needs(module: Module) -> Summary:
    """Return the lowest PTX version that the instructions need on the module's target, the instruction that needs it,
    and the targets of the newest ptxas that have all of them in the module's version."""
    spellings = dict.fromkeys((i.opcode, i.modifiers) for i in visit(module) if isinstance(i, Instruction))
    availabilities = {
        opcode + "".join(modifiers): _find_availability(opcode, modifiers) for opcode, modifiers in spellings
    }
    mine = next((name for name in module.target.targets if name in FIRST_PTX), ASSEMBLED[0])
    lowest, because = FIRST_PTX[mine], f".target {mine}"
    for spelling, every in availabilities.items():
        for availability in every:
            first = availability.find_first_version(find_target(mine))
            if first is not None and first > lowest:
                lowest, because = first, spelling
    version: Version = (module.version.major, module.version.minor)
    everything = [availability for every in availabilities.values() for availability in every]
    fits = [name for name in ASSEMBLED if all(a.on(find_target(name), version) for a in everything)]
    return {"version": f"{lowest[0]}.{lowest[1]}", "because": because, "targets": fits}


def _find_availability(opcode: str, modifiers: tuple[str, ...]) -> tuple[Availability, ...]:
    """A spelling that is not in the table has no known requirements; `pyptx check` reports it."""
    match = lookup(opcode, tuple(modifier.removeprefix(".") for modifier in modifiers))
    return match.needs if isinstance(match, Match) else ()


def _summarize_function(function: Function) -> Summary:
    body = list(visit(function))
    shared = [s for s in body if isinstance(s, VarDecl) and s.state_space is StateSpace.SHARED]
    local = [s for s in body if isinstance(s, VarDecl) and s.state_space is StateSpace.LOCAL]
    opcodes = Counter(s.full_opcode for s in body if isinstance(s, Instruction))
    return {
        "name": function.name,
        "entry": function.is_entry,
        "defined": function.definition,
        "line": function.origin.line if function.origin else 0,
        "parameters": [_summarize_parameter(parameter) for parameter in function.params],
        "directives": {directive.name: list(directive.values) for directive in function.directives},
        "registers": _count_registers(body),
        "shared_bytes": _count_bytes(shared),
        "local_bytes": _count_bytes(local),
        "instructions": dict(opcodes.most_common()),
    }


def _summarize_parameter(parameter: Param) -> Summary:
    size = 1 if parameter.array_size is None else int(parameter.array_size)
    return {
        "name": parameter.name,
        "type": parameter.type.ptx,
        "bytes": parameter.type.bits // 8 * size * (parameter.vector or 1),
    }


def _count_registers(body: Iterable[Statement]) -> dict[str, int]:
    """Count the registers declared, by type. A declaration inside a nested block counts once."""
    counts: Counter[str] = Counter()
    for declaration in body:
        if isinstance(declaration, RegDecl):
            names = sum(1 if item.count is None else int(item.count) for item in declaration.declarators)
            counts[declaration.type.ptx] += names * (declaration.vector or 1)
    return dict(counts)


def _summarize_variables(declaration: VarDecl) -> Iterable[Summary]:
    for item in declaration.declarators:
        yield {
            "name": item.name,
            "space": declaration.state_space.ptx,
            "type": declaration.type.ptx,
            "bytes": _count_declared_bytes(declaration, item),
            "linking": declaration.linking.ptx if declaration.linking else None,
        }


def _count_bytes(declarations: Iterable[VarDecl]) -> int:
    return sum(
        _count_declared_bytes(declaration, item) for declaration in declarations for item in declaration.declarators
    )


def _count_declared_bytes(declaration: VarDecl, item: Declarator) -> int:
    """`name[]` counts as 0 bytes: the launch gives its size."""
    sizes = [1] if item.array_size is None else [int(item.array_size), *(int(size) for size in item.dims)]
    return declaration.type.bits // 8 * (declaration.vector or 1) * prod(sizes) * int(item.count or 1)
