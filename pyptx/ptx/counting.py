"""Counting loops: `ptx.range_` in PTX, `ptx.kloop` partly unrolled."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.arithmetic import to_unsigned
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.operators import emit_comparison, widen
from pyptx.dsl.registers import Pred, Reg, create_register, move
from pyptx.dsl.trace import Trace, fail, get_trace
from pyptx.dsl.values import Register, is_integer, unwrap_number
from pyptx.ir.nodes import Statement
from pyptx.ptx.branches import jump
from pyptx.ptx.loops import Loop
from pyptx.types import s32, s64


class Counted(Loop):
    """The loop of `range_`: a counter, its bound and step. A loop that surely `runs` is tested only at its end."""

    def __init__(self, counter: Reg, stop: Any, by: Any, down: bool, runs: bool) -> None:
        def test_counter() -> Pred:
            return emit_comparison("gt" if down else "lt", "range_", counter, stop)

        super().__init__("ptx.range_", "$range", test_counter if runs else None, None if runs else test_counter)
        self.counter, self.by = counter, by

    def step(self) -> None:
        down = self.counter.dtype.kind != "s" and isinstance(self.by, int) and self.by < -1
        if down:
            # One less than the step would wrap to a large number and continue; a step of 1 meets the bound exactly.
            self.breaks = True
            jump(self.trace, self.done, emit_comparison("lt", "range_", self.counter, -self.by))
        emit(spell("add", to_unsigned(self.counter.dtype).name), (self.counter, self.counter, self.by))


def range_(start: Any, stop: Any = None, step: Any = 1) -> Generator[Reg, None, None]:
    """Count in PTX: `for i in ptx.range_(0, n, 4):`. Bounds and step are integers or registers; a register step must be
    positive. The body is written once; leave it with `ptx.break_()`."""
    if stop is None:
        start, stop = 0, start
    start, stop, step = unwrap_number(start), unwrap_number(stop), unwrap_number(step)
    trace = get_trace()
    dtype = _choose_type(start, stop, step)
    if isinstance(step, int) and step == 0:
        fail(rules.ARGUMENT, "the step of `ptx.range_` must not be 0")
    low = [value for value in (start, stop) if isinstance(value, int) and value < 0]
    if low and dtype.kind != "s":
        fail(rules.ARGUMENT, f"`ptx.range_` counts in .{dtype}, which cannot be negative, found {low[0]}",
             help="use signed bounds: s32 registers or integers")  # fmt: skip
    bounds = [_convert_bound(value, dtype) for value in (start, stop, step)]
    return _count_rounds(trace, dtype, bounds)


def _count_rounds(trace: Trace, dtype: Any, bounds: list[Any]) -> Generator[Reg, None, None]:
    start, stop, step = bounds
    counter = create_register(dtype)
    move(counter, start)
    counter.__held__ = "the counter of `ptx.range_`, incremented by the loop"
    constants = [limit for limit in bounds if isinstance(limit, int)]
    loop = Counted(
        counter, stop, step, isinstance(step, int) and step < 0, len(constants) == 3 and len(range(*constants)) > 0
    )
    loop.__enter__()
    origin, mark = trace.locate(), len(trace.body)
    try:
        yield counter
    except GeneratorExit:
        # Nothing can be raised from a generator that is being closed; the next statement raises it.
        trace.pop(loop.open_body, keep=False)
        loop.discard()
        trace.pending.append(rules.PYTHON_EXIT.report(
            origin, "`break` or `return` in the body of `ptx.range_` ended tracing, not the loop",
            help="use ptx.break_() or ptx.break_(pred=p)",
        ))  # fmt: skip
        raise
    if all(_get_origin(statement) is origin for statement in trace.body[mark:]) and not _is_held(trace, counter):
        trace.pop(loop.open_body, keep=False)
        loop.discard()
        fail(rules.NESTING, "`ptx.range_` works only in a `for` statement: list() and * leave its body empty",
             help="write `for i in ptx.range_(…):`, or Python's range for numbers")  # fmt: skip
    loop.end()


def _is_held(trace: Trace, counter: Reg) -> bool:
    """Tell whether a variable of the iterating code holds the counter, also through `zip` or another generator.
    Functions that consume the loop at once, such as `list` or `sum`, hold it in no variable."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code is not trace.root:
        for value in frame.f_locals.values():
            if value is counter or (isinstance(value, tuple) and any(item is counter for item in value)):  # pyright: ignore[reportUnknownVariableType]
                return True
        frame = frame.f_back
    return False


def _get_origin(statement: Statement) -> object:
    return getattr(statement, "origin", None)


def _choose_type(*values: Any) -> Any:
    registers = [value for value in values if isinstance(value, Register)]
    for value in values:
        if not isinstance(value, Register) and (isinstance(value, bool) or not isinstance(value, int)):
            fail(rules.ARGUMENT, f"`ptx.range_` takes integers and integer registers, found {describe(value)}")
    for register in registers:
        if register.dtype.kind not in ("b", "u", "s") or register.dtype.bits not in (32, 64):
            fail(rules.TYPES, f"`ptx.range_` counts in 32 or 64 bits, found {describe(register)}")
    if not registers:
        start, stop, step = values
        # The counter ends one step after the last iteration, where a narrow one would wrap and continue.
        last = start + len(range(start, stop, step)) * step if step else start
        return s32 if all(-(1 << 31) <= value < 1 << 31 for value in (*values, last)) else s64
    widest = max(register.dtype.bits for register in registers)
    wide = [register.dtype for register in registers if register.dtype.bits == widest]
    if len({dtype.kind for dtype in wide} - {"b"}) > 1:
        fail(rules.TYPES, f"the bounds of `ptx.range_` differ in signedness: .{wide[0]} and .{wide[1]}",
             help="declare the bounds with the same signedness, or convert one")  # fmt: skip
    return to_unsigned(next((dtype for dtype in wide if dtype.kind != "b"), wide[0]))


def _convert_bound(value: Any, dtype: Any) -> Any:
    if isinstance(value, Register) and value.dtype.bits < dtype.bits:
        return widen(value, dtype)  # pyright: ignore[reportArgumentType]
    return value


def kloop(total: int | Reg, *, unroll: int, body: Callable[[], None], loop_label: str = "kloop") -> None:
    """Repeat `body` `total` times: an int is unrolled in Python; a register emits a loop over `unroll` copies, then a
    remainder loop."""
    if isinstance(total, int):
        for _ in range(total):
            body()
        return
    if not is_integer(unroll, 1):
        fail(rules.ARGUMENT, f"`unroll` must be a positive integer, found {describe(unroll)}")
    remaining = create_register(total.dtype)
    move(remaining, total)
    kind = to_unsigned(total.dtype).name
    for copies, name in ((unroll, loop_label), (1, f"{loop_label}_tail")):
        if copies == 1 and name != loop_label and unroll == 1:
            break
        with Loop("ptx.kloop", name, None, lambda count=copies: emit_comparison("ge", "kloop", remaining, count)):
            for _ in range(copies):
                body()
            emit(spell("sub", kind), (remaining, remaining, copies))
