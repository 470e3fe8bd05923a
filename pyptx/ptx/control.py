"""Structured control flow, labels and branches, scopes, and directives in the instruction stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyptx.diagnostics import PythonFrame
from pyptx.dsl import rules
from pyptx.dsl.emit import emit, guard_of, shown, spelled
from pyptx.dsl.rebinding import Bindings, bindings, lost_updates
from pyptx.dsl.registers import NegPred, Pred
from pyptx.dsl.scopes import Body, Named, Scope, announced
from pyptx.dsl.trace import OpenBody, Trace, check_name, current, fail
from pyptx.dsl.values import is_integer
from pyptx.ir.directives import LocDirective, PragmaDirective
from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Label, Statement
from pyptx.ir.operands import RegisterOperand
from pyptx.isa.directives import pragma as known_pragma

BRA = spelled("bra")
BRANCHES = {False: BRA, True: spelled("bra", "uni")}


def label(name: str) -> None:
    """Emit `name:`."""
    trace = current()
    check_name(name, symbol=True)
    _place_label(trace, name)


def _place_label(trace: Trace, name: str) -> None:
    if trace.pure:
        _refuse_control(trace, f"the label `{name}`")
    here = trace.here(2)
    if trace.exact is not None:
        trace.taken.add(name)
        trace.append(Label(name, origin=here))
        return
    if name in trace.labels:
        fail(rules.LABEL, f"the kernel already has a label `{name}`", help="choose a unique name for each label",
             notes=[f"it is placed at {trace.labels[name]}"])  # fmt: skip
    if name in trace.taken:
        trace.claim(name, "label")
    trace.taken.add(name)
    trace.labels[name] = here
    trace.append(Label(name, origin=here))


def _refuse_control(trace: Trace, what: str) -> None:
    outer = next(opened for opened in reversed(trace.open) if opened.pure)
    fail(rules.NESTING, f"{what} inside `{outer.what}`: a group of instructions cannot contain control flow",
         help="end the ptx.expr() block first, or use @intrinsic")  # fmt: skip


def bra(label: str, *, uni: bool = False, pred: Pred | None = None) -> None:
    """Emit `bra[.uni] label`; the name of an enclosing `ptx.loop` is its start label."""
    trace = current()
    inner = next((loop.start for loop in reversed(trace.loops) if loop.wanted == label), label)
    check_name(inner, symbol=True)
    jump(trace, inner, pred, uni)


def jump(trace: Trace, target: str, pred: Pred | None = None, uni: bool = False) -> None:
    """Emit a branch to a label that may be placed later."""
    if trace.pure:
        _refuse_control(trace, f"the branch to `{target}`")
    emit(BRANCHES[uni], (target,), pred, trace)


def ret(*, pred: Pred | None = None) -> None:
    """Emit `ret`."""
    emit(spelled("ret"), (), pred)


def condition(trace: Trace, pred: Any, what: str) -> Pred:
    """Return a condition as a predicate, or report what is wrong with it."""
    if callable(pred):
        pred = pred()
    if isinstance(pred, bool):
        fail(rules.TYPES, f"`{what}` takes a predicate register, found Python's {pred}",
             help="Python has already evaluated the condition: use a plain Python `if`")  # fmt: skip
    guard_of(pred, trace)
    return pred


def opposite(pred: Pred) -> Pred:
    """Return the negated predicate."""
    return pred.reg if isinstance(pred, NegPred) else NegPred(pred)


class Chain:
    """The state shared by an `if_` and the branches that follow it: their number, the number of conditions, whether
    they jump to a common end, and where in which body the last one ended."""

    def __init__(self, number: int) -> None:
        self.number, self.conditions, self.jumps, self.closed = number, 0, False, False
        self.body: list[Statement] = []
        self.at = 0

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

    def __init__(self, what: str, pred: Any = None) -> None:
        self.what, self.pred = what, pred

    def begin(self) -> OpenBody:
        trace = self.trace
        if trace.pure:
            _refuse_control(trace, f"`{self.what}`")
        if self.what == "ptx.if_":
            test = condition(trace, self.pred, self.what)
            self.chain = Chain(trace.number("if"))
            opened = trace.push(self.what)
        else:
            self.chain = self._continue_chain()
            opened = trace.push(self.what)
            opened.mark = self.chain.at + 1
            if self.what == "ptx.else_":
                self.chain.closed = True
                return opened
            test = condition(trace, self.pred, self.what)
        self.chain.conditions += 1
        jump(trace, self.chain.otherwise, opposite(test))
        return opened

    def _continue_chain(self) -> Chain:
        """Return the chain that this branch continues; the previous body now ends in a jump past the other branches."""
        trace = self.trace
        chain: Chain | None = trace.facts.get("if")
        if chain is None or chain.closed or chain.body is not trace.body or not self._follows(chain):
            fail(
                rules.NESTING,
                f"`{self.what}` must directly follow the `ptx.if_` or `ptx.elif_` that it belongs to",
                help="compute a condition before the if_ or in the parentheses: with ptx.elif_(a < b):",
            )
        if chain.jumps:
            del trace.body[chain.at + 1]
            trace.labels.pop(chain.done)
            trace.taken.discard(chain.done)
        chain.jumps = True
        after = trace.body[chain.at :]
        del trace.body[chain.at :]
        jump(trace, chain.done, None)
        chain.at = len(trace.body)
        trace.body += after
        return chain

    def _follows(self, chain: Chain) -> bool:
        """Tell whether nothing was emitted in between, except for the statements of an `elif_` condition."""
        between = self.trace.body[chain.at + 1 + chain.jumps :]
        here = self.trace.here(4)
        if not between or here is None or self.what == "ptx.else_":
            return not between
        first, last = list(here.code.co_positions())[here.lasti // 2][:2]
        return all(_is_within(statement, here, first or 0, last or 0) for statement in between)

    def end(self) -> None:
        trace, chain = self.trace, self.chain
        trace.pop(self.opened)
        if self.what != "ptx.else_":
            chain.body, chain.at = trace.body, len(trace.body)
            _place_label(trace, chain.otherwise)
            trace.facts["if"] = chain
        if chain.jumps:
            _place_label(trace, chain.done)

    def abandoned(self) -> None:
        self.trace.facts.pop("if", None)
        if self.chain.jumps:
            _place_label(self.trace, self.chain.done)


def _is_within(statement: Statement, here: PythonFrame, first: int, last: int) -> bool:
    """Tell whether a statement was emitted by the expression of the `with` line `here`."""
    frame: object = getattr(statement, "origin", None)
    while isinstance(frame, PythonFrame):
        if frame.code is here.code and frame.caller == here.caller:
            return first <= frame.line <= last
        frame = frame.caller
    return False


def if_(pred_reg: Pred, *, label: str | None = None, uni: bool = False, place: bool = True) -> Body:
    """Open a block that runs if the predicate is true: `with ptx.if_(x == 0):`. In an exact transcript, `label` is
    the label after the block, `place=False` leaves its placement to another statement, and `uni` makes the branch
    uniform."""
    if current().exact is not None:
        return ExactIf(pred_reg, label, uni, place)
    _refuse_label("ptx.if_", label)
    return announced(If("ptx.if_", pred_reg))


def _refuse_label(what: str, label: str | None) -> None:
    if label is not None:
        fail(rules.ARGUMENT, f"`{what}` generates its labels, found label={label!r}",
             help="labels can only be chosen in exact transcripts, @kernel(exact=True)")  # fmt: skip


def elif_(pred_reg: Pred) -> If:
    """Open the next branch of the preceding `if_`. Its condition, written in the parentheses, is evaluated only if the
    earlier ones are false."""
    return announced(If("ptx.elif_", pred_reg))


def else_(*, label: str | None = None, uni: bool = False, place: bool = True) -> Body:
    """Open the last branch of the preceding `if_`. In an exact transcript, `label` is the label after both branches;
    `uni` and `place` are as for `if_`."""
    if current().exact is not None:
        return ExactElse(label, uni, place)
    _refuse_label("ptx.else_", label)
    return announced(If("ptx.else_"))


class _Round(Body):
    """A body that the GPU repeats."""

    watched = True
    """Whether the body is user code, which may rebind names."""
    bound: Sequence[Bindings] = ()

    def watch(self) -> None:
        """Record the values of the user's variables before the first iteration."""
        self.trace.loops.append(self)
        if self.watched:
            self.bound = bindings(self.trace)

    def forget(self) -> None:
        """Warn of rebound names that the next iteration would not see, once each."""
        trace = self.trace
        trace.loops.pop()
        if self.bound:
            warnings = lost_updates(trace, self.bound, trace.body[self.opened.mark :], self.opened.origin)
            trace.warnings += [
                warning for warning in warnings if all(warning.origin != known.origin for known in trace.warnings)
            ]
        self.bound = ()

    def abandoned(self) -> None:
        self.bound = ()
        if self in self.trace.loops:
            del self.trace.loops[self.trace.loops.index(self) :]


