"""Walks a module once to check names, spelling, operands and guards of every instruction, then runs the checks of whole
functions."""

from __future__ import annotations

from collections.abc import Iterator

from pyptx.check import (
    aliases,
    calls,
    dataflow,
    dependents,
    directives,
    flow,
    launch,
    scopes,
    shared_memory,
    spelling,
    symbols,
    tensor_maps,
    uniformity,
)
from pyptx.check import header as headers
from pyptx.check.body import Body, Place, Step
from pyptx.check.complaint import Complaint
from pyptx.check.operand_rules import GUARD
from pyptx.check.plans import Plan, build_plans, match_operands
from pyptx.check.suggestions import suggest_name
from pyptx.check.symbols import Kind, Scope
from pyptx.diagnostics import Diagnostic
from pyptx.ir import (
    Block,
    BranchTargets,
    Function,
    Instruction,
    IntrinsicScope,
    Label,
    Module,
    PragmaDirective,
    Statement,
    guard_span,
    modifier_span,
    opcode_span,
    operand_span,
)
from pyptx.ir.collection import without_collector
from pyptx.isa import targets
from pyptx.isa.targets import Target, Version


def check(module: Module, target: str | None = None, *, unused: bool = False) -> list[Diagnostic]:
    """Return the findings of a module in text order; errors are what ptxas rejects.

    `target` overrides the module's architecture; `unused` also reports registers that are never read.
    """
    findings = list(headers.check_header(module))
    architecture = choose_architecture(module, target)
    findings += aliases.check_aliases(module)
    with without_collector():
        walk = _walk(module, architecture, findings)
        for body in walk.bodies:
            findings += check_function(body, architecture, unused)
    return sorted(findings, key=lambda d: (d.line, d.col))


def collect_bodies(module: Module) -> tuple[list[Body], Scope, list[Diagnostic]]:
    """Return every function with a body, the module's names, and the findings about single instructions. Skips the
    checks of whole functions."""
    findings: list[Diagnostic] = []
    walk = _walk(module, choose_architecture(module), findings)
    return walk.bodies, walk.names, findings


def choose_architecture(module: Module, target: str | None = None) -> Target:
    """Return the architecture to check for: the requested one, or the module's own."""
    return (targets.find_target(target) if target else headers.find_architecture(module)) or targets.find_target(
        "sm_75"
    )


def _walk(module: Module, target: Target, findings: list[Diagnostic]) -> _Walk:
    version = (int(module.version.major), int(module.version.minor))
    scope = Scope(header=(target, version))
    walk = _Walk(target, version, scope)
    for statement in module.directives:
        findings += walk.check_statement(statement, scope)
    findings += walk.findings
    return walk


def check_function(body: Body, target: Target, with_unused: bool) -> Iterator[Diagnostic]:
    """Yield the findings of the checks that need a whole function."""
    runs = flow.build_runs(body)
    yield from dataflow.check_dataflow(body.function, runs, with_unused)
    yield from uniformity.find_divergent_aligned(runs)
    yield from dependents.check_dependents(body.function, runs)
    yield from calls.check_calls(body)
    yield from launch.check_launch(body)
    yield from shared_memory.check_shared_memory(body, target)
    yield from tensor_maps.check_tensor_maps(body)
    yield from scopes.check_scopes(body.function)


