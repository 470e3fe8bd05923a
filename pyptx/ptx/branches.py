"""Labels, branches and returns, and what every structured statement makes of them."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import emit, make_guard, spell
from pyptx.dsl.registers import NegPred, Pred
from pyptx.dsl.trace import Trace, check_name, fail, get_trace
from pyptx.ir.nodes import Label

BRA = spell("bra")
BRANCHES = {False: BRA, True: spell("bra", "uni")}


def label(name: str) -> None:
    """Emit `name:`."""
    trace = get_trace()
    check_name(name, symbol=True)
    place_label(trace, name)


def place_label(trace: Trace, name: str) -> None:
    """Append a label to the trace."""
    origin = trace.locate()
    if trace.exact is not None:
        trace.used_names.add(name)
        trace.append(Label(name, origin=origin))
        return
    if name in trace.labels:
        fail(rules.LABEL, f"the kernel already has a label `{name}`", help="choose a unique name for each label",
             notes=[f"it is placed at {trace.labels[name]}"])  # fmt: skip
    if name in trace.used_names:
        trace.claim(name, "label")
    trace.used_names.add(name)
    trace.labels[name] = origin
    trace.append(Label(name, origin=origin))


def refuse_control(trace: Trace, noun: str) -> None:
    """Report control flow inside a group of instructions."""
    outer = next(body for body in reversed(trace.open) if body.pure)
    fail(rules.NESTING, f"{noun} inside `{outer.title}`: a group of instructions cannot contain control flow",
         help="end the ptx.expr() block first, or use @intrinsic")  # fmt: skip


def bra(label: str, *, uni: bool = False, pred: Pred | None = None) -> None:
    """Emit `bra[.uni] label`; the name of an enclosing `ptx.loop` is its start label."""
    trace = get_trace()
    inner = next((loop.start for loop in reversed(trace.loops) if loop.label == label), label)
    check_name(inner, symbol=True)
    jump(trace, inner, pred, uni)


def jump(trace: Trace, target: str, pred: Pred | None = None, uni: bool = False) -> None:
    """Emit a branch to a label that may be placed later."""
    if trace.pure:
        refuse_control(trace, f"the branch to `{target}`")
    emit(BRANCHES[uni], (target,), pred, trace)


def ret(*, pred: Pred | None = None) -> None:
    """Emit `ret`."""
    emit(spell("ret"), (), pred)


def check_condition(trace: Trace, pred: Any, title: str) -> Pred:
    """Return a condition as a predicate, or report what is wrong with it."""
    if callable(pred):
        pred = pred()
    if isinstance(pred, bool):
        fail(rules.TYPES, f"`{title}` takes a predicate register, found Python's {pred}",
             help="Python has already evaluated the condition: use a plain Python `if`")  # fmt: skip
    make_guard(pred, trace)
    return pred


def negate(pred: Pred) -> Pred:
    """Return the negated predicate."""
    return pred.reg if isinstance(pred, NegPred) else NegPred(pred)


def refuse_label(title: str, label: str | None) -> None:
    """Report a label chosen for a statement that generates its own."""
    if label is not None:
        fail(rules.ARGUMENT, f"`{title}` generates its labels, found label={label!r}",
             help="labels can only be chosen in exact transcripts, @kernel(exact=True)")  # fmt: skip
