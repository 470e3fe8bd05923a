"""Writes wait loops as `ptx.mbarrier.wait(…)`.

Contract: such a line emits a whole loop with its label, branches and surrounding block, as verified on the bench.
`draft.waits` holds the style of the compiler's loops once.
"""

from __future__ import annotations

from pyptx.codegen.analysis.bench import DIFFERENT
from pyptx.codegen.analysis.waits import is_test, wait_of
from pyptx.codegen.plan import Call, Expr, Line, Literal, Name, call, dotted, literal
from pyptx.codegen.sugar_draft import Draft
from pyptx.codegen.sugar_operands import Operands
from pyptx.ir.nodes import Block, Instruction, Label

WAIT, LOOP = dotted("ptx.mbarrier.wait"), dotted("ptx.mbarrier.WaitLoop")
_ORDERS = {"acquire": "sem", "relaxed": "sem", "cta": "scope", "cluster": "scope"}


def block_wait(draft: Draft, block: Block) -> Line | None:
    """Return the line of a block that waits."""
    wait = wait_of(block)
    operands = None if wait is None else _build_operands(draft, wait.test)
    modifiers = None if wait is None else _read_modifiers(wait.test)
    if wait is None or operands is None or modifiers is None:
        return None
    labels = (wait.label,) if wait.done is None else (wait.label, wait.done)
    options: dict[str, Expr] = {"labels": literal(labels), "predicate": Literal(wait.pred)}
    options |= {"space": Literal(modifiers.pop("space")), **literals(modifiers)}
    if wait.uni:
        options["uni"] = Literal(True)
    loop = Call(LOOP, (), tuple([(key, value) for key, value in options.items() if value != _USUAL.get(key)]))
    expression = call(WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None, loop=loop)
    if draft.bench.emitted(expression, (), wait.block) is DIFFERENT:
        return None
    name = draft.waits.get(loop)
    if name is None:
        name = draft.waits[loop] = Name(draft.outer.fresh("WAIT"))
    keywords = tuple([(key, name if key == "loop" else value) for key, value in expression.keywords])
    return Line(Call(WAIT, expression.arguments, keywords), wait.emits)


_USUAL = {
    "labels": literal(("LAB_WAIT", "DONE")), "predicate": Literal("P1"), "space": Literal("shared::cta"),
}  # fmt: skip


def literals(said: dict[str, str]) -> dict[str, Expr]:
    """Return strings as expressions."""
    return {key: Literal(value) for key, value in said.items()}


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
    operands = Operands(draft, draft.usage.steps[draft.usage.at[id(test)]].scope)
    exprs = [operands.expr(operand) for operand in test.operands[1:]]
    known = [expr for expr in exprs if expr is not None]
    return known if len(known) == len(exprs) else None


def loop_wait(draft: Draft, label: Label, test: Instruction, tail: Instruction) -> Line | None:
    """Return the line of `label: mbarrier.try_wait… p, …; @!p bra label`."""
    guard, done = tail.predicate, getattr(test.operands[0], "name", None) if test.operands else None
    if not is_test(test) or guard is None or not guard.negated or guard.register != done:
        return None
    operands = _build_operands(draft, test)
    if operands is None or tail.modifiers not in ((), (".uni",)):
        return None
    variable = Operands(draft, draft.usage.steps[draft.usage.at[id(test)]].scope).variable(guard.register)
    modifiers = _read_modifiers(test)
    if variable is None or modifiers is None:
        return None
    once = variable.fresh and draft.reads(variable.identifier) == 1
    space = modifiers.pop("space")
    expression = call(
        WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None, labels=literal((label.name,)),
        predicate=None if once else variable.expr, space=None if space == "shared" else Literal(space),
        uni=Literal(True) if tail.modifiers else None, **literals(modifiers),
    )  # fmt: skip
    if variable.fresh and not once:
        return None
    registers = [draft.bench.register(variable.name, variable.home)] if once else []
    emits = (label, test, tail)
    return Line(expression, emits) if draft.bench.emits_all(expression, registers, emits) else None
