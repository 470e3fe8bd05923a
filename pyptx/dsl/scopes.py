"""Context managers of the trace: named scopes (`@intrinsic`, `ptx.expr`) and blocks with their own registers. A body
left by an exception is removed; a body left by Python's `return` is refused."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from pyptx.diagnostics import PtxError
from pyptx.dsl import rules
from pyptx.dsl.origin import find_user_frame, is_ours
from pyptx.dsl.returns import note_exit
from pyptx.dsl.trace import CURRENT, Declarations, OpenBody, Trace, fail, get_trace
from pyptx.dsl.values import Negation, Register, RegisterRange
from pyptx.ir.nodes import Block, Instruction, IntrinsicScope, Label, Statement
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import LEAVES, Trait
from pyptx.types import PtxType

P = ParamSpec("P")
R = TypeVar("R")


class Body:
    """A `with` block of a kernel. Subclasses emit what surrounds its statements."""

    title = "block"
    decides = True
    """Whether the GPU decides if the block runs, so that Python must not leave it early."""
    trace: Trace
    open_body: OpenBody

    def __enter__(self) -> Any:
        self.trace = get_trace()
        self.trace.blocks_to_open.pop(id(self), None)
        self.open_body = self.begin()
        return self.get_value()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            # Report the exception itself, not that it left a `ptx.range_` on its way.
            self.trace.pending.clear()
            self.trace.exits.pop(id(sys._getframe(1)), None)  # pyright: ignore[reportPrivateUsage]
            self.trace.pop(self.open_body, keep=False)
            self.discard()
            return
        frame, trace = sys._getframe(1), self.trace  # pyright: ignore[reportPrivateUsage]
        before = len(trace.body)
        self.end()
        if self.decides and not is_ours(frame.f_code):
            note_exit(trace, frame, self.title, trace.locate(), before)

    def begin(self) -> OpenBody:
        """Open the body."""
        return self.trace.push(self.title)

    def get_value(self) -> Any:
        """Return the value bound by `as`."""
        return None

    def end(self) -> None:
        """Close the body."""
        self.trace.pop(self.open_body)

    def discard(self) -> None:
        """Discard what an exception left behind."""


AnyBody = TypeVar("AnyBody", bound=Body)


def announce(body: AnyBody) -> AnyBody:
    """Return a block created by the user, which must be opened before the kernel ends."""
    trace = get_trace()
    trace.blocks_to_open[id(body)] = body, body.title, find_user_frame(None, trace.frames)
    return body


class Scope(Body):
    """A `{ … }` block with its own registers."""

    title = "ptx.scope()"
    decides = False

    def begin(self) -> OpenBody:
        self.own = Declarations(f"s{self.trace.number('scope')}_")
        return self.trace.push(self.title, self._close, declarations=self.own)

    def _close(self, body: tuple[Statement, ...]) -> Statement:
        return Block((*self.own.build_statements(), *body), origin=self.open_body.origin)


class Named(Body):
    """Statements between `// BEGIN name(args)` and `// END name`."""

    def __init__(self, name: str, arguments: str = "", *, pure: bool = False) -> None:
        self.title, self.name, self.arguments, self.pure = name, name, arguments, pure

    def begin(self) -> OpenBody:
        return self.trace.push(self.title, None if self.trace.exact is not None else self._close, pure=self.pure)

    def _close(self, body: tuple[Statement, ...]) -> Statement:
        return IntrinsicScope(self.name, self.arguments, body, origin=self.open_body.origin)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        trace, open_body = self.trace, self.open_body
        escape = (
            _find_control(trace.body[open_body.mark :])
            if self.pure and kind is None and trace.open[-1] is open_body
            else None
        )
        trace.pop(open_body, keep=kind is None and escape is None)
        if escape is not None:
            description = f"the label `{escape.name}`" if isinstance(escape, Label) else f"`{escape.opcode}`"
            raise PtxError([rules.NESTING.report(
                escape.origin,
                f"{description} inside `{self.title}`: a group of instructions cannot contain control flow",
                help="end the ptx.expr() block first, or use @intrinsic",
            )])  # fmt: skip


def _find_control(statements: Sequence[Statement]) -> Instruction | Label | None:
    """Return the first control-flow statement, including those added as text or by `ptx.inst`."""
    for statement in statements:
        if isinstance(statement, Label) or (isinstance(statement, Instruction) and _moves_control(statement)):
            return statement
        inner = _find_control(statement.body) if isinstance(statement, Block | IntrinsicScope) else None
        if inner is not None:
            return inner
    return None


def _moves_control(instruction: Instruction) -> bool:
    return not (LEAVES | {Trait.JUMPS}).isdisjoint(find_traits(instruction.opcode, instruction.modifiers))


def refuse_deferred(function: object, noun: str) -> None:
    """Refuse generator and async functions: calling one does not run it, so it would emit nothing."""
    name = getattr(function, "__name__", repr(function))
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        fail(rules.DECLARATION, f"`{name}` is `async`: calling it does not run it, so the {noun} would be empty",
             help="use `def`: the function runs once, while the kernel is traced")  # fmt: skip
    if inspect.isgeneratorfunction(function):
        fail(rules.DECLARATION, f"`{name}` is a generator: calling it does not run it, so the {noun} would be empty",
             help="remove the `yield`, or move it to a helper that the function iterates over")  # fmt: skip


def intrinsic(fn: Callable[P, R]) -> Callable[P, R]:
    """Wrap the statements that one call of a helper emits in a named scope: `// BEGIN name(args)`, `// END name`."""
    refuse_deferred(fn, "scope")
    name = getattr(fn, "__name__", "intrinsic")
    if not (name.isidentifier() and name.isascii()):
        name = "intrinsic"

    @functools.wraps(fn)
    def call_in_scope(*args: P.args, **kwargs: P.kwargs) -> R:
        trace = CURRENT.get()
        if trace is None:
            return fn(*args, **kwargs)
        if trace.exact is not None:
            return fn(*args, **kwargs)
        text = format_arguments(args, kwargs)
        open_body = trace.push(name, lambda body: IntrinsicScope(name, text, body, None, None, open_body.origin))
        is_complete = False
        try:
            result = fn(*args, **kwargs)
            is_complete = True
        finally:
            trace.pop(open_body, keep=is_complete)
        return result

    return call_in_scope


def format_arguments(args: tuple[object, ...], kwargs: dict[str, Any]) -> str:
    """Return the arguments of a call for its comment; the text is the same in every run."""
    if not kwargs:
        return ", ".join(map(_show, args))
    return ", ".join([*map(_show, args), *(f"{k}={_show(v)}" for k, v in kwargs.items() if v is not None)])


def _show(value: object) -> str:
    if isinstance(value, Register):
        return value.name
    if isinstance(value, Negation):
        return f"~{value.reg.name}"
    if isinstance(value, RegisterRange):
        return f"{value.base}<{value.count}>"
    if value is None or isinstance(value, bool | int | float | PtxType):
        return repr(value)
    if isinstance(value, str):
        return ascii(value if len(value) < 40 else f"{value[:36]}...")
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        inner = ", ".join(_show(item) for item in items[:4]) + (", ..." if len(items) > 4 else "")
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    for word in (getattr(value, "name", None), getattr(value, "__name__", None)):
        if isinstance(word, str) and word.isascii() and word.isprintable():
            return word
    return ascii(type(value).__name__)[1:-1]
