"""Strong writes that a strong read observed: they precede what follows the read, even if they released nothing.

Causality Order, which the manual builds on Observation Order. Knows records and shadow memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyptx.sim.base.events import Clock, Family, Ints, Mask, Scope
from pyptx.sim.hazards.conflicts import precedes
from pyptx.sim.hazards.readers import Readers
from pyptx.sim.hazards.records import LIVE_BARRIER, READS, STRONG, WRITES
from pyptx.sim.hazards.shadow import Plane
from pyptx.sim.hazards.state import State


def are_observed(state: State, readers: Readers, plane: Plane, cells: Ints, refs: Ints, threads: Ints) -> Mask:
    """Tell, pair by pair, whether an earlier access is a strong write that a read observed which the thread's own CTA
    made before the thread's current access."""
    records, last = state.records, plane.write[cells].astype(np.int64)
    is_observed = _has(state, refs, STRONG | WRITES) & (records.get_families(refs >> 6) == Family.THREAD)
    if not is_observed.any():
        return is_observed
    is_read, is_overwritten = np.zeros((2, len(refs)), np.bool_)
    for indices, others in _list_accesses(readers, plane, cells):
        indices, others = indices[is_observed[indices]], others[is_observed[indices]]
        mine, is_other = refs[indices], others != refs[indices]
        time, own_time = records.time[others >> 6], records.time[mine >> 6]
        is_plain_write = _has(state, others, WRITES) & ~_has(state, others, READS)
        np.logical_or.at(is_overwritten, indices, is_plain_write & is_other & (time >= own_time))
        # Nothing was written after the last write, even at the same time.
        later = (time > own_time) | ((others == last[indices]) & is_other & _has(state, others, WRITES))
        later &= _has(state, others, STRONG | READS) & _are_mutual(state, mine, others)
        later &= _share_cta(state, records.get_warps(others >> 6), threads[indices] >> 5)
        later &= records.get_domains(others >> 6) == state.clocks.domain_of[threads[indices] >> 5]
        later[later] = precedes(state, others[later], threads[indices[later]])
        np.logical_or.at(is_read, indices, later)
    return is_observed & is_read & ~is_overwritten


def _has(state: State, refs: Ints, flags: int) -> Mask:
    """Tell which references are to accesses with all these flags, and not to mbarriers."""
    return state.records.get_flags(refs >> 6) & (flags | LIVE_BARRIER) == flags


def _share_cta(state: State, warps: Ints | Clock, others: Ints | Clock) -> Mask:
    """Tell which warps of one cluster are of one CTA."""
    begins = state.clocks.cta_span[:, 0]
    return begins[warps] == begins[others]


def _are_mutual(state: State, writes: Ints, others: Ints) -> Mask:
    """Tell which pairs of accesses have one size, and scopes that include each other's thread."""
    records, write, other = state.records, writes >> 6, others >> 6
    same_cluster = records.get_domains(write) == records.get_domains(other)
    same_cta = same_cluster & _share_cta(state, records.get_warps(write), records.get_warps(other))
    least_scope = np.where(same_cta, Scope.CTA, np.where(same_cluster, Scope.CLUSTER, Scope.GPU))
    scope = np.minimum(records.get_scopes(write), records.get_scopes(other))
    return (records.get_sizes(write) == records.get_sizes(other)) & (scope >= least_scope)


def _list_accesses(readers: Readers, plane: Plane, cells: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the accesses that the cells remember, after the positions of their cells."""
    everywhere = np.arange(len(cells))
    for slot in (plane.write, *plane.reads):
        yield everywhere, slot[cells].astype(np.int64)
    indices, refs = readers.find_spilled(plane, cells)
    yield indices, refs.astype(np.int64)
    for indices, members in readers.list_sets(plane, cells):
        for member in members:
            yield indices, np.full(len(indices), member, np.int64)
