"""Collects the rules of the checker, PTX0101 to PTX0640 and PTX0979, which the other modules of the package define."""

from __future__ import annotations

from pyptx.check import (
    aliases,
    calls,
    constants,
    dataflow,
    dependents,
    header,
    initial_values,
    launch,
    operand_rules,
    redeclarations,
    scopes,
    shared_memory,
    spelling,
    symbols,
    tensor_maps,
    uniformity,
)
from pyptx.diagnostics import Rule

_CHECKS = (
    spelling, operand_rules, header, symbols, calls, dataflow, dependents, uniformity, launch, shared_memory,
    tensor_maps, scopes, redeclarations, initial_values, constants,
    aliases,
)  # fmt: skip

RULES: tuple[Rule, ...] = tuple(sorted((rule for c in _CHECKS for rule in c.RULES), key=lambda rule: rule.code))
