"""Rings of buffers (`ptx.pipeline`) and the numbered hardware barriers (`ptx.named_barrier`)."""

from __future__ import annotations

from typing import Any

from pyptx.dsl import rules
from pyptx.dsl.arithmetic import to_unsigned
from pyptx.dsl.emit import describe, emit, spell
from pyptx.dsl.registers import Pred, Reg, create_register, move
from pyptx.dsl.scopes import intrinsic
from pyptx.dsl.trace import fail
from pyptx.dsl.values import is_integer
from pyptx.types import pred as pred_type
from pyptx.types import u32


class PipelineState:
    """The position in a ring of `n_stages` buffers: `.cursor` (the stage) and `.phase` (flips on each wrap)."""

    def __init__(self, n_stages: int, *, cursor: Reg | None = None, phase: Reg | None = None) -> None:
        if not is_integer(n_stages, 1):
            fail(rules.ARGUMENT, f"expected the number of stages, found {describe(n_stages)}")
        self.n_stages = n_stages
        self.cursor = cursor if cursor is not None else _make_zero("the stage of a ring, updated by advance()")
        self.phase = phase if phase is not None else _make_zero("the phase of a ring, updated by advance()")

    @property
    def stage(self) -> Reg:
        """Same as `.cursor`."""
        return self.cursor

    @intrinsic
    def advance(self) -> tuple[Reg, Reg]:
        """Go to the next stage. Return copies of the old stage and phase: two mov, then setp, selp, xor, selp, add."""
        old = create_register(self.cursor.dtype), create_register(self.phase.dtype)
        move(old[0], self.cursor)
        move(old[1], self.phase)
        kind = to_unsigned(self.cursor.dtype).name
        wraps, before, next_phase = (
            create_register(pred_type),
            create_register(self.cursor.dtype),
            create_register(self.phase.dtype),
        )
        emit(spell("setp", "eq", kind), (wraps, self.cursor, self.n_stages - 1))
        emit(spell("selp", f"b{self.cursor.dtype.bits}"), (before, -1, self.cursor, wraps))
        emit(spell("xor", f"b{self.phase.dtype.bits}"), (next_phase, self.phase, 1))
        emit(spell("selp", f"b{self.phase.dtype.bits}"), (self.phase, next_phase, self.phase, wraps))
        emit(spell("add", kind), (self.cursor, before, 1))
        return old


def _make_zero(reason: str) -> Reg:
    register = create_register(u32)
    move(register, 0)
    register.__held__ = reason
    return register


def pipeline(n_stages: int, *, cursor: Reg | None = None, phase: Reg | None = None) -> PipelineState:
    """Return the state of a ring of buffers; unless registers are passed, two new ones start at 0. `n_stages` counts
    buffers."""
    return PipelineState(n_stages, cursor=cursor, phase=phase)


class NamedBarrier:
    """A hardware barrier of the CTA by its number, 0 to 15, for `count` threads (a multiple of 32) or all."""

    def __init__(self, barrier_id: Any, count: Any = None) -> None:
        self.barrier_id, self.count = barrier_id, count

    def sync(self, *, pred: Pred | None = None) -> None:
        """Emit `bar.sync id[, count]`."""
        emit(spell("bar", "sync"), (self.barrier_id, *(() if self.count is None else (self.count,))), pred)

    def arrive(self, *, pred: Pred | None = None) -> None:
        """Emit `bar.arrive id, count`."""
        if self.count is None:
            fail(
                rules.ARGUMENT, "`arrive` needs the number of arriving threads", help="ptx.named_barrier(1, count=128)"
            )
        emit(spell("bar", "arrive"), (self.barrier_id, self.count), pred)


def named_barrier(barrier_id: Any, *, count: Any = None) -> NamedBarrier:
    """Return a named barrier by its number, 0 to 15, for `count` threads, a multiple of 32, or for all without
    `count`."""
    return NamedBarrier(barrier_id, count)
