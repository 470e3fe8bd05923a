"""`loop`, `while_`, `break_`, `continue_`, and loops that wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.emit import emit
from pyptx.dsl.rebinding import Bindings, find_lost_updates, list_bindings
from pyptx.dsl.registers import NegPred, Pred
from pyptx.dsl.scopes import Body, announce
from pyptx.dsl.trace import OpenBody, Trace, check_name, fail, get_trace
from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Statement
from pyptx.ir.operands import RegisterOperand
from pyptx.ptx.branches import BRANCHES, check_condition, jump, negate, place_label, refuse_control


class _Round(Body):
    """A body that the GPU repeats."""

    watched = True
    """Whether the body is user code, which may rebind names."""
    bindings: Sequence[Bindings] = ()
    breaks = False
    """Whether the body leaves it with `break_`."""
    continues = False
    """Whether the body goes on with `continue_`."""

    def watch(self) -> None:
        """Record the values of the user's variables before the first iteration."""
        self.trace.loops.append(self)
        if self.watched:
            self.bindings = list_bindings(self.trace)

    def forget(self) -> None:
        """Warn of rebound names that the next iteration would not see, once each."""
        trace = self.trace
        trace.loops.pop()
        if self.bindings:
            warnings = find_lost_updates(trace, self.bindings, trace.body[self.open_body.mark :], self.open_body.origin)
            trace.warnings += [
                warning for warning in warnings if all(warning.origin != earlier.origin for earlier in trace.warnings)
            ]

    def discard(self) -> None:
        self.bindings = ()
        if self in self.trace.loops:
            del self.trace.loops[self.trace.loops.index(self) :]


class Loop(_Round):
    """A loop: its start, and the targets of `continue_` and `break_`."""

    def __init__(self, title: str, label: str, pred: Any = None, first: Any = None) -> None:
        self.title, self.label, self.pred, self.first = title, label, pred, first

    def begin(self) -> OpenBody:
        trace = self.trace
        if trace.pure:
            refuse_control(trace, f"`{self.title}`")
        check_name(self.label, symbol=True)
        self.start = _choose_label(trace, self.label)
        self.next, self.done = f"{self.start}_next", f"{self.start}_end"
        body = trace.push(self.title)
        place_label(trace, self.start)
        self.watch()
        if self.first is not None:
            self.breaks = True
            jump(trace, self.done, negate(check_condition(trace, self.first, self.title)))
        return body

    def end(self) -> None:
        trace = self.trace
        if self.continues:
            place_label(trace, self.next)
        self.step()
        if callable(self.pred):
            jump(trace, self.start, check_condition(trace, self.pred, self.title))
        elif self.pred is None:
            jump(trace, self.start, None)
        else:
            self._refuse_invariant(check_condition(trace, self.pred, self.title))
            jump(trace, self.start, self.pred)
        if self.breaks:
            place_label(trace, self.done)
        self.forget()
        trace.pop(self.open_body)

    def step(self) -> None:
        """Emit the code between the body and the branch back."""

    def _refuse_invariant(self, pred: Pred) -> None:
        name = pred.reg.name if isinstance(pred, NegPred) else pred.name
        if not _writes(self.trace.body[self.open_body.mark :], name):
            fail(
                rules.INVARIANT,
                f"the condition `{name}` of the loop `{self.label}` is never written in its body: it was evaluated "
                "once, before the loop",
                help="pass the condition as a function: pred=lambda: i < n; or set the predicate in the body",
            )


def _choose_label(trace: Trace, stem: str) -> str:
    name = stem
    while name in trace.used_names or name in trace.labels:
        name = f"{stem}_{trace.number(f'label {stem}')}"
    return name


