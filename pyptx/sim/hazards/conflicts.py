"""Whether an access conflicts with an earlier one, and which rule that breaks.

Knows clocks and records; the facts of the memory model are in `rule_of`, one line each.
"""

from __future__ import annotations

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.sim import rules
from pyptx.sim.base.events import Access, Family, Ints, Mask, Scope, Space
from pyptx.sim.hazards.clocks import (
    AFTER,
    CLUSTER,
    CROSSED_GLOBAL,
    CROSSED_SHARED,
    CTA,
    FLOORED,
    PRIOR,
    RAN,
    SEEN,
    WARP,
    WIDE_GLOBAL,
    WIDE_SHARED,
)
from pyptx.sim.hazards.records import ALL_LANES, CROWD, LIVE_BARRIER, READONLY, STRONG, WRITES
from pyptx.sim.hazards.stamps import Stamp
from pyptx.sim.hazards.state import NarrowEdge, State

TOO_EARLY = {
    Family.CP_ASYNC: rules.CP_ASYNC_TOO_EARLY,
    Family.ST_ASYNC: rules.LOAD_TOO_EARLY,
    Family.BULK_LOAD: rules.LOAD_TOO_EARLY,
    Family.BULK_STORE: rules.STORE_TOO_EARLY,
    Family.TCGEN05: rules.TENSOR_TOO_EARLY,
    Family.TMEM_LD: rules.TENSOR_LOAD_PENDING,
    Family.TMEM_ST: rules.TENSOR_STORE_PENDING,
    Family.THREAD: rules.DEALLOC,
}
SOURCE = {
    Family.BULK_STORE: rules.STORE_SOURCE,
    Family.BULK_LOAD: rules.LOAD_TOO_EARLY,
    Family.WGMMA: rules.WGMMA_SOURCE,
    Family.TCGEN05: rules.TCGEN05_SOURCE,
    Family.TMEM_LD: rules.TENSOR_LOAD_PENDING,
}


def known(state: State, refs: Ints, threads: Ints, kind: int) -> Mask:
    """Tell which accesses which threads know, except their own."""
    clocks, records = state.clocks, state.records
    record, lane = refs >> 6, refs & 63
    time, domain = records.time[record], records.domain(record)
    warp = threads >> 5
    row, mine = clocks.rows_by(threads, time), clocks.domain_of[warp]
    table, floors, foreign = clocks.written
    same = domain == mine
    several = lane >= ALL_LANES
    column = np.where(same & ~several, records.column[record] + lane, 0)
    is_known = same & ~several & (table[row, kind, column] >= time)
    if kind < FLOORED:
        span, first = clocks.cta_span[warp], records.column[record]
        within = (first >= span[:, 0]) & (first < span[:, 1])
        level = np.where(records.warp(record) == warp, WARP, np.where(within, CTA, CLUSTER))
        plain = same & (records.operation[record] == 0)
        if np.count_nonzero(lane == CROWD):
            # A crowd whose time a floor can cover is of one CTA.
            level = np.where(lane == CROWD, CTA, level)
            plain &= (lane != CROWD) | (records.key[record] == time)
        is_known |= plain & (time <= floors[row, kind, level])
    else_where = ~same & (time <= table[row, kind, PRIOR])
    if else_where.any():
        theirs, here = state.grid_of_domain[domain], state.grid_of_domain[mine]
        earlier = theirs < here
        if state.uncovered:
            covered, prior = np.array([(grid.covered, grid.prior) for grid in state.grids])[here].T
            earlier &= (theirs >= covered) | (time <= prior)
        is_known |= else_where & earlier
    if np.count_nonzero(several):
        rest = np.flatnonzero((lane == ALL_LANES) & ~is_known)
        if len(rest):
            is_known[rest] = _knows_all_lanes(state, record[rest], threads[rest], kind)
        for at in np.flatnonzero((lane == CROWD) & ~is_known).tolist():
            is_known[at] = _knows_crowd(state, int(record[at]), int(threads[at]), kind)
    if foreign:
        for at in np.flatnonzero(~is_known & ~same & (lane != CROWD)).tolist():
            theirs = foreign.get(int(row[at]), {}).get(int(domain[at]))
            at_column = int(records.column[record[at]] + (lane[at] if lane[at] < ALL_LANES else 0))
            is_known[at] = theirs is not None and at_column < theirs.shape[1] and theirs[kind, at_column] >= time[at]
    return is_known