class Loop(_Round):
    """A loop: its start, the targets of `continue_` and `break_`, and whether they are used."""

    def __init__(self, what: str, wanted: str, pred: Any = None, first: Any = None) -> None:
        self.what, self.wanted, self.pred, self.first = what, wanted, pred, first
        self.breaks = self.continues = False

    def begin(self) -> OpenBody:
        trace = self.trace
        if trace.pure:
            _refuse_control(trace, f"`{self.what}`")
        check_name(self.wanted, symbol=True)
        self.start = _choose_label(trace, self.wanted)
        self.next, self.done = f"{self.start}_next", f"{self.start}_end"
        opened = trace.push(self.what)
        _place_label(trace, self.start)
        self.watch()
        if self.first is not None:
            self.breaks = True
            jump(trace, self.done, opposite(condition(trace, self.first, self.what)))
        return opened

    def end(self) -> None:
        trace = self.trace
        if self.continues:
            _place_label(trace, self.next)
        self.step()
        if callable(self.pred):
            jump(trace, self.start, condition(trace, self.pred, self.what))
        elif self.pred is None:
            jump(trace, self.start, None)
        else:
            self._refuse_invariant(condition(trace, self.pred, self.what))
            jump(trace, self.start, self.pred)
        if self.breaks:
            _place_label(trace, self.done)
        self.forget()
        trace.pop(self.opened)

    def step(self) -> None:
        """Emit the code between the body and the branch back."""

    def _refuse_invariant(self, pred: Pred) -> None:
        name = pred.reg.name if isinstance(pred, NegPred) else pred.name
        if not _writes(self.trace.body[self.opened.mark :], name):
            fail(
                rules.INVARIANT,
                f"the condition `{name}` of the loop `{self.wanted}` is never written in its body: it was evaluated "
                "once, before the loop",
                help="pass the condition as a function: pred=lambda: i < n; or set the predicate in the body",
            )


