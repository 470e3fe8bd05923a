"""`if_`, `elif_`, `else_`."""

from __future__ import annotations

from typing import Any

from pyptx.diagnostics import PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.emit import emit
from pyptx.dsl.registers import Pred
from pyptx.dsl.scopes import Body, announce
from pyptx.dsl.trace import OpenBody, check_name, fail, get_trace
from pyptx.ir.nodes import Statement
from pyptx.ptx.branches import (
    BRANCHES,
    check_condition,
    jump,
    negate,
    place_label,
    refuse_control,
    refuse_label,
)


class Chain:
    """The state shared by an `if_` and the branches that follow it: their number, the number of conditions, whether
    they jump to a common end, and where in which body the last one ended."""

    def __init__(self, number: int) -> None:
        self.number, self.conditions, self.jumps, self.closed = number, 0, False, False
        self.body: list[Statement] = []
        self.position = 0

    @property
    def otherwise(self) -> str:
        """The label where the next branch starts."""
        return f"$if{self.number}_else{'' if self.conditions < 2 else self.conditions}"

    @property
    def done(self) -> str:
        """The label after all branches."""
        return f"$if{self.number}_end"


class If(Body):
    """`with ptx.if_(p):`, `elif_` and `else_`."""

    def __init__(self, title: str, pred: Any = None) -> None:
        self.title, self.pred = title, pred

    def begin(self) -> OpenBody:
        trace = self.trace
        if trace.pure:
            refuse_control(trace, f"`{self.title}`")
        if self.title == "ptx.if_":
            test = check_condition(trace, self.pred, self.title)
            self.chain = Chain(trace.number("if"))
            body = trace.push(self.title)
        else:
            self.chain = self._continue_chain()
            body = trace.push(self.title)
            body.mark = self.chain.position + 1
            if self.title == "ptx.else_":
                self.chain.closed = True
                return body
            test = check_condition(trace, self.pred, self.title)
        self.chain.conditions += 1
        jump(trace, self.chain.otherwise, negate(test))
        return body

    def _continue_chain(self) -> Chain:
        """Return the chain that this branch continues; the previous body now ends in a jump past the other branches."""
        trace = self.trace
        chain: Chain | None = trace.facts.get("if")
        if chain is None or chain.closed or chain.body is not trace.body or not self._follows(chain):
            fail(
                rules.NESTING,
                f"`{self.title}` must directly follow the `ptx.if_` or `ptx.elif_` that it belongs to",
                help="compute a condition before the if_ or in the parentheses: with ptx.elif_(a < b):",
            )
        if chain.jumps:
            del trace.body[chain.position + 1]
            trace.labels.pop(chain.done)
            trace.used_names.discard(chain.done)
        chain.jumps = True
        after = trace.body[chain.position :]
        del trace.body[chain.position :]
        jump(trace, chain.done, None)
        chain.position = len(trace.body)
        trace.body += after
        return chain

    def _follows(self, chain: Chain) -> bool:
        """Tell whether nothing was emitted in between, except for the statements of an `elif_` condition."""
        between = self.trace.body[chain.position + 1 + chain.jumps :]
        origin = self.trace.locate()
        if not between or origin is None or self.title == "ptx.else_":
            return not between
        first, last = list(origin.code.co_positions())[origin.lasti // 2][:2]
        return all(_is_within(statement, origin, first or 0, last or 0) for statement in between)

    def end(self) -> None:
        trace, chain = self.trace, self.chain
        trace.pop(self.open_body)
        if self.title != "ptx.else_":
            chain.body, chain.position = trace.body, len(trace.body)
            place_label(trace, chain.otherwise)
            trace.facts["if"] = chain
        if chain.jumps:
            place_label(trace, chain.done)

    def discard(self) -> None:
        self.trace.facts.pop("if", None)
        if self.chain.jumps:
            place_label(self.trace, self.chain.done)


def _is_within(statement: Statement, origin: PythonFrame, first: int, last: int) -> bool:
    """Tell whether a statement was emitted by the expression of the `with` line `here`."""
    frame: object = getattr(statement, "origin", None)
    while isinstance(frame, PythonFrame):
        if frame.code is origin.code and frame.caller == origin.caller:
            return first <= frame.line <= last
        frame = frame.caller
    return False


def if_(pred_reg: Pred, *, label: str | None = None, uni: bool = False, place: bool = True) -> Body:
    """Open a block that runs if the predicate is true: `with ptx.if_(x == 0):`. In an exact transcript, `label` is
    the label after the block, `place=False` leaves its placement to another statement, and `uni` makes the branch
    uniform."""
    if get_trace().exact is not None:
        return ExactIf(pred_reg, label, uni, place)
    refuse_label("ptx.if_", label)
    return announce(If("ptx.if_", pred_reg))


def elif_(pred_reg: Pred) -> If:
    """Open the next branch of the preceding `if_`. Its condition, written in the parentheses, is evaluated only if the
    earlier ones are false."""
    return announce(If("ptx.elif_", pred_reg))


def else_(*, label: str | None = None, uni: bool = False, place: bool = True) -> Body:
    """Open the last branch of the preceding `if_`. In an exact transcript, `label` is the label after both branches;
    `uni` and `place` are as for `if_`."""
    if get_trace().exact is not None:
        return ExactElse(label, uni, place)
    refuse_label("ptx.else_", label)
    return announce(If("ptx.else_"))


class ExactIf(Body):
    """`@!p bra label; … label:`, as compilers emit it."""

    title = "ptx.if_"

    def __init__(self, pred: Any, label: str | None, uni: bool, place: bool) -> None:
        self.pred, self.label, self.uni, self.place = pred, label, uni, place

    def begin(self) -> OpenBody:
        trace = self.trace
        test = check_condition(trace, self.pred, self.title)
        self.label = self.label or trace.exact.take_label("if")
        body = trace.push(self.title)
        emit(BRANCHES[self.uni], (self.label,), negate(test), trace)
        return body

    def end(self) -> None:
        trace = self.trace
        assert self.label is not None
        check_name(self.label, symbol=True)
        trace.pop(self.open_body)
        if self.place:
            place_label(trace, self.label)
            trace.facts["exact if"] = trace.body[-1]


class ExactElse(ExactIf):
    """`bra done; label: … done:` after an `ExactIf`, whose label moves behind the branch."""

    title = "ptx.else_"

    def __init__(self, label: str | None, uni: bool, place: bool) -> None:
        super().__init__(None, label, uni, place)

    def begin(self) -> OpenBody:
        trace = self.trace
        if not trace.body or trace.facts.get("exact if") is not trace.body[-1]:
            fail(rules.NESTING, "`ptx.else_` must directly follow the `ptx.if_` that it belongs to")
        self.label = self.label or trace.exact.take_label("if")
        body = trace.push(self.title)
        otherwise = trace.body.pop()
        emit(BRANCHES[self.uni], (self.label,), None, trace)
        trace.append(otherwise)
        return body