def _knows_crowd(state: State, record: int, thread: int, kind: int) -> bool:
    """Tell whether a thread knows the accesses of all threads of a crowd."""
    records, clocks = state.records, state.clocks
    (columns, times), row = records.crowds[record], int(clocks.row_of[thread])
    warp = thread >> 5
    domain = int(records.domain(np.array([record]))[0])
    if domain != clocks.domain_of[warp]:
        theirs = clocks.foreign.get(row, {}).get(domain)
        return theirs is not None and columns.max() < theirs.shape[1] and bool((theirs[kind, columns] >= times).all())
    mine = thread - int(clocks.first_thread[warp]) + 1
    crossing = kind in (CROSSED_SHARED, CROSSED_GLOBAL)
    if not crossing or clocks.crossed_own[thread, kind - CROSSED_SHARED] >= times[columns == mine].max(initial=0):
        times, columns = times[columns != mine], columns[columns != mine]
    if kind < FLOORED:
        least, most = columns.min(initial=mine), columns.max(initial=mine)
        (low, high), lane = clocks.cta_span[warp], mine - (thread & 31)
        level = WARP if lane <= least and most < lane + 32 else CTA if low <= least and most < high else CLUSTER
        times, columns = (part[times > clocks.floors[row, kind, level]] for part in (times, columns))
    return bool((clocks.table[row, kind, columns] >= times).all())


def _knows_all_lanes(state: State, record: Ints, threads: Ints, kind: int) -> Mask:
    """Tell whether threads know the accesses of all lanes of records, except their own."""
    records, clocks = state.records, state.clocks
    own_lane = np.where(records.tag[record] >> 7 == clocks.life_of[threads >> 5], threads & 31, 32)
    if kind in (CROSSED_SHARED, CROSSED_GLOBAL):
        own_lane[clocks.crossed_own[threads, kind - CROSSED_SHARED] < records.time[record]] = 32
    inverse: Ints | None = None
    if len(record) > 1:
        # Threads of a row have equal knowledge.
        alike = (record.astype(np.int64) << 38) + (clocks.row_of[threads].astype(np.int64) << 6) + own_lane
        _, first, inverse = np.unique(alike, return_index=True, return_inverse=True)
        record, threads, own_lane = record[first], threads[first], own_lane[first]
    masks = records.mask[record] & ~(np.int64(1) << own_lane)
    which, lanes = np.nonzero((masks[:, None] >> np.arange(32)) & 1)
    is_known = np.ones(len(record), np.bool_)
    is_known[which[~known(state, record[which].astype(np.int64) * 64 + lanes, threads[which], kind)]] = False
    return is_known if inverse is None else is_known[inverse.reshape(-1)]


def own(state: State, refs: Ints, threads: Ints) -> Mask:
    """Tell which accesses the threads made themselves, not by an asynchronous operation."""
    return state.records.tag[refs >> 6] + (refs & 63) == state.clocks.tags(threads)


def own_copies(state: State, refs: Ints, threads: Ints, index: int = 0) -> Mask:
    """Tell which accesses are cp.async operations of the threads for which they have waited."""
    records, record = state.records, refs >> 6
    copied = records.family(record) == Family.CP_ASYNC
    if not copied.any():
        return copied
    mine = (records.tag[record] & ~127) + (refs & 63) == state.clocks.tags(threads)
    return copied & mine & (state.clocks.copied_own[threads, index] >= records.time[record])


