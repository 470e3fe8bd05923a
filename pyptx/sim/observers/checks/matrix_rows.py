"""Report to the engine which rows `ldmatrix` reads and `stmatrix` writes: their addresses show the expected swizzle."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.model import Kind
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Place
from pyptx.sim.observers.checks.session import Session, find_session, make_place

_ROWS = 8
"""A matrix is this many rows of 16 bytes, each at the address of one lane."""
_TALL = 2


def make_event(step: Step) -> Callable[..., None] | None:
    """Return the function that reports the rows of an instruction."""
    if step.plan is None:
        return None
    match = step.plan.match
    matrices = int(match.chosen["num"][1:]) * (_TALL if "m16n16" in match.modifiers else 1)
    stores = any(operand.kind is Kind.ADDRESS and "w" in operand.access for operand in step.plan.signature)
    return partial(_record_rows, make_place(step.instruction), stores, matrices)


def _record_rows(
    place: Place, stores: bool, matrices: int, machine: Batch, lanes: Lanes, mask: Any, space: str, address: Any,
    *operands: Any,
) -> None:  # fmt: skip
    checks = find_session(machine)
    assert checks.grid is not None
    layouts, shared = checks.engine.layouts, machine.memory.shared
    if not (stores or layouts.has_fillers(checks.grid)):
        return
    active, (lane_addresses,) = select_lanes(lanes, mask, address)
    if active is None:
        return
    row_lanes = _order_row_lanes(checks, active, matrices)
    addresses = lane_addresses[row_lanes].astype(np.int64)
    base = active.cta[row_lanes] * machine.shape.shared_stride - shared.low
    # Ignore generic addresses and those of peers.
    if (addresses < shared.low).any() or (addresses >= shared.low + shared.size).any():
        return
    first = checks.group_lanes(active).threads[row_lanes[:, 0]]
    if stores:
        layouts.record_rows(checks.grid, place, addresses, addresses + base)
    else:
        layouts.check_rows(checks.grid, first, place, addresses, addresses + base)


def _order_row_lanes(checks: Session, lanes: Lanes, matrices: int) -> Array:
    """Return the positions of the lanes whose addresses count, one row per matrix."""

    def sort_lanes() -> Array:
        threads = checks.group_lanes(lanes).threads
        order = np.argsort(threads, kind="stable")
        order = order[threads[order] % 32 < _ROWS * matrices]
        return order[: len(order) // _ROWS * _ROWS].reshape(-1, _ROWS)

    return lanes.compute_once(f"hazards of {matrices} matrices", sort_lanes)
