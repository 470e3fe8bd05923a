"""`wgmma`: fences, groups, and the registers and shared-memory operands in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Access, Bytes, Family, Ints, Place, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.rows import Rows, get_row_bytes
from pyptx.sim.hazards.state import State
from pyptx.sim.hazards.tiles import Tiles
from pyptx.sim.hazards.warpgroups import WHOLE, Book, Books, Part, Product, Ranks, Registers


@dataclass(slots=True)
class Together:
    """Warpgroups that issue together: their books, and the data of their records."""

    groups: Sequence[Group]
    bases: list[int]
    ranks: list[Ranks]
    parts: list[Part]
    version: int
    lives: Ints
    columns: Ints
    issuers: Ints
    odd: list[Group]
    """Groups that are not whole warpgroups."""
    warps: Ints | None
    """All their warps, if all groups are whole warpgroups."""


class Wgmma:
    """The products of all warpgroups. Registers are numbers that the machine chooses."""

    def __init__(self, state: State, tiles: Tiles) -> None:
        self.state, self.tiles = state, tiles
        self._bases: dict[int, int] = {}
        self._books = Books()
        self._accesses: dict[tuple[Place, int], Access] = {}
        self._together: dict[int, Together] = {}
        self._cached_parts: dict[tuple[int, bool], tuple[Group, int, list[Part]]] = {}

    def forget(self, warps: Iterable[int]) -> None:
        """Forget the warps of an ended CTA."""
        self._together.clear()
        self._cached_parts.clear()
        self._books.forget(warps)

    def _find_base(self, warp: int) -> int:
        """Return the first warp of a warp's warpgroup."""
        base = self._bases.get(warp)
        if base is None:
            grid = self.state.find_grid(warp * 32)
            start = (grid.first_thread + grid.find_slot(warp * 32) * grid.stride) >> 5
            base = self._bases[warp] = start + (warp - start) // 4 * 4
        return base

    def _find_parts(self, group: Group, create: bool) -> list[Part]:
        """Return the books of the warps of a group."""
        key = id(group), create
        entry = self._cached_parts.get(key)
        if entry is None or entry[0] is not group or entry[1] != self._books.version:
            ranks: dict[int, Ranks] = {}
            for warp in group.warps.tolist():
                base = self._find_base(warp)
                ranks[base] = (*ranks.get(base, ()), warp - base)
            parts = self._books.find_parts([*ranks], [*ranks.values()], create)
            entry = self._cached_parts[key] = group, self._books.version, parts
        return entry[2]

    def fence(self, group: Group) -> None:
        """Execute `wgmma.fence.sync.aligned`."""
        parts = self._find_parts(group, True)
        for part in parts:
            for warp in (part.book.warps[rank] for rank in part.ranks):
                warp.has_begun = warp.has_fence = True
                warp.accesses.clear()
            part.book.shapes.clear()
            part.book.latest = frozenset(), ""
        if len(parts) > 1:
            self._books.join(parts)

    def issue(
        self,
        group: Group,
        place: Place,
        operands: list[Bytes],
        accumulators: Registers,
        register_a: Registers = frozenset(),
        shape: str = "",
    ) -> None:
        """Issue `wgmma.mma_async` by one warpgroup; `operands` are the bytes that it reads from shared memory."""
        warpgroups = self._assemble([group])

        def make_records(operation: Ints) -> Ints:
            numbers = [
                self._record(warpgroups, self._make_access(place, operand.length), operation) for operand in operands
            ]
            issuers = group.warps * 32
            for operand, record in zip(operands, numbers, strict=True):
                access = self._make_access(place, operand.length)
                self.tiles.run(access, issuers, operand, int(record[0]))
            return np.array(numbers, np.int64).reshape(-1, 1).T

        self._issue(warpgroups, place, accumulators, register_a, shape, make_records)

    def issue_all(
        self,
        groups: list[Group],
        place: Place,
        operands: list[Rows],
        accumulators: Registers,
        register_a: Registers = frozenset(),
        shape: str = "",
    ) -> None:
        """Issue `wgmma.mma_async` by several warpgroups; each operand has one row of granules per warpgroup."""
        warpgroups = self._look_up(groups)

        def make_records(operations: Ints) -> Ints:
            access, shadow = self._make_access(place, 16), self.state.find_grid(groups[0].first).shared
            numbers = np.empty((len(groups), len(operands)), np.int64)
            for number, rows in enumerate(operands):
                ready = self.tiles.compare(access, warpgroups.issuers, Space.SHARED, rows, shadow)
                mine = numbers[:, number] = self._record(warpgroups, access, operations)
                if ready is not None:
                    self.tiles.store(ready, mine)
                for index, record in enumerate(mine.tolist()) if ready is None else ():
                    self.tiles.run(access, warpgroups.issuers[index], get_row_bytes(Space.SHARED, rows, index), record)
            return numbers

        self._issue(warpgroups, place, accumulators, register_a, shape, make_records)

    def _issue(
        self, warpgroups: Together, place: Place, accumulators: Registers, register_a: Registers, shape: str,
        records: Callable[[Ints], Ints],
    ) -> None:  # fmt: skip
        """Check the registers, then the operands, whose records `records` adds."""
        for group in warpgroups.odd:
            self.state.report(rules.WARPGROUP, place, f"{len(group.warps)} warps", thread=group.first)
        used = accumulators | register_a if register_a else accumulators
        for part in warpgroups.parts:
            self._check_fence(warpgroups, part, place, used, accumulators, shape)
        numbers = records(self.tiles.begin_operations(len(warpgroups.groups)).astype(np.int64))
        for part in warpgroups.parts:
            mine = (
                numbers
                if len(warpgroups.parts) == 1 and part.positions == [*range(len(numbers))]
                else numbers[part.positions]
            )
            part.book.open.append(Product(place, used, mine))

    def _record(self, warpgroups: Together, access: Access, operations: Ints) -> Ints:
        return self.state.records.add_operations(
            access, warpgroups.lives, warpgroups.columns, operations.astype(np.int32)
        )

    def _look_up(self, groups: list[Group]) -> Together:
        """Return the cached data of a list of warpgroups, which occurs repeatedly."""
        together = self._together.get(id(groups))
        if together is None or together.groups is not groups:
            together = self._together[id(groups)] = self._assemble(groups)
        if together.version != self._books.version:
            together.parts = self._books.find_parts(together.bases, together.ranks, True)
            together.version = self._books.version
        return together

    def _assemble(self, groups: Sequence[Group]) -> Together:
        state = self.state
        warps = [group.warps.tolist() for group in groups]
        are_whole = all(len(group) == 128 and len(mine) == 4 for group, mine in zip(groups, warps, strict=True))
        bases = [self._find_base(mine[0]) for mine in warps]
        ranks = [tuple(warp - base for warp in mine) for mine, base in zip(warps, bases, strict=True)]
        parts = self._books.find_parts(bases, ranks, True)
        return Together(
            groups, bases, ranks, parts, self._books.version,
            np.array([int(state.clocks.life_of[mine[0]]) for mine in warps], np.int64),
            np.array([state.find_channel(state.find_domain(b * 32), "wgmma", b) for b in bases], np.int64),
            np.array([(g.warps * 32)[[0, 1, 2, -1] if len(g.warps) > 3 else [0] * 4] for g in groups]),
            [group for group, mine in zip(groups, ranks, strict=True) if mine != WHOLE],
            np.concatenate(warps) if are_whole else None,
        )  # fmt: skip

    def _make_access(self, place: Place, length: int) -> Access:
        access = self._accesses.get((place, length))
        if access is None:
            access = Access(place, Space.SHARED, length, False, family=Family.WGMMA)
            self._accesses[place, length] = access
        return access

    def _check_fence(
        self, warpgroups: Together, part: Part, place: Place, used: Registers, accumulators: Registers, shape: str
    ) -> None:
        book = part.book
        mine = [book.warps[rank] for rank in part.ranks]
        if not all(warp.has_fence and not warp.accesses for warp in mine):
            self._report_unfenced(warpgroups, part, place, used)
            for warp in mine:
                warp.has_begun = warp.has_fence = True
                if any(registers & used for registers in warp.accesses):
                    warp.accesses = {
                        registers - used: access_place for registers, access_place in warp.accesses.items()
                    }
        if book.latest[1] == shape and (book.latest[0] is accumulators or book.latest[0] == accumulators):
            return
        book.latest = accumulators, shape
        other_shapes = {earlier for registers, earlier in book.shapes if earlier != shape and registers & accumulators}
        for position in part.positions if other_shapes else ():
            detail = f"shape {shape} on the accumulator of shape {min(other_shapes)}"
            self.state.report(rules.WGMMA_NO_FENCE, place, detail, thread=warpgroups.groups[position].first)
        book.shapes = [(registers - accumulators, earlier) for registers, earlier in book.shapes]
        book.shapes.append((accumulators, shape))

    def _report_unfenced(self, warpgroups: Together, part: Part, place: Place, used: Registers) -> None:
        """Report warps without a fence, or without one after another access to their registers."""
        report = self.state.report
        for position in sorted(part.positions):
            for rank in part.ranks:
                warp, thread = part.book.warps[rank], (warpgroups.bases[position] + rank) * 32
                if not warp.has_fence:
                    report(rules.WGMMA_NO_FENCE, place, "the first wgmma of the warpgroup", thread=thread)
                overlaps = [
                    (registers & used, access_place)
                    for registers, access_place in warp.accesses.items()
                    if registers & used
                ]
                if overlaps:
                    last_place, count = overlaps[-1][1], len(frozenset[int]().union(*(hit for hit, _ in overlaps)))
                    detail = "its registers were accessed after the last fence"
                    report(rules.WGMMA_NO_FENCE, place, detail, thread=thread, other=last_place, count=count)

    def commit(self, group: Group) -> None:
        """Execute `wgmma.commit_group`. Warps that execute it one after the other end one group."""
        for part in self._find_parts(group, True):
            book = part.book
            for warp in (book.warps[rank] for rank in part.ranks):
                warp.commits += 1
                if warp.commits > book.group_count:
                    book.groups.append(book.open)
                    book.open = []

    def wait(self, group: Group, pending: int) -> None:
        """Record that `wgmma.wait_group` returned."""
        self._wait(self._assemble([group]), pending)

    def wait_all(self, groups: list[Group], pending: int) -> None:
        """Record that `wgmma.wait_group` returned in several warpgroups."""
        self._wait(self._look_up(groups), pending)

    def _wait(self, warpgroups: Together, pending: int) -> None:
        clocks, records = self.state.clocks, self.state.records
        now = clocks.tick()
        positions: list[int] = []
        for part in warpgroups.parts:
            book = part.book
            complete_count = max(0, len(book.groups) - pending)
            numbers = [product.records for products in book.groups[:complete_count] for product in products]
            if numbers:
                records.complete(np.concatenate(numbers, axis=None), now)
            if book.first_group + complete_count:
                positions += part.positions
            for warp in (book.warps[rank] for rank in part.ranks):
                warp.waits = max(warp.waits, book.first_group + complete_count)
            drop = min(warp.waits for warp in book.warps) - book.first_group
            if drop > 0:
                del book.groups[:drop]
                book.first_group += drop
        whole_warps = warpgroups.warps if len(positions) == len(warpgroups.groups) else None
        if positions and (
            whole_warps is None or not clocks.learn_warps(whole_warps, warpgroups.columns.repeat(4), now)
        ):
            positions.sort()
            clocks.learn_each(
                [warpgroups.groups[position] for position in positions], warpgroups.columns[positions], now
            )

    def record_access(self, group: Group, place: Place, registers: Registers) -> None:
        """Record that another instruction reads or writes registers."""
        for part in self._find_parts(group, False):
            book = part.book
            for rank in part.ranks:
                warp = book.warps[rank]
                if not warp.has_begun:
                    continue
                if book.open or book.group_count > warp.waits:
                    self._check_pending(book, rank, place, registers)
                warp.accesses[registers] = place

    def _check_pending(self, book: Book, rank: int, place: Place, registers: Registers) -> None:
        """Report registers of products that may still run."""
        open_groups = [*book.groups[book.warps[rank].waits - book.first_group :], book.open]
        for product in (product for products in open_groups for product in products):
            hit = registers & product.registers
            if hit:
                detail = f"{len(hit)} registers of a product that may still run"
                for base in book.bases:
                    self.state.report(
                        rules.WGMMA_TOO_EARLY, place, detail, thread=(base + rank) * 32, other=product.place,
                        count=len(hit),
                    )  # fmt: skip
                return
