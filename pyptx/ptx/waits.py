"""The wait loops that compilers and libraries emit around `mbarrier.try_wait`, for exact transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from pyptx.dsl import rules
from pyptx.dsl.emit import emit, spell
from pyptx.dsl.exact import check_symbol_name
from pyptx.dsl.registers import Reg, create_register
from pyptx.dsl.trace import fail, get_trace
from pyptx.ir.nodes import Label
from pyptx.ptx.decl import reg
from pyptx.ptx.exact import block
from pyptx.types import pred as pred_type


class WaitLoop(NamedTuple):
    """The style of a library's wait loops: the arguments that all of its waits share."""

    labels: Sequence[str] = ("LAB_WAIT", "DONE")
    predicate: str = "P1"
    space: str = "shared::cta"
    uni: bool = False
    sem: str | None = None
    scope: str | None = None


def emit_exact_wait(
    mbar: Any,
    phase: Any,
    *,
    order: Sequence[str],
    space: str,
    suspend_hint: Any,
    predicate: Reg | str | None,
    labels: Sequence[str],
    uni: bool,
) -> None:
    """Emit a wait loop as described. A `predicate` passed by name is declared in a block `{ … }` around the loop, as in
    inline assembly. One label marks the start: `L: try_wait p, …; @!p bra L;`. A second marks the exit: `L: try_wait p,
    …; @p bra D; bra L; D:`."""
    trace = get_trace()
    if not 1 <= len(labels) <= 2:
        fail(rules.ARGUMENT, f"a wait loop has one or two labels, found {len(labels)}",
             help='labels=("waitLoop",), or ("LAB_WAIT", "DONE")')  # fmt: skip
    names = [check_symbol_name(label) for label in labels]
    words = ["try_wait", "parity", *order, *space.split("."), "b64"]
    branch = spell("bra", "uni") if uni else spell("bra")
    with block() if isinstance(predicate, str) else nullcontext():
        flag = create_register(pred_type) if predicate is None else predicate
        flag = reg(pred_type, flag) if isinstance(flag, str) else flag
        if not isinstance(flag, Reg):
            fail(rules.ARGUMENT, "the predicate of a wait loop must be a register, or the name of one to declare")
        trace.append(Label(names[0], origin=trace.locate()))
        operands = (flag, mbar, phase) if suspend_hint is None else (flag, mbar, phase, suspend_hint)
        emit(spell("mbarrier", *words), operands, None, trace)
        if len(names) == 1:
            emit(branch, (names[0],), ~flag, trace)
        else:
            emit(branch, (names[1],), flag, trace)
            emit(branch, (names[0],), None, trace)
            trace.append(Label(names[1], origin=trace.locate()))