class _Walk:
    """The state of one walk: the header, and the verdicts on spellings already seen."""

    def __init__(self, target: Target, version: Version, names: Scope) -> None:
        self.target, self.version, self.names = target, version, names
        self.verdicts: dict[tuple[str, tuple[str, ...]], tuple[Complaint | None, dict[int, list[Plan]]]] = {}
        self.bodies: list[Body] = []
        self.findings: list[Diagnostic] = []

    def check_statement(self, statement: Statement, scope: Scope) -> Iterator[Diagnostic]:
        """Check one statement at module level, including whole functions."""
        yield from symbols.declare(statement, scope)
        if isinstance(statement, PragmaDirective):
            yield from directives.check_pragmas(statement, self.target, self.version)
        if isinstance(statement, Function):
            yield from directives.check_directives(statement, self.target, self.version)
        if isinstance(statement, Function) and statement.definition:
            yield from self._check_function(statement, scope)

    def _check_function(self, function: Function, module: Scope) -> Iterator[Diagnostic]:
        scope, findings = symbols.create_function_scope(function, module)
        yield from findings
        yield from symbols.declare_labels(function.body, scope)
        body = Body(function)
        open_blocks: list[tuple[Iterator[Statement], Scope]] = [(iter(function.body), scope)]
        while open_blocks:
            statements, scope = open_blocks[-1]
            for statement in statements:
                if isinstance(statement, Instruction):
                    step = self._check_instruction(statement, scope)
                    body.items.append(step)
                    body.steps.append(step)
                elif isinstance(statement, Block | IntrinsicScope):
                    inner = scope
                    if isinstance(statement, Block):
                        inner, findings = symbols.create_inner_scope(statement, scope)
                        yield from findings
                    open_blocks.append((iter(statement.body), inner))
                    break
                elif isinstance(statement, Label):
                    body.items.append(Place(statement, scope, _find_branch_targets(statement, scope)))
                elif isinstance(statement, PragmaDirective):
                    yield from directives.check_pragmas(statement, self.target, self.version)
                else:
                    yield from symbols.declare(statement, scope)
            else:
                open_blocks.pop()
        self.bodies.append(body)

    def _check_instruction(self, instruction: Instruction, scope: Scope) -> Step:
        key = (instruction.opcode, instruction.modifiers)
        verdict = self.verdicts.get(key)
        if verdict is None:
            verdict = self.verdicts[key] = self._judge(instruction)
        complaint, plans = verdict
        if complaint is not None:
            self.findings.append(place_complaint(complaint, instruction))
        plan = None
        if plans:
            plan, misfit = match_operands(instruction, plans, scope)
            if misfit is not None:
                self.findings.append(place_complaint(misfit, instruction))
        if instruction.predicate is not None:
            misfit = _check_guard(instruction.predicate.register, scope)
            if misfit is not None:
                self.findings.append(misfit.rule.report(guard_span(instruction), misfit.message, help=misfit.help))
        return Step(instruction, scope, plan)

    def _judge(self, instruction: Instruction) -> tuple[Complaint | None, dict[int, list[Plan]]]:
        modifiers = tuple(m[1:] for m in instruction.modifiers)
        verdict = spelling.judge_spelling(
            instruction.opcode, modifiers, self.target, self.version, len(instruction.operands)
        )
        return verdict.complaint, build_plans(verdict.usable)


def _find_branch_targets(label: Label, scope: Scope) -> BranchTargets | None:
    symbol = scope.find(label.name)
    declaration = symbol.declaration if symbol else None
    return declaration if isinstance(declaration, BranchTargets) else None


def _check_guard(name: str, scope: Scope) -> Complaint | None:
    symbol = scope.find(name)
    if symbol is None:
        return Complaint(symbols.UNDECLARED, f"the guard `{name}` is not declared here", suggest_name(name, scope))
    if symbol.kind is Kind.REGISTER and symbol.type == "pred":
        return None
    description = f"a register declared .{symbol.type}" if symbol.kind is Kind.REGISTER else f"a {symbol.kind}"
    return Complaint(GUARD, f"the guard `{name}` must be a predicate, found {description}")


def place_complaint(complaint: Complaint, instruction: Instruction) -> Diagnostic:
    """Return the finding with the span of its modifier, operand or instruction."""
    if complaint.modifier is not None and 0 <= complaint.modifier < len(instruction.modifiers):
        origin = modifier_span(instruction, complaint.modifier)
    elif complaint.operand is not None and complaint.operand < len(instruction.operands):
        origin = operand_span(instruction, complaint.operand)
    else:
        origin = opcode_span(instruction)
    return complaint.rule.report(origin, complaint.message, help=complaint.help)
