"""Which instructions of a checked program tell the engine more than the bytes that their lanes access.

`wrapped` gives the function that runs in place of an instruction's own; `told` one that is called before it, with its
guard and its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pyptx.check.body import Step
from pyptx.sim.checks import copies, fences, mbarriers
from pyptx.sim.checks.accesses import Stored
from pyptx.sim.checks.session import checks_of
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Site
from pyptx.sim.semantics.vocabulary import Operation

Function = Callable[..., Any]


def wrapped(step: Step, operation: Operation) -> Function | None:
    """Return the function of an instruction that accesses memory, telling of it."""
    inner = operation.function
    assert inner is not None
    match step.instruction.opcode:
        case "st" if ".async" not in step.instruction.modifiers:
            return partial(_store, inner)
        case "mbarrier":
            return mbarriers.hook(step, inner)
        case "cp":
            return copies.hook(step, inner)
        case _:
            return None


def told(step: Step) -> Function | None:
    """Return what tells of an instruction that accesses no memory."""
    match step.instruction.opcode:
        case "fence" | "membar" | "griddepcontrol":
            return fences.hook(step)
        case "cp":
            return copies.group_hook(step)
        case _:
            return None


def _store(
    inner: Function, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, values: Any, *rest: Any
) -> None:
    """Store, remembering the values while the access is told of."""
    checks, _ = checks_of(site)
    checks.stored = Stored(lanes, values if isinstance(values, tuple) else (values,))
    inner(site, lanes, mask, space, address, outs, values, *rest)
    checks.stored = None
