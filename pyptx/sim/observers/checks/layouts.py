"""Report to the engine with which swizzle tensor copies fill shared memory and products read it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pyptx.isa.descriptors import WgmmaDescriptor
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Group
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.observers.checks.descriptors import report_overlap, report_start
from pyptx.sim.observers.checks.session import locate_session
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tracing import Trace
from pyptx.tensormap import Swizzle, TensorMap

_SWIZZLE_AT = 62
"""The swizzle is in the highest bits of wgmma descriptors."""


def record_fill(site: Site, starts: list[int], size: int, tensor: TensorMap) -> None:
    """Record the boxes of shared memory that a tensor copy fills, by offset in the batch."""
    checks, place = locate_session(site)
    assert checks.grid is not None
    checks.engine.layouts.record_fill(checks.grid, place, starts, size, tensor.swizzle, tensor.dtype)


def check_warpgroup_operands(
    site: Site, lanes: Lanes, groups: list[Group], rows: Rows, descriptors: Any, kind: str
) -> None:
    """Check an operand of each warpgroup, of one element type; `rows` and `groups` are in the order of CTAs and
    warpgroups."""
    checks, place = locate_session(site)
    values = lanes.broadcast(descriptors)[wg.get_groups(lanes).first]
    modes = {_read_swizzle(value) for value in set((values >> _SWIZZLE_AT).tolist())}
    for mode in modes if len(modes) == 1 else ():
        if checks.engine.layouts.differs(mode, kind):
            threads = np.array([group.first for group in groups])
            checks.engine.layouts.check_granules(threads, place, rows, mode, site.memory.shared.low, kind)


@cache
def _read_swizzle(bits: int) -> Swizzle:
    return WgmmaDescriptor.decode(bits << _SWIZZLE_AT).swizzle


def check_tensor_operands(site: Site, threads: Array, operands: list[Rows], trace: Trace) -> None:
    """Check the operands of products in tensor memory; in a pair of CTAs each thread's operands have rows of both."""
    checks, place = locate_session(site)
    for matrix in trace.overlapping:
        report_overlap(checks, place, int(threads[0]), matrix)
    for rows, matrix in zip(operands, trace.matrices, strict=False):
        report_start(checks, place, int(threads[0]), matrix, site.memory.shared.low)
        issuers, mode = threads.repeat(len(rows) // len(threads)), matrix.descriptor.swizzle
        checks.engine.layouts.check_granules(issuers, place, rows, mode, site.memory.shared.low, matrix.kind)
