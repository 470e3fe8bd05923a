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
    found = wait_of(block)
    operands = None if found is None else _build_operands(draft, found.test)
    said = None if found is None else _read_modifiers(found.test)
    if found is None or operands is None or said is None:
        return None
    labels = (found.label,) if found.done is None else (found.label, found.done)
    given: dict[str, Expr] = {"labels": literal(labels), "predicate": Literal(found.pred)}
    given |= {"space": Literal(said.pop("space")), **literals(said)}
    if found.uni:
        given["uni"] = Literal(True)
    loop = Call(LOOP, (), tuple([(key, value) for key, value in given.items() if value != _USUAL.get(key)]))
    made = call(WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None, loop=loop)
    if draft.bench.emitted(made, (), found.block) is DIFFERENT:
        return None
    name = draft.waits.get(loop)
    if name is None:
        name = draft.waits[loop] = Name(draft.outer.fresh("WAIT"))
    keywords = tuple([(key, name if key == "loop" else value) for key, value in made.keywords])
    return Line(Call(WAIT, made.arguments, keywords), found.emits)


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
    said: dict[str, str] = {"space": ""}
    for word in words[2:-1]:
        if word in _ORDERS:
            said[_ORDERS[word]] = word
        else:
            said["space"] = word
    return said


def _build_operands(draft: Draft, test: Instruction) -> list[Expr] | None:
    operands = Operands(draft, draft.usage.steps[draft.usage.at[id(test)]].scope)
    exprs = [operands.expr(given) for given in test.operands[1:]]
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
    said = _read_modifiers(test)
    if variable is None or said is None:
        return None
    once = variable.fresh and draft.reads(variable.identifier) == 1
    space = said.pop("space")
    made = call(
        WAIT, *operands[:2], suspend_hint=operands[2] if len(operands) == 3 else None, labels=literal((label.name,)),
        predicate=None if once else variable.expr, space=None if space == "shared" else Literal(space),
        uni=Literal(True) if tail.modifiers else None, **literals(said),
    )  # fmt: skip
    if variable.fresh and not once:
        return None
    registers = [draft.bench.register(variable.name, variable.home)] if once else []
    emits = (label, test, tail)
    return Line(made, emits) if draft.bench.emits_all(made, registers, emits) else None