def _has_crossed(state: State, refs: Ints, threads: Ints, space: Space) -> Mask:
    index = 0 if space is Space.SHARED else 1
    crossed = known(state, refs, threads, CROSSED_SHARED + index) | own_copies(state, refs, threads, 1 + index)
    mine = own(state, refs, threads)
    return crossed | (mine & (state.clocks.crossed_own[threads, index] >= state.records.time[refs >> 6]))


def ordered(state: State, refs: Ints, threads: Ints) -> Mask:
    """Tell which accesses precede what the threads do now."""
    return own(state, refs, threads) | known(state, refs, threads, SEEN) | own_copies(state, refs, threads)


def clashes(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which earlier accesses an access of these threads may not follow. Both are arrays of one length."""
    records, record = state.records, refs >> 6
    flags = records.flags(record)
    if access.space is Space.TENSOR:
        # Deallocation is synchronous: an ordinary barrier orders it, without a tcgen05 fence.
        good = known(state, refs, threads, SEEN if access.family is Family.THREAD else AFTER)
        good |= _is_in_order(state, access, refs, threads)
        return ~good
    if access.strong and not access.readonly:
        judged = flags & (READONLY | LIVE_BARRIER) != 0
        judged |= ~_is_morally_strong(state, access, refs, threads)
        if not judged.any():
            return judged
        if not judged.all():
            at = np.flatnonzero(judged)
            judged[at] = clashes(state, access, refs[at], threads[at])
            return judged
    good = ordered(state, refs, threads)
    far = _is_other_cta(state, refs, threads) & (flags & WRITES != 0) & good & (records.operation[record] == 0)
    if far.any():
        wide = WIDE_SHARED if access.space is Space.SHARED else WIDE_GLOBAL
        good &= ~far | known(state, refs, threads, wide)
    if access.async_proxy:
        generic = _is_generic(state, record) & good
        if generic.any():
            good &= ~generic | _has_crossed(state, refs, threads, access.space)
        good &= ~_is_unfenced_store(state, access, refs, threads)
    if access.strong and access.readonly:
        good |= _is_morally_strong(state, access, refs, threads)
    if access.readonly or (flags & READONLY).any():
        good &= ~_breaks_readonly(state, access, record, threads)
    return ~good | (flags & LIVE_BARRIER != 0)


def plainly_after(state: State, access: Access, ref: int, thread: int) -> bool:
    """Tell quickly whether an access of a thread follows an earlier one of its cluster, as most do. False decides
    nothing: `clashes` does."""
    records, clocks = state.records, state.clocks
    record, lane, warp = ref >> 6, ref & 63, thread >> 5
    if lane >= ALL_LANES or access.space is Space.TENSOR or access.readonly:
        return False
    if records.life_domain[records.tag[record] >> 7] != clocks.domain_of[warp]:
        return False
    flags = records.flag(record)
    known_at = clocks.table[clocks.row_of[thread], :, records.column[record] + lane]
    time = records.time[record]
    if known_at[SEEN] < time or flags & (LIVE_BARRIER | READONLY):
        return False
    wide = WIDE_SHARED if access.space is Space.SHARED else WIDE_GLOBAL
    if flags & WRITES and not records.operation[record] and known_at[wide] < time:
        low, high = clocks.cta_span[warp]
        if not low <= records.column[record] < high:
            return False
    if not access.async_proxy:
        return True
    earlier = records.place(record)
    crossed = CROSSED_SHARED if access.space is Space.SHARED else CROSSED_GLOBAL
    return earlier.family is not Family.BULK_STORE and (earlier.async_proxy or bool(known_at[crossed] >= time))


def all_plainly_after(state: State, access: Access, refs: Ints, threads: Ints) -> bool:
    """Tell quickly whether accesses follow earlier asynchronous ones of their cluster, as most do. False decides
    nothing."""
    records, clocks, record, lane = state.records, state.clocks, refs >> 6, refs & 63
    if access.space is Space.TENSOR or access.readonly or int(lane.max()) >= ALL_LANES:
        return False
    if np.count_nonzero(records.operation[record]) < len(record):
        return False
    if np.count_nonzero(records.flags(record) & (LIVE_BARRIER | READONLY)):
        return False
    if np.count_nonzero(records.domain(record) != clocks.domain_of[threads >> 5]):
        return False
    known_at = clocks.table[clocks.row_of[threads], SEEN, records.column[record] + lane]
    if np.count_nonzero(known_at < records.time[record]):
        return False
    if not access.async_proxy:
        return True
    family = records.family(record)
    return bool(((family == Family.BULK_LOAD) | (family == Family.WGMMA) | (family == Family.TCGEN05)).all())


def all_crossed_after(state: State, access: Access, refs: Ints, threads: Ints) -> bool:
    """Tell quickly whether asynchronous accesses to shared memory follow plain ones by threads of their own CTA that
    fenced, as most do. False decides nothing."""
    records, clocks, record, lane = state.records, state.clocks, refs >> 6, refs & 63
    if access.space is not Space.SHARED or not access.async_proxy or int(lane.max()) >= ALL_LANES:
        return False
    number, warps = records.access[record], threads >> 5
    kinds = np.unique(number)
    odd = any(records.accesses[int(at)].family is not Family.THREAD for at in kinds)
    if odd or np.count_nonzero(records.operation[record]) or records.any_flag(kinds, LIVE_BARRIER | READONLY):
        return False
    column, span = records.column[record] + lane, clocks.cta_span[warps]
    here = (records.domain(record) == clocks.domain_of[warps]) & (column >= span[:, 0]) & (column < span[:, 1])
    if np.count_nonzero(here) < len(here):
        return False
    time, row = records.time[record], clocks.row_of[threads]
    seen, crossed = clocks.table[row, SEEN, column], clocks.table[row, CROSSED_SHARED, column]
    floors = clocks.floors[row]
    good = (np.maximum(seen, floors[:, SEEN, CTA]) >= time) & (
        np.maximum(crossed, floors[:, CROSSED_SHARED, CTA]) >= time
    )
    good |= (column == clocks.columns_of(threads)) & (clocks.crossed_own[threads, 0] >= time)
    return np.count_nonzero(good) == len(good)


def _breaks_readonly(state: State, access: Access, record: Ints, threads: Ints) -> Mask:
    """Tell whether bytes of read-only loads are written in the same grid, whatever orders the accesses."""
    flags = state.records.flags(record)
    here = state.grid_of_domain[state.clocks.domain_of[threads >> 5]]
    same_grid = state.grid_of_domain[state.records.domain(record)] == here
    return same_grid & ((access.readonly & (flags & WRITES != 0)) | (access.writes & (flags & READONLY != 0)))


def _is_generic(state: State, record: Ints) -> Mask:
    family = state.records.family(record)
    return (family == Family.THREAD) | (family == Family.CP_ASYNC) | (family == Family.ST_ASYNC)


def _is_other_cta(state: State, refs: Ints, threads: Ints) -> Mask:
    records, warp = state.records, threads >> 5
    span = state.clocks.cta_span[warp]
    column = records.column[refs >> 6]
    same = records.domain(refs >> 6) == state.clocks.domain_of[warp]
    return same & ((column < span[:, 0]) | (column >= span[:, 1]))


def _is_unfenced_store(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which async reads of another CTA's asynchronous stores lack a fence."""
    record = refs >> 6
    stored = state.records.family(record) == Family.BULK_STORE
    if access.writes or access.space is not Space.GLOBAL or not stored.any():
        return np.zeros(len(refs), np.bool_)
    warps = state.records.warp(record)
    far = state.records.domain(record) != state.clocks.domain_of[threads >> 5]
    far |= state.clocks.cta_span[warps, 0] != state.clocks.cta_span[threads >> 5, 0]
    far &= (
        state.grid_of_domain[state.records.domain(record)] == state.grid_of_domain[state.clocks.domain_of[threads >> 5]]
    )
    return stored & far & ~known(state, refs, threads, CROSSED_GLOBAL)


def _is_morally_strong(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which accesses are strong, to the same bytes, with scopes that include each other's thread: they never
    race."""
    records, record = state.records, refs >> 6
    strong = (records.flags(record) & STRONG != 0) & (records.size(record) == access.size)
    warp = threads >> 5
    same_cluster = records.domain(record) == state.clocks.domain_of[warp]
    needed = np.where(_is_other_cta(state, refs, threads), Scope.CLUSTER, Scope.CTA)
    needed = np.where(same_cluster, needed, Scope.GPU)
    return strong & (records.scope(record) >= needed) & (int(access.scope) >= needed)


def _is_in_order(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which tensor-memory operations the hardware keeps in order: the tcgen05 pipeline of one thread."""
    records, record = state.records, refs >> 6
    same = (records.domain(record) == state.clocks.domain_of[threads >> 5]) & (records.warp(record) == threads >> 5)
    if access.family is Family.TCGEN05:
        mine = records.mask[record] == (np.int64(1) << (threads & 31))
        pipeline = same & mine & (records.family(record) == Family.TCGEN05)
        if pipeline.all():
            return pipeline
        moved = (records.family(record) == Family.TMEM_LD) | (records.family(record) == Family.TMEM_ST)
        return pipeline | (same & moved & known(state, refs, threads, SEEN))
    family = records.family(record)
    moved = (family == Family.TMEM_LD) | (family == Family.TMEM_ST)
    alike = moved & (family == access.family)
    # What a warp waited for itself needs no fence.
    return same & (alike | (moved & known(state, refs, threads, SEEN)))


def rule_of(state: State, access: Access, ref: int, thread: int) -> Rule | None:
    """Return the rule that an access of a thread after an earlier access breaks; None if it is in order."""
    records = state.records
    refs, threads = np.array([ref], np.int64), np.array([thread], np.int64)
    if not clashes(state, access, refs, threads)[0]:
        return None
    flags, family = int(records.flags(refs >> 6)[0]), Family(int(records.family(refs >> 6)[0]))
    if flags & LIVE_BARRIER:
        return rules.BARRIER_BYTES
    wrote = bool(flags & WRITES)
    if access.space is Space.TENSOR:
        return _select_tensor_rule(state, family, wrote, refs, threads)
    if _breaks_readonly(state, access, refs >> 6, threads)[0]:
        return rules.READONLY
    if not ordered(state, refs, threads)[0]:
        return _select_unordered_rule(state, access, ref, thread)
    if access.async_proxy:
        if family is Family.BULK_STORE:
            return rules.STORE_THEN_ASYNC_READ
        if not _has_crossed(state, refs, threads, access.space)[0]:
            if not wrote:
                return rules.READ_THEN_ASYNC_WRITE
            if access.writes:
                return rules.WRITE_THEN_ASYNC_WRITE
            return rules.CP_ASYNC_THEN_ASYNC_READ if family is Family.CP_ASYNC else rules.WRITE_THEN_ASYNC_READ
    return rules.NARROW_SCOPE


def rules_of(state: State, access: Access, ref: int, thread: int) -> list[Rule]:
    """Return the rules that an access of a thread after an earlier access breaks: two if some of a crowd's threads are
    lanes of the same warp and others are not."""
    rule = rule_of(state, access, ref, thread)
    if rule is None:
        return []
    if rule not in (rules.RACE, rules.LANE_RACE) or ref & 63 != CROWD or access.family is not Family.THREAD:
        return [rule]
    unknown = _list_unknown_members(state, ref >> 6, thread)
    near = unknown >> 5 == thread >> 5
    return [one for one, lanes in ((rules.RACE, ~near), (rules.LANE_RACE, near)) if lanes.any()] or [rule]


def _list_unknown_members(state: State, record: int, thread: int) -> Ints:
    """Return the threads of a crowd in the thread's cluster whose accesses it does not know."""
    records, clocks, warp = state.records, state.clocks, thread >> 5
    if int(records.domain(np.array([record]))[0]) != clocks.domain_of[warp]:
        return np.zeros(0, np.int64)
    (columns, times), row = records.crowds[record], int(clocks.row_of[thread])
    first = int(clocks.first_thread[warp]) - 1
    low, high = clocks.cta_span[warp]
    within = (columns >= low) & (columns < high)
    level = np.where(columns + first >> 5 == warp, WARP, np.where(within, CTA, CLUSTER))
    known_at = np.maximum(clocks.table[row, SEEN, columns], clocks.floors[row, SEEN, level])
    unknown = columns[known_at < times].astype(np.int64) + first
    return unknown[unknown != thread]


def _select_tensor_rule(state: State, family: Family, wrote: bool, refs: Ints, threads: Ints) -> Rule:
    if known(state, refs, threads, SEEN)[0]:
        return rules.TCGEN05_FENCE
    if known(state, refs, threads, RAN)[0]:
        return rules.TCGEN05_FENCE_RELAXED
    return TOO_EARLY[family] if wrote or family is not Family.TCGEN05 else rules.TENSOR_TOO_EARLY


def _select_unordered_rule(state: State, access: Access, ref: int, thread: int) -> Rule:
    records, refs = state.records, np.array([ref], np.int64)
    record = refs >> 6
    flags, family = int(records.flags(record)[0]), Family(int(records.family(record)[0]))
    domain, mine = int(records.domain(record)[0]), int(state.clocks.domain_of[thread >> 5])
    if state.grid_of_domain[domain] != state.grid_of_domain[mine]:
        return rules.BEFORE_PRIMARY
    if narrow_edge(state, ref, thread) is not None:
        return rules.NARROW_SCOPE
    if flags & WRITES and family in TOO_EARLY and family is not Family.THREAD:
        return TOO_EARLY[family]
    if not flags & WRITES and family in SOURCE:
        return SOURCE[family]
    if flags & STRONG and access.strong:
        return rules.MIXED_SIZE if int(records.size(record)[0]) != access.size else rules.NARROW_SCOPE
    lanes = int(records.warp(record)[0]) == thread >> 5 and domain == mine and family == access.family == Family.THREAD
    if ref & 63 == CROWD:
        columns = records.crowds[ref >> 6][0] - 1
        lanes &= bool((columns >> 5 == columns[0] >> 5).all())
    return rules.LANE_RACE if lanes else rules.RACE


def narrow_edge(state: State, ref: int, thread: int) -> NarrowEdge | None:
    """Return the edge that would order an access of a thread after an earlier one if its scopes were wide enough."""
    for edge in state.narrow.values():
        if knows(state, thread, edge.thread, edge.time) and _covers(state, edge.release.stamp, ref):
            return edge
    return None


def knows(state: State, thread: int, other: int, time: int) -> bool:
    """Tell whether a thread follows another thread's accesses up to a time."""
    if other == thread:
        return True
    clocks, threads = state.clocks, np.array([thread])
    stamp, domain = clocks.knowledge(clocks.rows(threads)[0]), int(clocks.domain_of[other >> 5])
    known_at = stamp.known if domain == stamp.domain else stamp.foreign.get(domain)
    column = int(clocks.columns_of(np.array([other]))[0])
    return known_at is not None and column < known_at.shape[1] and int(known_at[SEEN, column]) >= time


def _covers(state: State, stamp: Stamp, ref: int) -> bool:
    """Tell whether a release passes on an access."""
    records, record, lane = state.records, ref >> 6, ref & 63
    domain = int(records.domain(np.array([record]))[0])
    known_at = stamp.known if domain == stamp.domain else stamp.foreign.get(domain)
    columns, times = np.array([records.column[record] + lane]), records.time[record : record + 1]
    if lane == CROWD:
        columns, times = records.crowds[record]
    elif lane == ALL_LANES:
        columns = records.column[record] + np.flatnonzero(records.mask[record] >> np.arange(32) & 1)
    if known_at is None or int(columns.max()) >= known_at.shape[1]:
        return False
    return bool((known_at[SEEN, columns] >= times).all())
