"""Tells the engine with which swizzle tensor copies fill shared memory, and with which products read it."""

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
from pyptx.sim.observers.checks.session import checks_of
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tracing import Trace
from pyptx.tensormap import Swizzle, TensorMap

_SWIZZLE_AT = 62
"""The swizzle is in the highest bits of the descriptors of wgmma."""


def filled(site: Site, starts: list[int], size: int, tensor: TensorMap) -> None:
    """A tensor copy fills boxes of shared memory, from offsets in that of the batch."""
    checks, place = checks_of(site)
    assert checks.grid is not None
    checks.engine.layouts.filled(checks.grid, place, starts, size, tensor.swizzle, tensor.dtype)


def taken_by_warpgroups(site: Site, lanes: Lanes, groups: list[Group], rows: Rows, descriptors: Any, kind: str) -> None:
    """Warpgroups read an operand each, of elements of a type; `rows` and `groups` are in the order of CTAs and
    warpgroups."""
    checks, place = checks_of(site)
    values = lanes.each(descriptors)[wg.groups_of(lanes).first]
    modes = {_read_swizzle(value) for value in set((values >> _SWIZZLE_AT).tolist())}
    for mode in modes if len(modes) == 1 else ():
        if checks.engine.layouts.differs(mode, kind):
            threads = np.array([group.first for group in groups])
            checks.engine.layouts.taken(threads, place, rows, mode, site.memory.shared.low, kind)


@cache
def _read_swizzle(bits: int) -> Swizzle:
    return WgmmaDescriptor.decode(bits << _SWIZZLE_AT).swizzle


def taken_by_tensor(site: Site, threads: Array, operands: list[Rows], trace: Trace) -> None:
    """Threads issued products in tensor memory; in a pair of CTAs each thread's have rows of both."""
    checks, place = checks_of(site)
    for matrix in trace.overlapping:
        report_overlap(checks, place, int(threads[0]), matrix)
    for rows, matrix in zip(operands, trace.matrices, strict=False):
        report_start(checks, place, int(threads[0]), matrix, site.memory.shared.low)
        issuers, mode = threads.repeat(len(rows) // len(threads)), matrix.found.swizzle
        checks.engine.layouts.taken(issuers, place, rows, mode, site.memory.shared.low, matrix.kind)
