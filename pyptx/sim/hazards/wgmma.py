"""Warpgroup products: fences, groups, and the registers and shared operands that they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.hazards import rules
from pyptx.sim.hazards.events import Access, Bytes, Family, Ints, Place, Space
from pyptx.sim.hazards.groups import Group
from pyptx.sim.hazards.rows import Rows, bytes_of
from pyptx.sim.hazards.state import State
from pyptx.sim.hazards.tiles import Tiles

Registers = frozenset[int]


@dataclass(slots=True)
class Product:
    """One wgmma in flight."""

    place: Place
    registers: Registers
    records: list[int]


@dataclass(slots=True)
class WarpBook:
    """What one warp has fenced, touched and waited for."""

    fenced: bool = False
    touched: dict[Registers, Place] = field(default_factory=dict[Registers, Place])
    waited: int = 0


@dataclass(slots=True)
class WarpgroupBook:
    """The groups of one warpgroup."""

    open: list[Product] = field(default_factory=list[Product])
    groups: list[list[Product]] = field(default_factory=list[list[Product]])
    first_group: int = 0
    shapes: dict[int, str] = field(default_factory=dict[int, str])
    latest: tuple[Registers, str] = (frozenset(), "")


@dataclass(frozen=True, slots=True)
class Together:
    """Warpgroups that issue together: their books and those of their warps, and what their records have in common."""

    groups: list[Group]
    books: list[WarpgroupBook]
    warps: list[list[WarpBook]]
    lives: Ints
    columns: Ints
    issuers: Ints


class Wgmma:
    """The asynchronous products of all warpgroups. Registers are numbers that the machine chooses."""

    def __init__(self, state: State, tiles: Tiles) -> None:
        self.state, self.tiles = state, tiles
        self._bases: dict[int, int] = {}
        self._warps: dict[int, WarpBook] = {}
        self._groups: dict[int, WarpgroupBook] = {}
        self._accesses: dict[tuple[Place, int], Access] = {}
        self._together: dict[int, Together] = {}

    def forget(self, warps: Iterable[int]) -> None:
        """A CTA ended."""
        self._together.clear()
        for warp in warps if self._warps else ():
            self._warps.pop(warp, None)
            self._groups.pop(warp, None)

    def busy(self, warp: int) -> bool:
        """Tell whether accesses to registers of this warp are worth telling: it has issued wgmma before."""
        return warp in self._warps

    def _base(self, thread: int) -> int:
        """Return the first warp of a thread's warpgroup."""
        warp = thread >> 5
        if warp not in self._bases:
            self._bases[warp] = self._first_warp(thread)
        return self._bases[warp]

    def _first_warp(self, thread: int) -> int:
        grid = self.state.grid_of(thread)
        first = grid.first_thread
        slot = grid.slot_of(thread)
        start = (first + slot * grid.stride) >> 5
        return start + ((thread >> 5) - start) // 4 * 4

    def fence(self, group: Group) -> None:
        """`wgmma.fence.sync.aligned`."""
        for warp in group.warps.tolist():
            mine = self._warps.setdefault(warp, WarpBook())
            mine.fenced = True
            mine.touched.clear()
            book = self._groups.setdefault(self._base(warp * 32), WarpgroupBook())
            book.shapes.clear()
            book.latest = frozenset(), ""

    def issue(
        self,
        group: Group,
        place: Place,
        operands: list[Bytes],
        accumulators: Registers,
        register_a: Registers = frozenset(),
        shape: str = "",
    ) -> None:
        """`wgmma.mma_async` by one warpgroup; `operands` are the bytes that it reads from shared memory."""
        thread = group.first
        base = self._base(thread)
        if len(group.warps) != 4 or int(group.warps[0]) != base:
            self.state.report(rules.WARPGROUP, place, f"{len(group.warps)} warps", thread=thread)
        book = self._groups.setdefault(base, WarpgroupBook())
        self._check_fence(group, place, book, accumulators | register_a, accumulators, shape)
        operation = self.state.begin_operation()
        column = self.state.channel(self.state.domain_of(thread), "wgmma", base)
        product = Product(place, accumulators | register_a, [])
        issuers = np.array([warp * 32 for warp in group.warps.tolist()], np.int64)
        for where in operands:
            access = self._accesses.setdefault(
                (place, where.length), Access(place, where.space, where.length, False, family=Family.WGMMA)
            )
            life = int(self.state.clocks.life_of[base])
            record = self.state.records.of_operation(access, life, column, operation, 0)
            product.records.append(record)
            self.tiles.run(access, issuers, where, record)
        book.open.append(product)

    def issue_all(
        self,
        groups: list[Group],
        place: Place,
        operands: list[Rows],
        accumulators: Registers,
        register_a: Registers = frozenset(),
        shape: str = "",
    ) -> None:
        """`wgmma.mma_async` by several warpgroups at once; each operand has a row of granules for each of them."""
        state, used, here = self.state, accumulators | register_a, self._held(groups)
        products: list[Product] = []
        for group, book, warps in zip(groups, here.books, here.warps, strict=True):
            if len(group.warps) != 4 or int(group.warps[0]) != self._base(group.first):
                state.report(rules.WARPGROUP, place, f"{len(group.warps)} warps", thread=group.first)
            known = book.latest[0] is accumulators and book.latest[1] == shape
            if not known or not all(warp.fenced and not warp.touched for warp in warps):
                self._check_fence(group, place, book, used, accumulators, shape)
            products.append(Product(place, used, []))
            book.open.append(products[-1])
        numbers = self.tiles.begin(len(groups))
        access, shadow = self._access(place), state.grid_of(groups[0].first).shared
        for rows in operands:
            ready = self.tiles.ready(access, here.issuers, Space.SHARED, rows, shadow)
            records = state.records.of_operations(access, here.lives, here.columns, numbers)
            if ready is not None:
                self.tiles.take(ready, records)
            for at, (product, record) in enumerate(zip(products, records.tolist(), strict=True)):
                product.records.append(record)
                if ready is None:
                    self.tiles.run(access, here.issuers[at], bytes_of(Space.SHARED, rows, at), record)

    def _held(self, groups: list[Group]) -> Together:
        """Return what is known of some warpgroups: the same list asks again and again."""
        found = self._together.get(id(groups))
        if found is None or found.groups is not groups:
            found = self._together[id(groups)] = self._made(groups)
        return found

    def _made(self, groups: list[Group]) -> Together:
        state = self.state
        return Together(
            groups,
            [self._groups.setdefault(self._base(group.first), WarpgroupBook()) for group in groups],
            [[self._warps.setdefault(warp, WarpBook()) for warp in group.warps.tolist()] for group in groups],
            np.array([int(state.clocks.life_of[int(group.warps[0])]) for group in groups], np.int64),
            np.array([state.channel(state.domain_of(g.first), "wgmma", self._base(g.first)) for g in groups]),
            np.array([(g.warps * 32)[[0, 1, 2, -1] if len(g.warps) > 3 else [0] * 4] for g in groups]),
        )

    def _access(self, place: Place) -> Access:
        found = self._accesses.get((place, 16))
        if found is None:
            found = self._accesses[place, 16] = Access(place, Space.SHARED, 16, False, family=Family.WGMMA)
        return found

    def _check_fence(
        self, group: Group, place: Place, book: WarpgroupBook, used: Registers, accumulators: Registers, shape: str
    ) -> None:
        for warp in group.warps.tolist():
            mine = self._warps.setdefault(warp, WarpBook())
            if not mine.fenced:
                self.state.report(rules.WGMMA_NO_FENCE, place, "the first wgmma of the warpgroup", thread=warp * 32)
                mine.fenced = True
            touched = [(registers & used, other) for registers, other in mine.touched.items() if registers & used]
            if touched:
                other, count = touched[-1][1], len(frozenset[int]().union(*(hit for hit, _ in touched)))
                what = "its registers were accessed since the last fence"
                self.state.report(rules.WGMMA_NO_FENCE, place, what, thread=warp * 32, other=other, count=count)
                mine.touched = {r - used: where for r, where in mine.touched.items()}
        if book.latest == (accumulators, shape):
            return
        book.latest = accumulators, shape
        other_shape = {book.shapes[register] for register in accumulators if register in book.shapes} - {shape}
        if other_shape:
            what = f"shape {shape} on the accumulator of shape {min(other_shape)}"
            self.state.report(rules.WGMMA_NO_FENCE, place, what, thread=group.first)
        for register in accumulators:
            book.shapes[register] = shape

    def commit(self, group: Group) -> None:
        """`wgmma.commit_group`."""
        book = self._groups.setdefault(self._base(group.first), WarpgroupBook())
        book.groups.append(book.open)
        book.open = []

    def wait(self, group: Group, pending: int) -> None:
        """`wgmma.wait_group` that went on."""
        self._wait(self._made([group]), pending)

    def wait_all(self, groups: list[Group], pending: int) -> None:
        """`wgmma.wait_group` that went on, in several warpgroups at once."""
        self._wait(self._held(groups), pending)

    def _wait(self, here: Together, pending: int) -> None:
        clocks, records = self.state.clocks, self.state.records
        now = clocks.tick()
        learned: list[int] = []
        for at, (group, book, warps) in enumerate(zip(here.groups, here.books, here.warps, strict=True)):
            done = max(0, len(book.groups) - pending)
            for products in book.groups[:done]:
                for product in products:
                    records.done(product.records, now)
            if book.first_group + done:
                learned.append(at)
            for warp in warps:
                warp.waited = max(warp.waited, book.first_group + done)
            base = self._base(group.first)
            members = warps
            if len(warps) != 4:
                members = [self._warps.setdefault(base + rank, WarpBook()) for rank in range(4)]
            drop = min(warp.waited for warp in members) - book.first_group
            if drop > 0:
                del book.groups[:drop]
                book.first_group += drop
        if learned:
            clocks.learn_each([here.groups[at] for at in learned], here.columns[learned], now)

    def registers(self, group: Group, place: Place, registers: Registers) -> None:
        """Another instruction reads or writes registers; call it for warps that are `busy`."""
        for warp in group.warps.tolist():
            mine = self._warps.get(warp)
            if mine is None:
                continue
            book = self._groups[self._base(warp * 32)]
            if book.open or book.first_group + len(book.groups) > mine.waited:
                waiting = [*book.groups[max(0, mine.waited - book.first_group) :], book.open]
                for product in (product for products in waiting for product in products):
                    hit = registers & product.registers
                    if hit:
                        what = f"{len(hit)} registers of a product that may still run"
                        self.state.report(
                            rules.WGMMA_TOO_EARLY, place, what, thread=warp * 32, other=product.place, count=len(hit)
                        )
                        break
            mine.touched[registers] = place
