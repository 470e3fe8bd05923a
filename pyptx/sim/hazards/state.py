"""The shared state of the engine: grids and their threads, clocks, records, shadow memory, findings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from pyptx.diagnostics import Rule
from pyptx.sim.base.events import Family, Ints, Mask, Place, Scope, Space
from pyptx.sim.hazards.clocks import Clocks
from pyptx.sim.hazards.records import ALL_LANES, Records
from pyptx.sim.hazards.shadow import Shadow
from pyptx.sim.hazards.stamps import AnyStamp, LazyStamp, Stamp
from pyptx.sim.reports.findings import Agent, Finding, Ledger

TENSOR_BYTES = 512 * 8 * 16
"""Shadow bytes of one CTA's tensor memory: a granule per column and 16 lanes."""

ENGINE_NAMES = {
    Family.CP_ASYNC: "cp.async",
    Family.ST_ASYNC: "st.async",
    Family.BULK_LOAD: "bulk load",
    Family.BULK_STORE: "bulk store",
    Family.WGMMA: "wgmma",
    Family.TCGEN05: "tcgen05",
    Family.TMEM_LD: "tcgen05.ld",
    Family.TMEM_ST: "tcgen05.st",
}


@dataclass(slots=True, eq=False)
class Release:
    """The release of a thread, at a location or by a fence."""

    source: AnyStamp
    scope: Scope
    thread: int
    life: int = 0
    """The life of the thread's warp, as thread numbers are reused; 0 if other threads released too."""
    time: int = 0

    def covers(self, earlier: Release) -> bool:
        """Tell whether this release makes an earlier one redundant, since the same thread made both."""
        is_same = self.thread == earlier.thread and self.life == earlier.life > 0
        return is_same and self.scope >= earlier.scope and self.time >= earlier.time

    @property
    def stamp(self) -> Stamp:
        """The resolved stamp."""
        return self.source.resolve() if isinstance(self.source, LazyStamp) else self.source


@dataclass(frozen=True, slots=True, eq=False)
class NarrowEdge:
    """A release that a thread acquired through a scope that does not include both threads: it orders nothing."""

    release: Release
    thread: int
    scope: Scope
    time: int


@dataclass(slots=True)
class Domain:
    """One cluster, running or ended: its CTAs by rank, and the columns of its clocks."""

    number: int
    grid: Grid
    ctas: list[int]
    first_thread: int
    columns: int
    channels: dict[tuple[object, ...], int] = field(default_factory=dict[tuple[object, ...], int])


class Overlap(Enum):
    """Whether a grid may run at the same time as the previous one."""

    NONE = "it starts when that one has ended"
    DEPENDENT = "it may start earlier, and wait for that one (programmatic dependent launch)"
    INDEPENDENT = "nothing orders the two"


@dataclass(slots=True, eq=False)
class Grid:
    """A launch. Its CTAs run in `slots`; a slot's threads, shared and tensor memory have fixed numbers."""

    number: int
    first_thread: int
    threads: int
    stride: int
    slots: int
    cluster: int
    shared_stride: int
    shared: Shadow
    tensor: Shadow
    prior: int
    overlap: Overlap
    place: Place
    domain_of_slot: list[Domain | None]
    names: Callable[[int], str]
    """Returns the name of an offset in a CTA's shared memory."""
    label: str = ""
    """The name of the grid in findings; empty if it is the only grid."""
    has_ended: bool = False
    has_waited: bool = False
    """Whether a thread has waited for the previous grids."""
    first_covered: int = 0
    """The first of the previous grids that its waits cover."""

    @property
    def first_complete(self) -> int:
        """The first grid, up to this one, that is sure to have ended when this one has: without a wait, this grid may
        end before those that it overlaps."""
        return self.number if self.overlaps and not self.has_waited else self.first_covered

    @property
    def overlaps(self) -> bool:
        """Whether it may run at the same time as the previous grid."""
        return self.overlap is not Overlap.NONE

    @property
    def is_dependent(self) -> bool:
        """Whether `griddepcontrol.wait` waits for the previous grid."""
        return self.overlap is Overlap.DEPENDENT

    def find_thread(self, slot: int, thread: int = 0) -> int:
        """Return the number of a thread of the CTA in a slot."""
        return self.first_thread + slot * self.stride + thread

    def list_threads(self, slot: int) -> Ints:
        """Return the numbers of all threads of the CTA in a slot."""
        return np.arange(self.threads, dtype=np.int64) + self.find_thread(slot)

    def find_shared_base(self, slot: int) -> int:
        """Return the address of a CTA's shared memory."""
        return slot * self.shared_stride

    def find_tensor_base(self, slot: int) -> int:
        """Return the address of a CTA's tensor memory."""
        return slot * TENSOR_BYTES

    def find_cta(self, slot: int) -> int:
        """Return the number of the CTA in a slot, or the slot's if it is free."""
        domain = self.domain_of_slot[slot]
        return domain.ctas[slot - self.find_slot(domain.first_thread)] if domain else slot

    def find_slot(self, thread: int) -> int:
        return (thread - self.first_thread) // self.stride