def _writes(statements: list[Statement], name: str) -> bool:
    """Tell whether some instruction has the register as its first operand."""
    stack: list[Statement] = list(statements)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Instruction):
            first = statement.operands[0] if statement.operands else None
            names = {o.name for o in (first, getattr(first, "left", None), getattr(first, "right", None))
                     if isinstance(o, RegisterOperand)}  # fmt: skip
            if name in names:
                return True
        elif isinstance(statement, Block | IntrinsicScope):
            stack += statement.body
    return False


def loop(label_name: str, *, pred: Any = None, uni: bool = False, end: str | None = None) -> Body:
    """Open a labeled loop that repeats while `pred` is true: a predicate that the body sets, or a function that emits
    the condition at the end. Without `pred`, leave the loop with `break_` or `bra`. In an exact transcript, the label
    is written as is, `uni` makes the branch back uniform, and `end` is the label after the loop, the target of
    `break_`."""
    if get_trace().exact is not None:
        return ExactLoop(label_name, pred, uni, end)
    return announce(Loop("ptx.loop", label_name, pred))


def while_(condition: Callable[[], Pred]) -> Loop:
    """Open a loop whose condition, a function, is evaluated before each iteration."""
    if not callable(condition):
        fail(rules.INVARIANT, "`ptx.while_` takes a function: a comparison is evaluated only once, before the loop",
             help="write ptx.while_(lambda: i < n)")  # fmt: skip
    return announce(Loop("ptx.while_", "$while", None, condition))


def break_(*, uni: bool = False, pred: Pred | None = None) -> None:
    """Leave the innermost loop."""
    trace = get_trace()
    inner = _find_innermost(trace, "ptx.break_()")
    inner.breaks = True
    jump(trace, inner.done, pred, uni)


def continue_(*, uni: bool = False, pred: Pred | None = None) -> None:
    """Continue with the next iteration of the innermost loop, starting with its step and condition. In an exact
    transcript this is a branch to the loop's label."""
    trace = get_trace()
    inner = _find_innermost(trace, "ptx.continue_()")
    inner.continues = True
    jump(trace, inner.next, pred, uni)


def _find_innermost(trace: Trace, title: str) -> Loop:
    if not trace.loops:
        fail(rules.NESTING, f"`{title}` outside a loop", help="use it in ptx.loop, ptx.while_ or ptx.range_")
    return trace.loops[-1]


class ExactLoop(_Round):
    """`label: … @p bra label;`, as compilers emit it."""

    title = "ptx.loop"

    def __init__(self, label: str, pred: Any, uni: bool, end: str | None) -> None:
        self.label = self.start = self.next = label
        self.pred, self.uni, self.last = pred, uni, end

    @property
    def done(self) -> str:
        """The label after the loop."""
        if self.last is None:
            fail(rules.NESTING, f"the loop `{self.start}` has no end label", help="add one: ptx.loop(…, end=…)")
        return self.last

    def begin(self) -> OpenBody:
        check_name(self.start, symbol=True)
        body = self.trace.push(self.title)
        place_label(self.trace, self.start)
        self.watch()
        return body

    def end(self) -> None:
        trace = self.trace
        pred = None if self.pred is None else check_condition(trace, self.pred, self.title)
        emit(BRANCHES[self.uni], (self.start,), pred, trace)
        if self.last is not None:
            check_name(self.last, symbol=True)
            place_label(trace, self.last)
        self.forget()
        trace.pop(self.open_body)


class _WaitLoop(Loop):
    """A loop without user code."""

    watched = False


def emit_guarded_loop(name: str, pred: Pred | None, again: Callable[[], Pred]) -> None:
    """Emit a wait loop, which repeats while the condition is true. A false guard skips the whole loop, not only the
    branch back, which would spin forever."""
    trace = get_trace()
    if pred is None:
        with _WaitLoop(name, f"${name}", again):
            pass
        return
    skip_label = _choose_label(trace, f"${name}_skip")
    jump(trace, skip_label, negate(check_condition(trace, pred, name)))
    with _WaitLoop(name, f"${name}", again):
        pass
    place_label(trace, skip_label)
