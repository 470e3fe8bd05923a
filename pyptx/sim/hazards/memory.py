"""Accesses to memory: compare each with the last accesses to its bytes, then record it there.

Handles lanes with one address each; `tiles` does the same for runs of bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pyptx.diagnostics import Rule, format_count
from pyptx.sim import rules
from pyptx.sim.base.events import Access, Family, Ints, Mask, Place, Scope, Space
from pyptx.sim.hazards.clocks import CTA, NEVER, SEEN
from pyptx.sim.hazards.conflicts import all_follow_plainly, clashes, find_narrow_edge, find_rules
from pyptx.sim.hazards.footprints import Footprint, Footprints
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.observed import are_observed
from pyptx.sim.hazards.pending import Pending
from pyptx.sim.hazards.readers import Readers
from pyptx.sim.hazards.shadow import Plane, Refs, Shadow
from pyptx.sim.hazards.state import Grid, State

_MOST_LOGGED, _MOST_ENTRIES = 1 << 23, 1 << 16
"""The limits of a log of atomics, in lanes and entries; beyond them it is resolved."""
_WARPS = 64
"""Beyond this many lanes, compare warps first."""
Benign = bool | Callable[[], bool]
"""Whether lanes that store to the same bytes store the same values, or a function that returns it."""
_WAITS = {rules.TENSOR_LOAD_PENDING.code: "tcgen05.wait::ld", rules.TENSOR_STORE_PENDING.code: "tcgen05.wait::st"}
_UNREAD = (
    "nothing has read these bytes of the earlier copy: either their reader has not run yet, or it reads other bytes "
    "because of its address, or the offset, strides or swizzle of its matrix descriptor"
)
_REPEATED = "another lane of this warp executed the same copy: if one copy is meant, let one lane execute it"
"""Why a copy clashes with an earlier one: if its bytes had been read, it would follow their readers."""
_NEVER_PRODUCED = (
    "let `tcgen05.mma`, `tcgen05.cp` or `tcgen05.st` write these lanes and columns first: compare the address and the "
    "columns of the load with M and N of the product, and wait for it"
)
Unchanged = Callable[[Ints], Mask]
"""A function that tells which threads store the values that their bytes already have."""


class Memory:
    """The checks of accesses by lanes, over the shadow memory of all spaces."""

    def __init__(self, state: State, explain_bytes: Callable[[int, int], tuple[str, ...]]) -> None:
        """`explain_bytes` returns a note on the mbarrier with a clock column in the cluster of a thread."""
        self.state, self._explain_bytes = state, explain_bytes
        self.readers = Readers(state)
        self._unchanged: Unchanged | None = None
        self._footprints = Footprints()
        self._pending: dict[int, Pending] = {}
        self._too_early: dict[tuple[int, int], set[Place]] = {}
        """Places of products that read copies too early, by the grid and slot of their CTA."""

    def access(
        self, access: Access, group: Group, addresses: Ints, *, benign: Benign = False, operation: int = 0,
        unchanged: Unchanged | None = None,
    ) -> None:  # fmt: skip
        """Check the accesses of one instruction, one per thread. `operation`: the asynchronous operation that makes
        them later; until it finishes, `State.unfinished` holds their records."""
        self._unchanged = unchanged
        grid, footprint = self.state.find_grid(group.first), None
        if access.space is Space.SHARED and not operation and access.size <= 16 and grid.cluster == 1:
            footprint = self._footprints.find(group, grid.shared, addresses, access.size)
            if footprint is not None and not access.strong:
                odd = footprint.plane.odd and not self._find_pending(grid).clear(footprint.plane)
                if not odd and self._record_if_alone(access, footprint):
                    return
        for part, shadow, base in self.split_by_buffer(access.space, grid, addresses):
            subgroup = group if part is None else group[part]
            part_addresses = addresses if part is None else addresses[part]
            size = access.size
            if size > 16:
                part_addresses = (part_addresses[:, None] + np.arange(0, size, 16)).ravel()
                subgroup = Group(np.repeat(subgroup.threads, size // 16))
                size = 16
            if not shadow.written:
                if not access.writes:
                    self._refresh(subgroup)
                    refs = (
                        self._make_unfinished(access, subgroup, operation)
                        if operation
                        else self.make_refs(access, subgroup)
                    )
                    shadow.log_readers(part_addresses - base, size, refs)
                    continue
                self.readers.replay(shadow)
            for plane, cells, lanes in shadow.find_cells(part_addresses - base if base else part_addresses, size):
                lane_group = (
                    subgroup if lanes is None else footprint.group if footprint is not None else subgroup[lanes]
                )
                if (
                    access.strong
                    and access.space is Space.SHARED
                    and self._log_strong(access, lane_group, plane, cells, operation)
                ):
                    continue
                self._access_cells(access, lane_group, shadow, plane, cells, benign, operation, footprint)
                if operation:
                    plane.odd = True
                elif footprint is None:
                    plane.late = self.state.clocks.now
                else:
                    footprint.note(access.writes, self.state.clocks.now)

    def _find_pending(self, grid: Grid) -> Pending:
        """Return the pending operations of a grid."""
        pending = self._pending.get(grid.number)
        if pending is None:
            pending = self._pending[grid.number] = Pending(self.state, grid)
        return pending

    def _record_if_alone(self, access: Access, footprint: Footprint) -> bool:
        """Record an access if all others to its bytes precede it. Return False if that is unclear."""
        writes, plane, group = access.writes, footprint.plane, footprint.group
        self._refresh(group)
        if (writes and not footprint.unique) or not footprint.is_alone(group.floor):
            return False
        if not writes and not footprint.written:
            if np.count_nonzero(plane.write[footprint.ascending]) < len(footprint.cells):
                return False
            footprint.written = True
        if writes:
            plane.write[footprint.ascending] = self.make_refs(access, group)[footprint.order]
            plane.clear_reads(footprint.ascending)
        elif footprint.unique:
            plane.reads[0][footprint.ascending] = self.make_refs(access, group)[footprint.order]
        else:
            self.readers.replace(access, group, footprint, self.make_refs)
        footprint.note(writes, self.state.clocks.now)
        return True

    def _log_strong(self, access: Access, group: Group, plane: Plane, cells: Ints, operation: int) -> bool:
        """Log strong writes that follow all accesses outside the log. Return False if that is unclear."""
        self._refresh(group)
        log, latest = plane.log, plane.find_latest()
        if not access.writes or operation or plane.odd or latest > group.floor or log.size not in (0, access.size):
            return False
        grid = self.state.find_grid(group.first)
        if grid.cluster > 1:
            return False
        if log.entries and log.latest <= group.floor and self._lowest_floor(grid) >= log.latest:
            log.clear()
        plane.write[cells] = self.make_refs(access, group)
        plane.strong, plane.settle = True, partial(self.readers.settle, plane)
        log.add(cells, group.threads, self.state.records.number_access(access), access.size, self.state.clocks.now)
        if log.lanes > _MOST_LOGGED or len(log.entries) > _MOST_ENTRIES:
            plane.resolve_log()
        return True

    def _lowest_floor(self, grid: Grid) -> int:
        """Return the time up to which all CTAs of a grid have synchronized internally."""
        clocks, threads = self.state.clocks, slice(grid.first_thread, grid.first_thread + grid.slots * grid.stride)
        rows = clocks.row_of[threads][self.state.live[threads]]
        return int(clocks.floors[rows, SEEN, CTA].min(initial=clocks.now))

    def split_by_buffer(self, space: Space, grid: Grid, addresses: Ints) -> list[tuple[Ints | None, Shadow, int]]:
        """Split addresses by shadow; omit global addresses outside all buffers."""
        first = self.state.find_shadow(space, grid, int(addresses[0]))
        if space is not Space.GLOBAL:
            return [(None, *first)] if first else []
        if first and int(addresses.min()) >= first[1] and int(addresses.max()) < first[1] + first[0].size:
            return [(None, *first)]
        buffers: dict[int, tuple[Shadow, int, list[int]]] = {}
        for index, address in enumerate(addresses.tolist()):
            hit = self.state.find_shadow(space, grid, address)
            if hit:
                buffers.setdefault(hit[1], (*hit, []))[2].append(index)
        return [(np.array(indices, np.int64), shadow, base) for shadow, base, indices in buffers.values()]

    def _access_cells(
        self, access: Access, group: Group, shadow: Shadow, plane: Plane, cells: Ints, benign: Benign, operation: int,
        footprint: Footprint | None,
    ) -> None:  # fmt: skip
        self._refresh(group)
        if plane.log.latest > group.floor:
            plane.resolve_log()
        last = plane.write[cells]
        # A shared-memory atomic may be preceded by writes that are only logged, so its read is not checked.
        reads = access.reads and not (access.writes and access.space is Space.SHARED)
        if reads and shadow.fresh and np.count_nonzero(last) < len(last):
            self.report_uninitialized(access, group.threads[last == 0], shadow, plane, cells[last == 0])
        if access.writes:
            before = plane.reads[0][cells]
            has_readers = np.count_nonzero(before) > 0
            self._compare(access, group, self.drop_read_writes(last, before) if has_readers else last, cells, plane)
            if has_readers or plane.crowded:
                self._compare_readers(access, group, plane, cells, before)
            refs = self._make_unfinished(access, group, operation) if operation else self.make_refs(access, group)
            plane.write[cells] = refs
            if access.strong:
                plane.strong = True
                self._check_scope(access, group, cells, plane)
            else:
                if has_readers or plane.crowded:
                    plane.clear_reads(cells)
                alone = len(cells) == 1 if footprint is None else footprint.unique
                may_overlap = benign is not True and not operation and not alone
                if may_overlap and np.count_nonzero(plane.write[cells] != refs) and not (callable(benign) and benign()):
                    self._report_same_store(access, group, cells)
                return
        else:
            self._compare(access, group, last, cells, plane)
            if plane.strong:
                self._compare_readers(access, group, plane, cells, plane.reads[0][cells])
            refs = self._make_unfinished(access, group, operation) if operation else self.make_refs(access, group)
        self.readers.note(access, group, plane, cells, refs, footprint)

    def _refresh(self, group: Group) -> None:
        """Update the cached lives, columns, tags and floor of a group."""
        clocks = self.state.clocks
        if group.epoch != clocks.epoch:
            warps = group.warps
            group.epoch = clocks.epoch
            group.lives = clocks.life_of[warps]
            group.columns = (warps * 32 - clocks.first_thread[warps] + 1).astype(np.int32)
            group.tags = clocks.compute_tags(group.threads)
            group.refs.clear()
        if group.floor_at != (clocks.now, clocks.version):
            floors = clocks.get_floors(group.threads if len(group.warps) > 1 else group.threads[:1])
            group.floor = int(np.minimum.reduce(floors[:, SEEN, CTA]))
            group.floor_at = (clocks.now, clocks.version)

    def drop_read_writes(self, last: Refs, readers: Refs) -> Refs:
        """Drop asynchronous writes that have been read since: an access that follows the readers follows those writes.

        The clocks do not show this, as a commit releases the operations that it tracks, not what its issuer knows.
        """
        operations = self.state.records.operation[last >> 6]
        if not np.count_nonzero(operations):
            return last
        return np.where((operations != 0) & (readers != 0), 0, last).astype(np.int32)

    def make_refs(self, access: Access, group: Group) -> Refs:
        """Return references to accesses that a group makes now."""
        state = self.state
        number, now = state.records.number_access(access), state.clocks.now
        entry = group.refs.get(number)
        if entry is not None and entry[0] == now:
            return entry[1]
        has_floor = state.find_grid(group.first).cluster == 1
        numbers = state.records.add_warps(number, group.lives, group.columns, group.masks, now, has_floor)
        refs = group.offsets + np.int32(int(numbers[0]) * 64)
        group.refs[number] = (now, refs)
        return refs

    def _make_unfinished(self, access: Access, group: Group, operation: int) -> Refs:
        """Return references to accesses of `cp.async` or `st.async`, which no thread knows until they finish."""
        state = self.state
        columns = state.find_operation_columns(operation, group.warps)
        numbers = state.records.add_unfinished(access, group.lives, columns, group.masks, operation)
        state.unfinished.setdefault(operation, []).extend(numbers.tolist())
        lanes = group.lanes if access.family is Family.CP_ASYNC else 0
        return (numbers[group.warp_index] * 64 + lanes).astype(np.int32)

    def _match_strong(self, access: Access) -> Mask | None:
        """Tell, by access number, which accesses never race with this one; None if that depends on the threads."""
        grid_wide = access.strong and access.scope >= Scope.GPU
        return self.state.records.match_strong(access) if grid_wide else None

    def _compare(self, access: Access, group: Group, last: Refs, cells: Ints, plane: Plane) -> None:
        """Compare lanes with the earlier accesses to their cells, and report conflicts."""
        records = self.state.records
        compatible = self._match_strong(access)
        if compatible is not None:
            last = np.where(compatible[records.access[last >> 6]], 0, last).astype(np.int32)
        if len(last) > _WARPS and self._follow_by_warp(access, group, last):
            return
        record = last >> 6
        if access.space is Space.SHARED:
            key = records.key[record]
            if int(np.maximum.reduce(key)) <= group.floor:
                return
            suspects = key > group.floor
        else:
            if not np.count_nonzero(last):
                return
            suspects = last != 0
        if not access.readonly:
            suspects &= records.tag[record] + (last & 63) != group.tags
        if np.count_nonzero(suspects):
            self._compare_some(access, group.threads, last, cells, plane, suspects)

    def _follow_by_warp(self, access: Access, group: Group, last: Refs) -> bool:
        """Tell quickly whether the lanes follow the earlier accesses, where each warp has only one. False decides
        nothing."""
        first, final = group.ends
        warp_refs = last[first]
        if self.state.clocks.lanes_differ or np.count_nonzero(warp_refs != last[final]):
            return False
        if np.count_nonzero(warp_refs[group.warp_index] != last):
            return False
        records = self.state.records
        late = warp_refs != 0 if access.space is not Space.SHARED else records.key[warp_refs >> 6] > group.floor
        if not np.count_nonzero(late):
            return True
        return all_follow_plainly(self.state, access, warp_refs[late].astype(np.int64), group.threads[first[late]])

    def _compare_some(
        self, access: Access, threads: Ints, last: Refs, cells: Ints, plane: Plane, suspects: Mask
    ) -> None:
        indices = np.flatnonzero(suspects)
        refs, issuers = last[indices].astype(np.int64), threads[indices]
        if all_follow_plainly(self.state, access, refs, issuers):
            return
        bad = clashes(self.state, access, refs, issuers)
        if plane.strong and bad.any() and not access.async_proxy:
            bad[bad] = ~are_observed(self.state, self.readers, plane, cells[indices][bad], refs[bad], issuers[bad])
        if access.writes and self._unchanged is not None and bad.any():
            # If warps repeat a store of one instruction with equal values, it does not matter which is last.
            again = bad & (self.state.records.access[refs >> 6] == self.state.records.number_access(access))
            if again.any():
                bad[again] = ~self._unchanged(issuers[again])
        if bad.any():
            self.report(access, refs[bad], issuers[bad], cells[indices][bad], plane)

    def _compare_readers(self, access: Access, group: Group, plane: Plane, cells: Ints, first: Refs) -> None:
        """Compare with the readers of cells; `first` are those in the first slot. Strong writes are among them, and a
        read checks only these."""
        records = self.state.records
        for slot, reads in enumerate(plane.reads):
            refs = reads[cells] if slot else first
            if not access.writes:
                refs = np.where(records.is_write(refs), refs, 0).astype(np.int32)
            if np.count_nonzero(refs):
                self._compare(access, group, refs, cells, plane)
        indices, spill_refs = self.readers.find_spilled(plane, cells, self._match_strong(access))
        if not access.writes:
            is_write = records.is_write(spill_refs)
            indices, spill_refs = indices[is_write], spill_refs[is_write]
        if len(indices):
            subgroup = group[indices]
            self._refresh(subgroup)
            self._compare(access, subgroup, spill_refs, cells[indices], plane)
        for indices, refs in self.readers.list_sets(plane, cells):
            subgroup = group[indices]
            self._refresh(subgroup)
            for ref in refs:
                member_refs = np.full(len(indices), ref, np.int32)
                if access.writes or records.is_write(member_refs[:1])[0]:
                    self._compare(access, subgroup, member_refs, cells[indices], plane)

    # Findings

    def report(self, access: Access, refs: Ints, threads: Ints, cells: Ints, plane: Plane) -> None:
        """Report conflicts: per earlier record, one finding for lanes of its warp and one for other lanes."""
        reports: set[tuple[int, bool]] = set()
        near = self.state.records.get_warps(refs >> 6) == threads >> 5
        for ref, thread, cell, close in zip(
            refs.tolist(), threads.tolist(), cells.tolist(), near.tolist(), strict=True
        ):
            record = ref >> 6
            if (record, close) in reports:
                continue
            reports.add((record, close))
            earlier = self.state.records.get_access(record)
            location = self._locate(access, plane, cell, thread)
            engine = self.state.describe_access(ref).engine
            by = f" by {engine}" if engine else ""
            detail = f"{access.verb} {location} after an earlier {earlier.verb.removesuffix('s')}{by}"
            count = int(((refs >> 6 == record) & (near == close)).sum())
            for rule in find_rules(self.state, access, ref, thread):
                notes = self._explain_scopes(access, ref, thread) if rule is rules.NARROW_SCOPE else ()
                if rule is rules.LOAD_TOO_EARLY:
                    notes = self._explain_load(access, ref, thread)
                if rule is rules.LOAD_TOO_EARLY and access.family in (Family.WGMMA, Family.TCGEN05):
                    grid = self.state.find_grid(thread)
                    self._too_early.setdefault((grid.number, grid.find_slot(thread)), set()).add(access.place)
                wait_note, help = self._explain_wait(rule, record)
                self.state.report(
                    rule, access.place, detail + wait_note, thread=thread, ref=ref, where=location, count=count,
                    notes=notes, help=help,
                )  # fmt: skip

    def _explain_load(self, access: Access, ref: int, thread: int) -> tuple[str, ...]:
        """Return notes on an access that does not wait for an earlier bulk load."""
        records, record = self.state.records, ref >> 6
        earlier, notes = records.get_access(record), self._explain_bytes(thread, int(records.column[record]))
        if not (earlier.writes and earlier.family is access.family is Family.BULK_LOAD):
            return notes
        same_warp = int(records.get_warps(np.array([record]))[0]) == thread >> 5
        is_repeated = same_warp and earlier.place == access.place and ref & 63 != thread & 31
        return (_REPEATED if is_repeated else _UNREAD, *notes)

    def explain_unread(self, grid: Grid, slot: int) -> None:
        """Note on findings of products that read a copy too early which copied bytes of the ending CTA were never
        read."""
        places = self._too_early.pop((grid.number, slot), None)
        if places is None:
            return
        notes = tuple(
            f"{size} bytes that {place} copied to {location} were never read: check the addresses in the descriptor"
            for place, size, location in self._list_unread(grid, slot)
        )
        for finding in self.state.ledger:
            if finding.rule is rules.LOAD_TOO_EARLY and finding.place in places and notes:
                finding.notes = tuple(dict.fromkeys((*finding.notes, *notes)))

    def _list_unread(self, grid: Grid, slot: int) -> list[tuple[Place, int, str]]:
        """Return the bulk copies with unread bytes in a CTA's shared memory: place, number of bytes, first location."""
        records, low = self.state.records, grid.find_shared_base(slot)
        spans: dict[Place, list[tuple[int, int]]] = {}
        for level, plane in grid.shared.planes:
            first, last = (address // plane.unit for address in (low, low + grid.shared_stride))
            cells = np.arange(first, last)
            last_write = plane.write[cells]
            unread = (last_write != 0) & (plane.reads[0][cells] == 0) & (grid.shared.level[cells >> level] == level)
            unread &= records.get_families(last_write >> 6) == Family.BULK_LOAD
            for cell, ref in zip(cells[unread].tolist(), last_write[unread].tolist(), strict=True):
                spans.setdefault(records.get_access(ref >> 6).place, []).append((cell * plane.unit, plane.unit))
        return [(place, sum(size for _, size in runs), grid.names(min(runs)[0] - low)) for place, runs in spans.items()]

    def _explain_wait(self, rule: Rule, record: int) -> tuple[str, str]:
        """Return a message and a remedy if a warp has waited for its load or store of tensor memory, but no barrier
        follows."""
        wait = _WAITS.get(rule.code)
        if wait is None or int(self.state.records.time[record]) == NEVER:
            return "", ""
        return (
            f"; that warp has executed `{wait}`, but no barrier orders it before this access",
            f"put a barrier between `{wait}` of that warp and this access: `bar.sync`, or arrive and wait on an "
            "mbarrier",
        )

    def _explain_scopes(self, access: Access, ref: int, thread: int) -> tuple[str, ...]:
        """Return notes that name the scopes that are too narrow to order an access after an earlier one."""
        state, edge = self.state, find_narrow_edge(self.state, ref, thread)
        if edge is not None:
            releases, acquires = state.describe_thread(edge.release.thread), state.describe_thread(edge.thread)
            return (
                f"a release of scope {edge.release.scope} by {releases} was acquired with scope {edge.scope} by "
                f"{acquires}: the narrower scope does not include both threads",
            )
        earlier = state.records.get_access(ref >> 6)
        if access.strong and earlier.strong:
            return (f"their scopes, {access.scope} and {earlier.scope}, do not both include both threads",)
        grid, warp = state.find_grid(thread), int(state.records.get_warps(np.array([ref >> 6]))[0])
        writer, reader = grid.find_slot(warp * 32), grid.find_slot(thread)
        narrow = [(place, scope) for (place, slot), scope in state.narrow_arrives.items() if slot == writer]
        narrow += [(place, scope) for (place, slot), scope in state.narrow_waits.items() if slot == reader]
        return tuple(f"{place} has scope {scope}, which does not include the other CTA" for place, scope in narrow)

    def _locate(self, access: Access, plane: Plane, cell: int, thread: int) -> str:
        size = max(access.size, plane.unit)
        return self.state.describe_bytes(
            access.space, self.state.find_grid(thread), plane.base + cell * plane.unit, size
        )

    def report_uninitialized(self, access: Access, threads: Ints, shadow: Shadow, plane: Plane, cells: Ints) -> None:
        """Report cells that the run has not written, unless they had values before. `threads` has one for each cell, or
        one for all."""
        empty = shadow.select_empty(plane, cells)
        if not len(empty):
            return
        threads, cells = threads[empty] if len(threads) > 1 else threads, cells[empty]
        rule = rules.UNINITIALISED[access.space]
        thread = int(threads[0])
        location = self._locate(access, plane, int(cells[0]), thread)
        detail = f"{access.verb} {location}, which was never written"
        help = _NEVER_PRODUCED if access.family is Family.TMEM_LD else ""
        self.state.report(rule, access.place, detail, thread=thread, where=location, count=len(threads), help=help)

    def _check_scope(self, access: Access, group: Group, cells: Ints, plane: Plane) -> None:
        """Report threads that update the same bytes by one instruction whose scope does not include all of them."""
        if access.scope >= Scope.GPU or len(cells) == 1:
            return
        grid, clocks = self.state.find_grid(group.first), self.state.clocks
        if access.space is Space.SHARED and grid.cluster == 1:
            return
        owners = (group.threads - grid.first_thread) // grid.stride
        if access.scope is Scope.CLUSTER:
            owners = clocks.domain_of[group.threads >> 5].astype(np.int64)
        if np.count_nonzero(owners != owners[0]) == 0:
            return
        order = np.lexsort((owners, cells))
        shared = np.flatnonzero((cells[order][1:] == cells[order][:-1]) & (owners[order][1:] != owners[order][:-1]))
        if not len(shared):
            return
        index, before = int(order[shared[0] + 1]), int(order[shared[0]])
        thread, location = (
            int(group.threads[index]),
            self._locate(access, plane, int(cells[index]), int(group.threads[index])),
        )
        peer = self.state.describe_thread(int(group.threads[before]))
        detail = f"{access.verb} {location}, and so does {peer}: scope {access.scope} does not include both threads"
        self.state.report(
            rules.NARROW_SCOPE, access.place, detail, thread=thread, where=location, count=len(shared),
            other=access.place,
        )  # fmt: skip

    def _report_same_store(self, access: Access, group: Group, cells: Ints) -> None:
        """Report lanes of one store that write different values to the same bytes."""
        _, first, counts = np.unique(cells, return_index=True, return_counts=True)
        users = np.unique(np.stack([cells, group.warp_index]), axis=1)[0]
        has_warps = np.unique(users, return_counts=True)[1] > 1
        for rule, has_rule in ((rules.RACE, has_warps), (rules.SAME_STORE, (counts > 1) & ~has_warps)):
            several = int(has_rule.sum())
            if several:
                thread = int(group.threads[first[has_rule][0]])
                verb = "is" if several == 1 else "are each"
                detail = f"{format_count('location', several)} {verb} written by several lanes of one store"
                self.state.report(rule, access.place, detail, thread=thread, count=int(counts[has_rule].sum()))
