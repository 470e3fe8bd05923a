"""Writes wait loops as `ptx.mbarrier.wait(…)`.

Contract: such a line emits a whole loop with its label, branches and surrounding block, as verified on the bench.
`draft.waits` holds the style of the compiler's loops once.
"""

from __future__ import annotations

from pyptx.codegen.analysis.bench import DIFFERENT
from pyptx.codegen.analysis.waits import is_test, match_wait
from pyptx.codegen.plan import Call, Expr, Line, Literal, Name, build_literal, build_path, call
from pyptx.codegen.sugar_draft import Draft
from pyptx.codegen.sugar_operands import Operands
from pyptx.ir.nodes import Block, Instruction, Label

WAIT, LOOP = build_path("ptx.mbarrier.wait"), build_path("ptx.mbarrier.WaitLoop")
_ORDERS = {"acquire": "sem", "relaxed": "sem", "cta": "scope", "cluster": "scope"}


def build_block_wait(draft: Draft, block: Block) -> Line | None:
    """Return the line of a block that waits."""
    wait = match_wait(block)
    operands = None if wait is None else _build_operands(draft, wait.test)
    modifiers = None if wait is None else _read_modifiers(wait.test)
    if wait is None or operands is None or modifiers is None:
        return None
    labels = (wait.label,) if wait.end_label is None else (wait.label, wait.end_label)
    options: dict[str, Expr] = {"labels": build_literal(labels), "predicate": Literal(wait.pred)}
    options |= {"space": Literal(modifiers.pop("space")), **make_literals(modifiers)}
    if wait.uni:
        options["uni"] = Literal(True)
    loop = Call(LOOP, (), tuple([(key, value) for key, value in options.items() if value != _USUAL.get(key)]))
    expression = call(WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None, loop=loop)
    if draft.bench.try_expression(expression, (), wait.block) is DIFFERENT:
        return None
    name = draft.waits.get(loop)
    if name is None:
        name = draft.waits[loop] = Name(draft.outer.make_name("WAIT"))
    keywords = tuple([(key, name if key == "loop" else value) for key, value in expression.keywords])
    return Line(Call(WAIT, expression.arguments, keywords), wait.emits)


_USUAL = {
    "labels": build_literal(("LAB_WAIT", "DONE")), "predicate": Literal("P1"), "space": Literal("shared::cta"),
}  # fmt: skip


def make_literals(values: dict[str, str]) -> dict[str, Expr]:
    """Return strings as expressions."""
    return {key: Literal(value) for key, value in values.items()}


def _read_modifiers(test: Instruction) -> dict[str, str] | None:
    """Return the space and order from the modifiers of a test; None if it is not a `try_wait.parity`."""
    words = [modifier[1:] for modifier in test.modifiers]
    if words[:2] != ["try_wait", "parity"] or words[-1] != "b64":
        return None
    options: dict[str, str] = {"space": ""}
    for word in words[2:-1]:
        if word in _ORDERS:
            options[_ORDERS[word]] = word
        else:
            options["space"] = word
    return options


def _build_operands(draft: Draft, test: Instruction) -> list[Expr] | None:
    operands = Operands(draft, draft.usage.steps[draft.usage.places[id(test)]].scope)
    exprs = [operands.build_expression(operand) for operand in test.operands[1:]]
    expressions = [expr for expr in exprs if expr is not None]
    return expressions if len(expressions) == len(exprs) else None


def build_loop_wait(draft: Draft, label: Label, test: Instruction, tail: Instruction) -> Line | None:
    """Return the line of `label: mbarrier.try_wait… p, …; @!p bra label`."""
    guard, predicate = tail.predicate, getattr(test.operands[0], "name", None) if test.operands else None
    if not is_test(test) or guard is None or not guard.negated or guard.register != predicate:
        return None
    operands = _build_operands(draft, test)
    if operands is None or tail.modifiers not in ((), (".uni",)):
        return None
    variable = Operands(draft, draft.usage.steps[draft.usage.places[id(test)]].scope).get_variable(guard.register)
    modifiers = _read_modifiers(test)
    if variable is None or modifiers is None:
        return None
    once = variable.fresh and draft.reads(variable.identifier) == 1
    space = modifiers.pop("space")
    expression = call(
        WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None,
        labels=build_literal((label.name,)),
        predicate=None if once else variable.expr, space=None if space == "shared" else Literal(space),
        uni=Literal(True) if tail.modifiers else None, **make_literals(modifiers),
    )  # fmt: skip
    if variable.fresh and not once:
        return None
    registers = [draft.bench.view_register(variable.name, variable.home)] if once else []
    emits = (label, test, tail)
    return Line(expression, emits) if draft.bench.emits_all(expression, registers, emits) else None
