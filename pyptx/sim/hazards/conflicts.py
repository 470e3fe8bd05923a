"""Whether an access conflicts with an earlier one, and which rule it breaks.

Knows clocks and records. The facts of the memory model are in `find_rule`, one line each.
"""

from __future__ import annotations

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.sim import rules
from pyptx.sim.base.events import Access, Clock, Family, Ints, Mask, Movement, Scope, Space
from pyptx.sim.hazards.clocks import (
    AFTER,
    CROSSED_GLOBAL,
    CROSSED_SHARED,
    CTA,
    FAR,
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
from pyptx.sim.hazards.state import NarrowEdge, Overlap, State

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


def knows_accesses(state: State, refs: Ints, threads: Ints, kind: int) -> Mask:
    """Tell, pair by pair, whether a thread knows an access of another agent."""
    clocks, records = state.clocks, state.records
    record, lane = refs >> 6, refs & 63
    time, domain = records.time[record], records.get_domains(record)
    warp = threads >> 5
    row, own_domain = clocks.find_current_rows(threads, time), clocks.domain_of[warp]
    table, floors, foreign = clocks.raw_tables
    same_cluster = domain == own_domain
    several = lane >= ALL_LANES
    column = np.where(same_cluster & ~several, records.column[record] + lane, 0)
    is_known = same_cluster & ~several & (table[row, kind, column] >= time)
    if kind < FLOORED:
        span, first = clocks.cta_span[warp], records.column[record]
        within = (first >= span[:, 0]) & (first < span[:, 1])
        level = np.where(records.get_warps(record) == warp, WARP, np.where(within, CTA, FAR))
        plain = same_cluster & (records.operation[record] == 0)
        if np.count_nonzero(lane == CROWD):
            # A crowd that a floor can cover belongs to one CTA.
            level = np.where(lane == CROWD, CTA, level)
            plain &= (lane != CROWD) | (records.key[record] == time)
        is_known |= plain & (time <= floors[row, kind, level])
    elsewhere = ~same_cluster & (time <= table[row, kind, PRIOR])
    if elsewhere.any():
        theirs, own_grid = state.grid_of_domain[domain], state.grid_of_domain[own_domain]
        earlier = theirs < own_grid
        if state.uncovered:
            first_covered, prior = np.array([(grid.first_covered, grid.prior) for grid in state.grids])[own_grid].T
            earlier &= (theirs >= first_covered) | (time <= prior)
        is_known |= elsewhere & earlier
    if np.count_nonzero(several):
        positions = np.flatnonzero((lane == ALL_LANES) & ~is_known)
        if len(positions):
            is_known[positions] = _knows_all_lanes(state, record[positions], threads[positions], kind)
        for index in np.flatnonzero((lane == CROWD) & ~is_known).tolist():
            is_known[index] = _knows_crowd(state, int(record[index]), int(threads[index]), kind)
    if foreign:
        for index in np.flatnonzero(~is_known & ~same_cluster & ~several).tolist():
            theirs = foreign.get(int(row[index]), {}).get(int(domain[index]))
            foreign_column = int(records.column[record[index]] + lane[index])
            is_known[index] = (
                theirs is not None and foreign_column < theirs.shape[1] and theirs[kind, foreign_column] >= time[index]
            )
    return is_known


def _knows_crowd(state: State, record: int, thread: int, kind: int) -> bool:
    """Tell whether a thread knows the accesses of all threads of a crowd."""
    records, clocks = state.records, state.clocks
    (columns, times), warp = records.crowds[record], thread >> 5
    domain = int(records.get_domains(np.array([record]))[0])
    if domain != clocks.domain_of[warp]:
        theirs = clocks.foreign.get(int(clocks.row_of[thread]), {}).get(domain)
        return theirs is not None and columns.max() < theirs.shape[1] and bool((theirs[kind, columns] >= times).all())
    own_column = thread - int(clocks.first_thread[warp]) + 1
    crossing = kind in (CROSSED_SHARED, CROSSED_GLOBAL)
    if not crossing or clocks.crossed_own[thread, kind - CROSSED_SHARED] >= times[columns == own_column].max(initial=0):
        times, columns = times[columns != own_column], columns[columns != own_column]
    return bool((_get_known_times(state, columns, thread, kind) >= times).all())


def _get_known_times(state: State, columns: Ints, thread: int, kind: int) -> Clock:
    """Return up to which times a thread knows the accesses of the threads of its cluster that have these columns. The
    kind has floors: the others are of tensor memory, which no crowd accesses."""
    clocks, warp = state.clocks, thread >> 5
    row, (low, high) = int(clocks.row_of[thread]), clocks.cta_span[warp]
    times: Clock = clocks.table[row, kind, columns]
    near = columns + (int(clocks.first_thread[warp]) - 1) >> 5 == warp
    level = np.where(near, WARP, np.where((columns >= low) & (columns < high), CTA, FAR))
    return np.maximum(times, clocks.floors[row, kind, level])


def _knows_all_lanes(state: State, record: Ints, threads: Ints, kind: int) -> Mask:
    """Tell whether threads know the accesses of all lanes of records, except their own."""
    records, clocks = state.records, state.clocks
    own_lane = np.where(records.tag[record] >> 7 == clocks.life_of[threads >> 5], threads & 31, 32)
    if kind in (CROSSED_SHARED, CROSSED_GLOBAL):
        own_lane[clocks.crossed_own[threads, kind - CROSSED_SHARED] < records.time[record]] = 32
    inverse: Ints | None = None
    if len(record) > 1:
        # Threads of a row have equal knowledge.
        keys = (record.astype(np.int64) << 38) + (clocks.row_of[threads].astype(np.int64) << 6) + own_lane
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        record, threads, own_lane = record[first], threads[first], own_lane[first]
    masks = records.mask[record] & ~(np.int64(1) << own_lane)
    index, lanes = np.nonzero((masks[:, None] >> np.arange(32)) & 1)
    is_known = np.ones(len(record), np.bool_)
    is_known[index[~knows_accesses(state, record[index].astype(np.int64) * 64 + lanes, threads[index], kind)]] = False
    return is_known if inverse is None else is_known[inverse.reshape(-1)]


def is_own(state: State, refs: Ints, threads: Ints) -> Mask:
    """Tell which accesses the threads made themselves, not through an asynchronous operation."""
    return state.records.tag[refs >> 6] + (refs & 63) == state.clocks.compute_tags(threads)


def is_own_copy(state: State, refs: Ints, threads: Ints, index: int = 0) -> Mask:
    """Tell which accesses are `cp.async` operations that their own threads have waited for."""
    records, record = state.records, refs >> 6
    copies = records.get_families(record) == Family.CP_ASYNC
    if not copies.any():
        return copies
    mine = (records.tag[record] & ~127) + (refs & 63) == state.clocks.compute_tags(threads)
    return copies & mine & (state.clocks.copied_own[threads, index] >= records.time[record])


def _has_crossed(state: State, refs: Ints, threads: Ints, space: Space) -> Mask:
    index = 0 if space is Space.SHARED else 1
    crossing = knows_accesses(state, refs, threads, CROSSED_SHARED + index) | is_own_copy(
        state, refs, threads, 1 + index
    )
    mine = is_own(state, refs, threads)
    return crossing | (mine & (state.clocks.crossed_own[threads, index] >= state.records.time[refs >> 6]))


def precedes(state: State, refs: Ints, threads: Ints) -> Mask:
    """Tell which accesses precede the current accesses of the threads."""
    return is_own(state, refs, threads) | knows_accesses(state, refs, threads, SEEN) | is_own_copy(state, refs, threads)


def clashes(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell, pair by pair, whether an access of a thread conflicts with an earlier one."""
    records, record = state.records, refs >> 6
    flags = records.get_flags(record)
    if access.space is Space.TENSOR:
        # Deallocation is synchronous: a barrier orders it without a tcgen05 fence.
        good = knows_accesses(state, refs, threads, SEEN if access.family is Family.THREAD else AFTER)
        good |= _is_in_order(state, access, refs, threads)
        return ~good
    if access.strong:
        suspects = flags & (READONLY | LIVE_BARRIER) != 0
        suspects |= ~_is_morally_strong(state, access, refs, threads)
        if not suspects.any():
            return suspects
        if not suspects.all():
            indices = np.flatnonzero(suspects)
            suspects[indices] = clashes(state, access, refs[indices], threads[indices])
            return suspects
    good = precedes(state, refs, threads)
    far = _is_other_cta(state, refs, threads) & (flags & WRITES != 0) & good & (records.operation[record] == 0)
    if far.any():
        wide = WIDE_SHARED if access.space is Space.SHARED else WIDE_GLOBAL
        good &= ~far | knows_accesses(state, refs, threads, wide)
    if access.async_proxy:
        generic = _is_generic(state, record) & good
        if generic.any():
            good &= ~generic | _has_crossed(state, refs, threads, access.space)
        good &= ~_is_unfenced_store(state, access, refs, threads)
    if access.readonly or (flags & READONLY).any():
        good &= ~_breaks_readonly(state, access, record, threads)
    return ~good | (flags & LIVE_BARRIER != 0)


def follows_plainly(state: State, access: Access, ref: int, thread: int) -> bool:
    """Tell quickly whether an access of a thread follows an earlier one of its cluster, as most do. If False, ask
    `clashes`."""
    records, clocks = state.records, state.clocks
    record, lane, warp = ref >> 6, ref & 63, thread >> 5
    if lane >= ALL_LANES or access.space is Space.TENSOR or access.readonly:
        return False
    if records.life_domain[records.tag[record] >> 7] != clocks.domain_of[warp]:
        return False
    flags = records.get_record_flags(record)
    clock = clocks.table[clocks.row_of[thread], :, records.column[record] + lane]
    time = records.time[record]
    if clock[SEEN] < time or flags & (LIVE_BARRIER | READONLY):
        return False
    wide_kind = WIDE_SHARED if access.space is Space.SHARED else WIDE_GLOBAL
    if flags & WRITES and not records.operation[record] and clock[wide_kind] < time:
        low, high = clocks.cta_span[warp]
        if not low <= records.column[record] < high:
            return False
    if not access.async_proxy:
        return True
    earlier = records.get_access(record)
    proxy_kind = CROSSED_SHARED if access.space is Space.SHARED else CROSSED_GLOBAL
    return earlier.family is not Family.BULK_STORE and (earlier.async_proxy or bool(clock[proxy_kind] >= time))


def all_follow_plainly(state: State, access: Access, refs: Ints, threads: Ints) -> bool:
    """Tell quickly whether accesses follow earlier asynchronous ones of their cluster, as most do. If False, ask
    `clashes`."""
    records, clocks, record, lane = state.records, state.clocks, refs >> 6, refs & 63
    if access.space is Space.TENSOR or access.readonly or int(lane.max()) >= ALL_LANES:
        return False
    if np.count_nonzero(records.operation[record]) < len(record):
        return False
    if np.count_nonzero(records.get_flags(record) & (LIVE_BARRIER | READONLY)):
        return False
    if np.count_nonzero(records.get_domains(record) != clocks.domain_of[threads >> 5]):
        return False
    clock = clocks.table[clocks.row_of[threads], SEEN, records.column[record] + lane]
    if np.count_nonzero(clock < records.time[record]):
        return False
    if not access.async_proxy:
        return True
    family = records.get_families(record)
    return bool(((family == Family.BULK_LOAD) | (family == Family.WGMMA) | (family == Family.TCGEN05)).all())


def all_follow_fences(state: State, access: Access, refs: Ints, threads: Ints) -> bool:
    """Tell quickly whether asynchronous accesses to shared memory follow plain ones of their own CTA through a proxy
    fence, as most do. If False, ask `clashes`."""
    records, clocks, record, lane = state.records, state.clocks, refs >> 6, refs & 63
    if access.space is not Space.SHARED or not access.async_proxy or int(lane.max()) >= ALL_LANES:
        return False
    number, warps = records.access[record], threads >> 5
    kinds = np.unique(number)
    odd = any(records.accesses[int(kind)].family is not Family.THREAD for kind in kinds)
    if odd or np.count_nonzero(records.operation[record]) or records.has_any_flag(kinds, LIVE_BARRIER | READONLY):
        return False
    column, span = records.column[record] + lane, clocks.cta_span[warps]
    same_cta = (records.get_domains(record) == clocks.domain_of[warps]) & (column >= span[:, 0]) & (column < span[:, 1])
    if np.count_nonzero(same_cta) < len(same_cta):
        return False
    time, row = records.time[record], clocks.row_of[threads]
    order_times, crossing_times = clocks.table[row, SEEN, column], clocks.table[row, CROSSED_SHARED, column]
    floors = clocks.floors[row]
    good = (np.maximum(order_times, floors[:, SEEN, CTA]) >= time) & (
        np.maximum(crossing_times, floors[:, CROSSED_SHARED, CTA]) >= time
    )
    good |= (column == clocks.find_columns(threads)) & (clocks.crossed_own[threads, 0] >= time)
    return np.count_nonzero(good) == len(good)


def _breaks_readonly(state: State, access: Access, record: Ints, threads: Ints) -> Mask:
    """Tell which pairs are a read-only load and a write in the same grid, in whatever order."""
    flags = state.records.get_flags(record)
    own_grid = state.grid_of_domain[state.clocks.domain_of[threads >> 5]]
    same_grid = state.grid_of_domain[state.records.get_domains(record)] == own_grid
    return same_grid & ((access.readonly & (flags & WRITES != 0)) | (access.writes & (flags & READONLY != 0)))


def _is_generic(state: State, record: Ints) -> Mask:
    family = state.records.get_families(record)
    return (family == Family.THREAD) | (family == Family.CP_ASYNC) | (family == Family.ST_ASYNC)


def _is_other_cta(state: State, refs: Ints, threads: Ints) -> Mask:
    records, warp = state.records, threads >> 5
    span = state.clocks.cta_span[warp]
    column = records.column[refs >> 6]
    same_cluster = records.get_domains(refs >> 6) == state.clocks.domain_of[warp]
    return same_cluster & ((column < span[:, 0]) | (column >= span[:, 1]))


def _is_unfenced_store(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which async reads of another CTA's bulk stores lack a proxy fence."""
    record = refs >> 6
    is_store = state.records.get_families(record) == Family.BULK_STORE
    if access.writes or access.space is not Space.GLOBAL or not is_store.any():
        return np.zeros(len(refs), np.bool_)
    warps = state.records.get_warps(record)
    far = state.records.get_domains(record) != state.clocks.domain_of[threads >> 5]
    far |= state.clocks.cta_span[warps, 0] != state.clocks.cta_span[threads >> 5, 0]
    far &= (
        state.grid_of_domain[state.records.get_domains(record)]
        == state.grid_of_domain[state.clocks.domain_of[threads >> 5]]
    )
    return is_store & far & ~knows_accesses(state, refs, threads, CROSSED_GLOBAL)


def _is_morally_strong(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which pairs are morally strong, so that they never race: same bytes, and scopes that include each other's
    thread."""
    records, record = state.records, refs >> 6
    strong = (records.get_flags(record) & STRONG != 0) & (records.get_sizes(record) == access.size)
    warp = threads >> 5
    same_cluster = records.get_domains(record) == state.clocks.domain_of[warp]
    least_scope = np.where(_is_other_cta(state, refs, threads), Scope.CLUSTER, Scope.CTA)
    least_scope = np.where(same_cluster, least_scope, Scope.GPU)
    return strong & (records.get_scopes(record) >= least_scope) & (int(access.scope) >= least_scope)


def _is_in_order(state: State, access: Access, refs: Ints, threads: Ints) -> Mask:
    """Tell which tensor-memory operations the hardware keeps in order, as those of one thread's pipeline."""
    records, record = state.records, refs >> 6
    same_warp = (records.get_domains(record) == state.clocks.domain_of[threads >> 5]) & (
        records.get_warps(record) == threads >> 5
    )
    if access.family is Family.TCGEN05:
        mine = records.mask[record] == (np.int64(1) << (threads & 31))
        pipeline = same_warp & mine & (records.get_families(record) == Family.TCGEN05)
        if access.movement is Movement.SHIFT:
            # Copies are in order with products, not with shifts (Implicitly pipelined tcgen05 instructions).
            movements = [records.get_access(number).movement for number in record.tolist()]
            pipeline &= np.array([movement is not Movement.COPY for movement in movements])
        if pipeline.all():
            return pipeline
        moves = (records.get_families(record) == Family.TMEM_LD) | (records.get_families(record) == Family.TMEM_ST)
        return pipeline | (same_warp & moves & knows_accesses(state, refs, threads, SEEN))
    family = records.get_families(record)
    moves = (family == Family.TMEM_LD) | (family == Family.TMEM_ST)
    alike = moves & (family == access.family)
    # Operations that the warp itself waited for need no fence.
    return same_warp & (alike | (moves & knows_accesses(state, refs, threads, SEEN)))


def find_rule(state: State, access: Access, ref: int, thread: int) -> Rule:
    """Return the rule that a thread's access breaks by clashing with an earlier access."""
    records = state.records
    refs, threads = np.array([ref], np.int64), np.array([thread], np.int64)
    flags, family = int(records.get_flags(refs >> 6)[0]), Family(int(records.get_families(refs >> 6)[0]))
    if flags & LIVE_BARRIER:
        return rules.BARRIER_BYTES
    is_write = bool(flags & WRITES)
    if access.space is Space.TENSOR:
        return _select_tensor_rule(state, family, is_write, refs, threads)
    if _breaks_readonly(state, access, refs >> 6, threads)[0]:
        return rules.READONLY
    if not precedes(state, refs, threads)[0]:
        return _select_unordered_rule(state, access, ref, thread)
    if access.async_proxy:
        if family is Family.BULK_STORE:
            return rules.STORE_THEN_ASYNC_READ
        if not _has_crossed(state, refs, threads, access.space)[0]:
            if not is_write:
                return rules.READ_THEN_ASYNC_WRITE
            if access.writes:
                return rules.WRITE_THEN_ASYNC_WRITE
            return rules.CP_ASYNC_THEN_ASYNC_READ if family is Family.CP_ASYNC else rules.WRITE_THEN_ASYNC_READ
    return rules.NARROW_SCOPE


def find_rules(state: State, access: Access, ref: int, thread: int) -> list[Rule]:
    """Return the rules that a thread's access breaks by clashing with an earlier access: two if a crowd has threads
    both inside and outside the thread's warp."""
    rule = find_rule(state, access, ref, thread)
    if rule not in (rules.RACE, rules.LANE_RACE) or ref & 63 != CROWD or access.family is not Family.THREAD:
        return [rule]
    unknown = _list_unknown_members(state, ref >> 6, thread)
    near = unknown >> 5 == thread >> 5
    return [candidate for candidate, lanes in ((rules.RACE, ~near), (rules.LANE_RACE, near)) if lanes.any()] or [rule]


def _list_unknown_members(state: State, record: int, thread: int) -> Ints:
    """Return the threads of a crowd in a thread's cluster whose accesses the thread does not know."""
    records, clocks, warp = state.records, state.clocks, thread >> 5
    if int(records.get_domains(np.array([record]))[0]) != clocks.domain_of[warp]:
        return np.zeros(0, np.int64)
    columns, times = records.crowds[record]
    is_unknown = _get_known_times(state, columns, thread, SEEN) < times
    unknown = columns[is_unknown].astype(np.int64) + int(clocks.first_thread[warp]) - 1
    return unknown[unknown != thread]


def _select_tensor_rule(state: State, family: Family, is_write: bool, refs: Ints, threads: Ints) -> Rule:
    if knows_accesses(state, refs, threads, SEEN)[0]:
        return rules.TCGEN05_FENCE
    if knows_accesses(state, refs, threads, RAN)[0]:
        return rules.TCGEN05_FENCE_RELAXED
    return TOO_EARLY[family] if is_write or family is not Family.TCGEN05 else rules.TENSOR_TOO_EARLY


def _select_unordered_rule(state: State, access: Access, ref: int, thread: int) -> Rule:
    records, refs = state.records, np.array([ref], np.int64)
    record = refs >> 6
    flags, family = int(records.get_flags(record)[0]), Family(int(records.get_families(record)[0]))
    domain, mine = int(records.get_domains(record)[0]), int(state.clocks.domain_of[thread >> 5])
    grids = [state.domains[number].grid for number in (domain, mine)]
    if grids[0] is not grids[1] and not any(grid.overlap is Overlap.INDEPENDENT for grid in grids):
        return rules.BEFORE_PRIMARY
    if find_narrow_edge(state, ref, thread) is not None:
        return rules.NARROW_SCOPE
    if flags & WRITES and family in TOO_EARLY and family is not Family.THREAD:
        return TOO_EARLY[family]
    if not flags & WRITES and family in SOURCE:
        return SOURCE[family]
    if flags & STRONG and access.strong:
        return rules.MIXED_SIZE if int(records.get_sizes(record)[0]) != access.size else rules.NARROW_SCOPE
    lanes = (
        int(records.get_warps(record)[0]) == thread >> 5 and domain == mine and family == access.family == Family.THREAD
    )
    if ref & 63 == CROWD:
        columns = records.crowds[ref >> 6][0] - 1
        lanes &= bool((columns >> 5 == columns[0] >> 5).all())
    return rules.LANE_RACE if lanes else rules.RACE


def find_narrow_edge(state: State, ref: int, thread: int) -> NarrowEdge | None:
    """Return the edge that would order a thread's access after an earlier one with wide enough scopes."""
    if not state.narrow:
        return None
    stamp = _make_stamp(state, thread)
    for edge in state.narrow.values():
        is_known = edge.thread == thread or _includes(state, stamp, edge.thread, edge.time)
        if is_known and _covers(state, edge.release.stamp, ref):
            return edge
    return None


def knows_thread(state: State, thread: int, peer: int, time: int) -> bool:
    """Tell whether a thread knows another thread's accesses up to a time."""
    return peer == thread or _includes(state, _make_stamp(state, thread), peer, time)


def _make_stamp(state: State, thread: int) -> Stamp:
    return state.clocks.make_stamp(state.clocks.find_rows(np.array([thread]))[0])


def _includes(state: State, stamp: Stamp, peer: int, time: int) -> bool:
    """Tell whether a stamp includes a thread's accesses up to a time."""
    warp = peer >> 5
    domain = int(state.clocks.domain_of[warp])
    clock = stamp.clock if domain == stamp.domain else stamp.foreign.get(domain)
    column = peer - int(state.clocks.first_thread[warp]) + 1
    return clock is not None and column < clock.shape[1] and int(clock[SEEN, column]) >= time


def _covers(state: State, stamp: Stamp, ref: int) -> bool:
    """Tell whether a release includes an access."""
    records, record, lane = state.records, ref >> 6, ref & 63
    domain = int(records.get_domains(np.array([record]))[0])
    clock = stamp.clock if domain == stamp.domain else stamp.foreign.get(domain)
    columns, times = np.array([records.column[record] + lane]), records.time[record : record + 1]
    if lane == CROWD:
        columns, times = records.crowds[record]
    elif lane == ALL_LANES:
        columns = records.column[record] + np.flatnonzero(records.mask[record] >> np.arange(32) & 1)
    if clock is None or int(columns.max()) >= clock.shape[1]:
        return False
    return bool((clock[SEEN, columns] >= times).all())