AddUnknown = Callable[[int], bool]
"""Registers the range of global memory at an unknown address, if there is one: few of many are accessed."""


class State:
    """The shared state; each part of the engine keeps its own data beside it."""

    def __init__(self, limit: int, add_unknown: AddUnknown | None) -> None:
        self.clocks = Clocks()
        self.records = Records()
        self.ledger = Ledger(limit)
        self.grids: list[Grid] = []
        self.uncovered = False
        """Whether a grid has waited for some but not all previous grids."""
        self.domains: list[Domain] = []
        self.grid_of_domain = np.zeros(16, np.int32)
        self.live = np.zeros(0, np.bool_)
        self.rounds = np.zeros(0, np.int32)
        self._add_unknown = add_unknown
        self._starts: list[int] = []
        self._buffers: list[Shadow] = []
        self._first_threads: list[int] = []
        self.operations = 0
        self.fences: dict[int, list[Release]] = {}
        """The releasing fences of each thread, but for those that a later one covers: a later relaxed write releases
        what they cover."""
        self.observations: dict[int, dict[Hashable, list[Release]]] = {}
        """The releases that each thread's relaxed reads observed: its next acquiring fence acquires them."""
        self.narrow: dict[tuple[int, Release], NarrowEdge] = {}
        """Acquired releases that order nothing, by the acquiring thread."""
        self.narrow_arrives: dict[tuple[Place, int], Scope] = {}
        """Arrivals on another CTA's mbarrier whose scope does not include that CTA, by the arriving CTA's slot."""
        self.narrow_waits: dict[tuple[Place, int], Scope] = {}
        """Waits for such arrivals with too narrow a scope, by the waiting CTA's slot."""
        self.unfinished: dict[int, list[int]] = {}
        self._columns_of: dict[int, int] = {}

    def add_buffer(
        self, base: int, size: int, name: str = "", fresh: bool = False, initial: Mask | None = None
    ) -> None:
        """Register a range of global memory; `fresh`: its bytes are uninitialized until written, except those that
        `initial` marks."""
        index = bisect_right(self._starts, base)
        self._starts.insert(index, base)
        self._buffers.insert(index, Shadow(size, fresh, name, base, exact=False, initial=initial))

    def list_buffers(self) -> list[Shadow]:
        """Return the ranges of global memory that were accessed or registered."""
        return self._buffers

    def add_grid(self, grid: Grid) -> None:
        self.grids.append(grid)
        self._first_threads.append(grid.first_thread)
        threads = grid.slots * grid.stride
        self.live = np.concatenate([self.live, np.zeros(threads, np.bool_)])
        self.rounds = np.concatenate([self.rounds, np.zeros(threads, np.int32)])

    def find_grid(self, thread: int) -> Grid:
        """Return the grid of a thread."""
        if len(self.grids) == 1:
            return self.grids[0]
        return self.grids[bisect_right(self._first_threads, thread) - 1]

    def find_domain(self, thread: int) -> Domain:
        """Return the cluster of a thread."""
        return self.domains[int(self.clocks.domain_of[thread >> 5])]

    def add_domain(self, grid: Grid, slots: list[int], ctas: list[int]) -> Domain:
        number = len(self.domains)
        domain = Domain(number, grid, ctas, grid.find_thread(slots[0]), 1 + len(slots) * grid.stride)
        self.domains.append(domain)
        if number >= len(self.grid_of_domain):
            self.grid_of_domain = np.concatenate([self.grid_of_domain, np.zeros_like(self.grid_of_domain)])
        self.grid_of_domain[number] = grid.number
        self.clocks.ensure_columns(domain.columns)
        return domain

    def find_channel(self, domain: Domain, *key: object, width: int = 1) -> int:
        """Return the clock column that tracks one stream of a cluster's asynchronous operations; add it if new."""
        column = domain.channels.get(key)
        if column is None:
            column = domain.channels[key] = domain.columns
            domain.columns += width
            self.clocks.ensure_columns(domain.columns)
        return column

    def find_shadow(self, space: Space, grid: Grid, address: int) -> tuple[Shadow, int] | None:
        """Return the shadow of an address and the shadow's first address; None for unknown global memory."""
        if space is Space.SHARED:
            return grid.shared, 0
        if space is Space.TENSOR:
            return grid.tensor, 0
        index = bisect_right(self._starts, address) - 1
        if index < 0 or address >= self._starts[index] + self._buffers[index].size:
            if self._add_unknown is None or not self._add_unknown(address):
                return None
            index = bisect_right(self._starts, address) - 1
        return self._buffers[index], self._starts[index]

    def begin_operation(self) -> int:
        """Return the number of a new asynchronous operation."""
        self.operations += 1
        return self.operations

    def find_copy_columns(self, domain: Domain) -> int:
        """Return the first of the columns for `cp.async` operations of a cluster's threads; add them if new."""
        threads = len([s for s in domain.grid.domain_of_slot if s is domain]) * domain.grid.stride
        first = self.find_channel(domain, "cp.async", width=threads)
        warps = slice(domain.first_thread >> 5, (domain.first_thread + threads) >> 5)
        self.clocks.copy_column[warps] = first
        return first

    def set_column(self, operation: int, column: int) -> None:
        """Set the clock column of an `st.async` operation."""
        self._columns_of[operation] = column

    def find_operation_columns(self, operation: int, warps: Ints) -> Ints:
        """Return, per warp, the clock column of lane 0's accesses by a `cp.async` or `st.async` operation."""
        column = self._columns_of.get(operation)
        if column is not None:
            return np.full(len(warps), column, np.int64)
        clocks = self.clocks
        for warp in warps[clocks.copy_column[warps] == 0].tolist():
            if not clocks.copy_column[warp]:
                self.find_copy_columns(self.domains[int(clocks.domain_of[warp])])
        return clocks.copy_column[warps] + warps * 32 - clocks.first_thread[warps]

    def finish(self, operation: int) -> None:
        """Complete an operation: a thread that knows its channel up to now knows it."""
        self.records.complete(self.unfinished.pop(operation, ()), self.clocks.now)

    def describe_thread(self, thread: int, engine: str = "", whole_warp: bool = False) -> Agent:
        """Return a thread as an agent in the program's terms."""
        grid = self.find_grid(thread)
        slot = grid.find_slot(thread)
        domain = self.find_domain(thread)
        within = (thread - grid.first_thread) % grid.stride
        cta = domain.ctas[slot - grid.find_slot(domain.first_thread)]
        return Agent(cta, within // 32, -1 if whole_warp else within % 32, engine, grid.label)

    def describe_access(self, ref: int) -> Agent:
        """Return the agent of an access in the program's terms."""
        records, record, lane = self.records, ref >> 6, ref & 63
        index = np.array([record], np.int64)
        domain = self.domains[int(records.get_domains(index)[0])]
        grid, warp = domain.grid, int(records.get_warps(index)[0])
        within = warp * 32 - domain.first_thread
        family = Family(int(records.get_families(index)[0]))
        if int(records.operation[record]) and family is not Family.CP_ASYNC:
            lane = int(records.mask[record]).bit_length() - 1
        is_whole = lane >= ALL_LANES or family in (Family.WGMMA, Family.TMEM_LD, Family.TMEM_ST)
        cta = domain.ctas[within // grid.stride]
        engine = ENGINE_NAMES.get(family, "")
        return Agent(cta, within % grid.stride // 32, -1 if is_whole else lane, engine, grid.label)

    def report(
        self,
        rule: Rule,
        place: Place,
        detail: str,
        *,
        thread: int | None = None,
        ref: int = 0,
        other: Place | None = None,
        where: str = "",
        notes: tuple[str, ...] = (),
        count: int = 1,
        help: str = "",
    ) -> None:
        """Add a finding. `ref` is the earlier access, or `other` the earlier place; `help` replaces the rule's
        remedy."""
        agent = self.describe_thread(thread) if thread is not None else None
        other_agent = self.describe_access(ref) if ref else None
        if ref:
            other = self.records.get_access(ref >> 6).place
        self.ledger.add(Finding(rule, place, agent, detail, other, other_agent, where, notes, count, help))

    def describe_bytes(self, space: Space, grid: Grid, address: int, size: int) -> str:
        """Describe bytes in the program's terms."""
        if space is Space.SHARED:
            slot, offset = divmod(address, grid.shared_stride)
            owner = f" of `{grid.label}`" if grid.label else ""
            return f"{size} bytes at {grid.names(offset)} of CTA {grid.find_cta(slot)}{owner}"
        if space is Space.TENSOR:
            column, lane_row = divmod(address % TENSOR_BYTES // 16, 8)
            return f"tensor memory column {column}, lanes from {lane_row * 16}"
        shadow_memory = self.find_shadow(space, grid, address)
        if shadow_memory is None:
            return f"{size} bytes at global 0x{address:x}"
        return f"{size} bytes at {shadow_memory[0].name or 'global memory'}+0x{address - shadow_memory[1]:x}"