def _choose_label(trace: Trace, wanted: str) -> str:
    name = wanted
    while name in trace.taken or name in trace.labels:
        name = f"{wanted}_{trace.number(f'label {wanted}')}"
    return name


def _writes(statements: list[Statement], name: str) -> bool:
    """Tell whether some instruction has the register as its first operand."""
    stack: list[Statement] = list(statements)
    while stack:
        statement = stack.pop()
        if isinstance(statement, Instruction):
            first = statement.operands[0] if statement.operands else None
            named = {o.name for o in (first, getattr(first, "left", None), getattr(first, "right", None))
                     if isinstance(o, RegisterOperand)}  # fmt: skip
            if name in named:
                return True
        elif isinstance(statement, Block | IntrinsicScope):
            stack += statement.body
    return False


def loop(label_name: str, *, pred: Any = None, uni: bool = False, end: str | None = None) -> Body:
    """Open a labeled loop that repeats while `pred` is true: a predicate that the body sets, or a function that emits
    the condition at the end. Without `pred`, leave the loop with `break_` or `bra`. In an exact transcript, the label
    is written as is, `uni` makes the branch back uniform, and `end` is the label after the loop, the target of
    `break_`."""
    if current().exact is not None:
        return ExactLoop(label_name, pred, uni, end)
    return announced(Loop("ptx.loop", label_name, pred))


def while_(condition: Callable[[], Pred]) -> Loop:
    """Open a loop whose condition, a function, is evaluated before each iteration."""
    if not callable(condition):
        fail(rules.INVARIANT, "`ptx.while_` takes a function: a comparison is evaluated only once, before the loop",
             help="write ptx.while_(lambda: i < n)")  # fmt: skip
    return announced(Loop("ptx.while_", "$while", None, condition))


def break_(*, uni: bool = False, pred: Pred | None = None) -> None:
    """Leave the innermost loop."""
    trace = current()
    inner = _find_innermost(trace, "ptx.break_()")
    inner.breaks = True
    jump(trace, inner.done, pred, uni)


def continue_(*, uni: bool = False, pred: Pred | None = None) -> None:
    """Continue with the next iteration of the innermost loop, starting with its step and condition. In an exact
    transcript this is a branch to the loop's label."""
    trace = current()
    inner = _find_innermost(trace, "ptx.continue_()")
    inner.continues = True
    jump(trace, inner.next, pred, uni)


def _find_innermost(trace: Trace, what: str) -> Loop:
    if not trace.loops:
        fail(rules.NESTING, f"`{what}` outside a loop", help="use it in ptx.loop, ptx.while_ or ptx.range_")
    return trace.loops[-1]


class ExactIf(Body):
    """`@!p bra label; … label:`, as compilers emit it."""

    what = "ptx.if_"

    def __init__(self, pred: Any, label: str | None, uni: bool, place: bool) -> None:
        self.pred, self.label, self.uni, self.place = pred, label, uni, place

    def begin(self) -> OpenBody:
        trace = self.trace
        test = condition(trace, self.pred, self.what)
        self.label = self.label or trace.exact.label("if")
        opened = trace.push(self.what)
        emit(BRANCHES[self.uni], (self.label,), opposite(test), trace)
        return opened

    def end(self) -> None:
        trace = self.trace
        assert self.label is not None
        check_name(self.label, symbol=True)
        trace.pop(self.opened)
        if self.place:
            _place_label(trace, self.label)
            trace.facts["exact if"] = trace.body[-1]


class ExactElse(ExactIf):
    """`bra done; label: … done:` after an `ExactIf`, whose label moves behind the branch."""

    what = "ptx.else_"

    def __init__(self, label: str | None, uni: bool, place: bool) -> None:
        super().__init__(None, label, uni, place)

    def begin(self) -> OpenBody:
        trace = self.trace
        if not trace.body or trace.facts.get("exact if") is not trace.body[-1]:
            fail(rules.NESTING, "`ptx.else_` must directly follow the `ptx.if_` that it belongs to")
        self.label = self.label or trace.exact.label("if")
        opened = trace.push(self.what)
        otherwise = trace.body.pop()
        emit(BRANCHES[self.uni], (self.label,), None, trace)
        trace.append(otherwise)
        return opened


class ExactLoop(_Round):
    """`label: … @p bra label;`, as compilers emit it."""

    what = "ptx.loop"

    def __init__(self, label: str, pred: Any, uni: bool, end: str | None) -> None:
        self.wanted = self.start = self.next = label
        self.pred, self.uni, self.last = pred, uni, end
        self.breaks = self.continues = False

    @property
    def done(self) -> str:
        """The label after the loop."""
        if self.last is None:
            fail(rules.NESTING, f"the loop `{self.start}` has no end label", help="add one: ptx.loop(…, end=…)")
        return self.last

    def begin(self) -> OpenBody:
        check_name(self.start, symbol=True)
        opened = self.trace.push(self.what)
        _place_label(self.trace, self.start)
        self.watch()
        return opened

    def end(self) -> None:
        trace = self.trace
        pred = None if self.pred is None else condition(trace, self.pred, self.what)
        emit(BRANCHES[self.uni], (self.start,), pred, trace)
        if self.last is not None:
            check_name(self.last, symbol=True)
            _place_label(trace, self.last)
        self.forget()
        trace.pop(self.opened)


def scope() -> Scope:
    """Open `{ … }`: registers created inside are declared there and are not visible outside."""
    return announced(Scope())


def expr() -> Named:
    """Group the instructions emitted inside under one comment; control flow inside is refused."""
    return announced(Named("expr", pure=True))


def pragma(value: str) -> None:
    """Emit `.pragma "value";`."""
    trace = current()
    if not isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(rules.ARGUMENT, f"`ptx.pragma` takes a string, found {shown(value)}", help='write ptx.pragma("nounroll")')
    entry = known_pragma(value)
    first = entry.available.first_version(trace.target) if entry is not None and trace.exact is None else None
    if first is not None:
        trace.need(first, f'`.pragma "{value}"`')
    trace.append(PragmaDirective(_check_quotable(value), origin=trace.here(2)))


def loc(file_idx: int, line: int, col: int = 0) -> None:
    """Emit `.loc file line column`."""
    trace = current()
    for number in (file_idx, line, col):
        if not is_integer(number, 0):
            fail(rules.ARGUMENT, f"`ptx.loc` takes nonnegative numbers, found {shown(number)}",
                 help="call ptx.file_(file, name) first, then ptx.loc(file, line, column)")  # fmt: skip
    trace.append(LocDirective(file_idx, line, col, origin=trace.here(2)))


def file_(file_idx: int, filename: str) -> None:
    """Declare `.file index "name"` at module level."""
    trace = current()
    if not is_integer(file_idx, 1) or not isinstance(filename, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        fail(rules.ARGUMENT, f"`ptx.file_` takes a positive number and a name, found {file_idx!r}, {filename!r}",
             help='write ptx.file_(1, "kernel.cu")')  # fmt: skip
    files = trace.unit.files
    if files.get(file_idx, filename) != filename:
        fail(rules.NAME, f"file {file_idx} is already {files[file_idx]!r}", help="use another number")
    files[file_idx] = _check_quotable(filename)


def _check_quotable(text: str) -> str:
    if '"' in text or "\n" in text or not (text.isascii() and text.isprintable()):
        fail(rules.ARGUMENT, f"expected text without quotes or line breaks, found {text!r}")
    return text


class _WaitLoop(Loop):
    """A loop without user code."""

    watched = False


def guarded_loop(name: str, pred: Pred | None, again: Callable[[], Pred]) -> None:
    """Emit a wait loop, which repeats while the condition is true. A false guard skips the whole loop, not only the
    branch back, which would spin forever."""
    trace = current()
    if pred is None:
        with _WaitLoop(name, f"${name}", again):
            pass
        return
    done = _choose_label(trace, f"${name}_skip")
    trace.taken.add(done)
    jump(trace, done, opposite(condition(trace, pred, name)))
    with _WaitLoop(name, f"${name}", again):
        pass
    trace.taken.discard(done)
    _place_label(trace, done)
