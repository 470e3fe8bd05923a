"""The state spaces of a launch: find the bytes of an access, and check that it is in bounds, aligned and allowed.

An access resolves to a region and byte offsets in it, one per lane. The sink is notified before each access. Knows
instructions only as the places (`Site`) that errors name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import Origin, PtxError
from pyptx.ir import opcode_span
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes, Shape
from pyptx.sim.images.storage import Images
from pyptx.sim.program.variables import GLOBAL_BASE, LOCAL_WINDOW, PARAM_BASE, SHARED_WINDOW
from pyptx.sim.reports.findings import Cta
from pyptx.sim.rules import faults
from pyptx.sim.state.accumulators import Accumulator, HeldOf
from pyptx.sim.state.address_space import AddressSpace
from pyptx.sim.state.effects import Choices, Effects
from pyptx.sim.state.mbarriers import MBarriers
from pyptx.sim.state.multicasts import Multicasts
from pyptx.sim.state.regions import Region
from pyptx.sim.state.sink import Sink
from pyptx.sim.state.tensor_memory import TensorMemory
from pyptx.sim.state.tracing import Trace
from pyptx.sim.state.unstarted import PendingClusters

RANK_SHIFT = 24
"""The position of the rank field in addresses of the shared::cluster window."""
REMOTE = 16
"""The rank field of another CTA's address is its rank plus this number; that of the own CTA is 0."""
_LOWEST = 1 << 16
"""The lowest address of memory: addresses below it are offsets from a null pointer."""
_POINTER = "pass an array for the pointer parameter, and check the offset that is added to it"
_GUARD = "compare the index with the size of the array, or guard the access"
_LIFETIME = "free memory after the last launch that uses it has completed"
_WINDOW = {PARAM_BASE >> 32: "param", SHARED_WINDOW >> 32: "shared", LOCAL_WINDOW >> 32: "local"}


_ONLY_OWN = ((".init",), (".inval",), (".test_wait",), (".try_wait",))
"""mbarrier operations that must not access another CTA's mbarrier, whatever their state space; the checks report those
that do (PTX0958)."""


class Site:
    """One instruction that accesses memory: its place, and the region that its last access hit."""

    __slots__ = ("function", "instruction", "memory", "number", "own_cta", "region", "rows", "step")

    def __init__(
        self, memory: Memory, step: Step, function: str, number: int = -1, rows: tuple[tuple[int, ...], ...] = ()
    ) -> None:
        self.memory, self.step, self.function = memory, step, function
        self.instruction = instruction = step.instruction
        self.number, self.rows = number, rows
        """The number of a product's accumulators, -1 for other instructions, and the rows of the registers of its D and
        A."""
        self.region = memory.empty_region
        spaces = [modifier for modifier in instruction.modifiers if modifier.startswith(".shared")]
        elsewhere = any("::cluster" in space for space in spaces) or instruction.modifiers[:1] in _ONLY_OWN
        self.own_cta = bool(spaces) and not elsewhere
        """Whether a shared address must lie in the window of the executing CTA."""

    @property
    def origin(self) -> Origin | None:
        return opcode_span(self.instruction)


@dataclass(slots=True)
class Memory:
    """All memory of a launch; shared and local memory belong to the running batch of CTAs."""

    shape: Shape
    space: AddressSpace
    params: Region
    shared_size: int
    ctaid: Array
    shared_base: int
    cluster: int
    pairs: bool
    """Whether addresses of a CTA's own shared memory contain its rank in its pair, for kernels that mask it off."""
    sink: Sink[Site] | None
    """The listener to events."""
    effects: Effects
    names: Callable[[int], str]
    """Formats an address in shared memory."""
    grid: str
    """The label of the grid, empty if it runs alone."""
    grid_shape: tuple[int, int, int]
    fresh: int
    """The initial value of every word of shared and local memory."""
    images: Images
    words: Array
    """The 32-bit registers of all lanes, which warpgroup products read and write asynchronously."""
    dynamic: Array
    """The bytes of local memory that each lane has allocated by `alloca`, starting at `dynamic_base`."""
    dynamic_base: int
    exact: int
    """The target whose tensor core sums are reproduced bit for bit, such as 90 for sm_90; 0 sums quickly."""
    pending_clusters: PendingClusters
    multicasts: Multicasts
    trace: Trace | None = None
    """Records the accesses of a tcgen05 operation while it is traced."""
    accumulators: HeldOf = field(default_factory=dict[int, dict[Lanes, Accumulator]])
    """Accumulators that have not been written to their registers."""
    empty_region: Region = field(init=False)
    """A region that no access hits."""
    mbarriers: MBarriers = field(init=False)
    tensor: TensorMemory = field(init=False)
    shared: Region = field(init=False)
    local: Region = field(init=False)

    def __post_init__(self) -> None:
        data = np.zeros(self.shape.shared_stride * self.shape.ctas, np.uint8)
        self.shared = Region("shared memory", "shared", self.shared_base, self.shared_size, data)
        self.empty_region = Region("nothing", "global", 0, 0, np.zeros(0, np.uint8))
        self.mbarriers = MBarriers(len(data), self.sink)
        self.tensor = TensorMemory(self.shape.ctas, self.exact, self.fresh)
        self.local = Region("local memory", "local", 0, 0, np.zeros(0, np.uint8))

    def begin(self, choices: Choices) -> None:
        """Reset the memory for a batch of CTAs."""
        self.shared.data.view(np.uint32).fill(self.fresh)
        self.local.data.view(np.uint32).fill(self.fresh)
        self.mbarriers.begin(choices.refuse)
        self.effects.begin(choices)
        self.accumulators.clear()
        self.tensor.reset()

    def ensure_local(self, size: int, origin: Origin | None) -> None:
        """Grow local memory to at least this size per thread; keep its contents."""
        if size <= self.local.size:
            return
        if size > 512 * 1024:
            text = f"a thread needs {size} bytes of local memory, but the limit is 524288"
            help = "check for unbounded recursion or a `.local` array that is too large"
            raise faults.error(faults.STACK, origin, text, help=help)
        size = -(-max(size, 2 * self.local.size) // 64) * 64
        lanes = self.shape.lanes
        data = np.full((lanes, size // 4), self.fresh, np.uint32).view(np.uint8)
        data[:, : self.local.size] = self.local.data.reshape(lanes, self.local.size)
        self.local = Region("local memory", "local", 0, size, data.reshape(-1))

    def resolve(
        self, site: Site, space: str, lanes: Lanes, address: Value, size: int, kind: str
    ) -> tuple[Region, Array]:
        """Return the region that an access of `size` bytes hits and the offsets in it. Raise PtxError if the access is
        not legal."""
        if space == "":
            region, offsets = self._resolve_generic(site, lanes, address, size)
        elif space == "shared":
            region, offsets = self._resolve_shared(site, lanes, address, size)
        elif space == "local":
            region, offsets = self._resolve_local(site, lanes, address, size)
        elif space == "param":
            region, offsets = self._resolve_param(site, lanes, address, size)
        else:
            region, offsets = self._resolve_global(site, lanes, address, size, space)
        if kind != "r":
            if not region.writable:
                raise self._make_fault(faults.READ_ONLY, site, lanes, 0, address, size, f"`{region.name}` is read-only")
            if region.lent:
                region.copy_data()
        if self.sink is not None:
            all_offsets = offsets if np.shape(offsets) == (lanes.n,) else np.broadcast_to(offsets, lanes.n)
            self.sink.on_access(site, lanes, region, all_offsets, size, kind)
        return region, offsets

    def _resolve_global(self, site: Site, lanes: Lanes, address: Value, size: int, space: str) -> tuple[Region, Any]:
        region = site.region
        if isinstance(address, int):
            region = self.space.find_region(address)
            if region is None or address + size > region.low + region.size:
                raise self._make_bounds_error(site, lanes, 0, address, size)
            return region, self._check_alignment(site, lanes, np.array(address - region.low), address, size)
        offsets = np.subtract(address, region.low, dtype=np.uint64)
        bits = int(_joined(offsets))
        if bits & (size - 1):
            self._check_alignment(site, lanes, offsets, address, size)
        if bits > region.size - size and (size > region.size or offsets.max() > region.size - size):
            region, offsets = self._search(site, lanes, address, size)
            if space == "const" and region.space != "const":
                raise self._make_fault(faults.WRONG_SPACE, site, lanes, 0, address, size, "not in constant memory")
        return region, offsets.view(np.int64)

    def _check_alignment(self, site: Site, lanes: Lanes, offsets: Array, address: Value, size: int) -> Array:
        if size > 1 and np.bitwise_or.reduce(offsets, axis=None) & (size - 1):
            bad = int(np.flatnonzero(np.atleast_1d(offsets) & (size - 1))[0])
            raise self._make_fault(faults.MISALIGNED, site, lanes, bad, address, size, f"not a multiple of {size}")
        return offsets

    def _search(self, site: Site, lanes: Lanes, address: Array, size: int) -> tuple[Region, Array]:
        """Find the region that all lanes hit, or check each lane separately."""
        region = self.space.find_region(int(address[0]))
        if region is not None:
            offsets = np.subtract(address, region.low, dtype=np.uint64)
            if size <= region.size and offsets.max() <= region.size - size:
                site.region = region
                return region, offsets
        if not self.space.regions:
            raise self._make_bounds_error(site, lanes, 0, address, size)
        indices = np.searchsorted(np.array(self.space.starts, np.uint64), address, "right") - 1
        ends = np.array([r.low + r.size for r in self.space.regions], np.uint64)
        wrong = indices < 0
        wrong |= (ends[indices] - np.minimum(address, ends[indices])) < size
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            raise self._make_bounds_error(site, lanes, bad, address, size)
        raise Mixed

    def split(self, address: Array) -> list[Array]:
        """Return one mask per 4 GiB below global memory, and per global region, that addresses fall into."""
        windows = np.minimum(address, GLOBAL_BASE).astype(np.uint64) >> 32 << 32
        starts = np.unique([*windows, *np.array(self.space.starts, np.uint64)])
        numbers = np.searchsorted(starts, address, "right")
        return [numbers == number for number in np.unique(numbers)]

    def _resolve_shared(self, site: Site, lanes: Lanes, address: Value, size: int) -> tuple[Region, Array]:
        region = self.shared
        if isinstance(address, int) and 0 <= address - region.low <= region.size - size:
            if address & (size - 1):
                self._check_alignment(site, lanes, np.array(address), address, size)
            return region, lanes.compute_once(
                f"shared {address}",
                lambda: lanes.select_values("shared", self.shape.shared_base) + (address - region.low),
            )
        offsets = np.atleast_1d(address).astype(np.int64)
        if region.low:
            offsets -= region.low
        bits = int(_joined(offsets))
        base: Array = lanes.select_values("shared", self.shape.shared_base)
        if self.pairs or (
            (bits < 0 or bits > region.size - size) and offsets.view(np.uint64).max() > region.size - size
        ):
            offsets, base = self._resolve_cluster(site, lanes, address, size)
            bits = int(_joined(offsets))
        if bits & (size - 1):
            self._check_alignment(site, lanes, offsets, address, size)
        if self.shape.ctas == 1 and len(offsets) == lanes.n:
            return region, offsets
        return region, offsets + base

    def _resolve_cluster(self, site: Site, lanes: Lanes, address: Value, size: int) -> tuple[Array, Array]:
        """Resolve shared addresses of other CTAs of the cluster, and generic addresses of shared memory: ptxas uses the
        low half of a 64-bit register, which is the shared address."""
        addresses = np.broadcast_to(np.asarray(address).astype(np.int64), lanes.n)
        addresses = np.where(addresses >> 32 == SHARED_WINDOW >> 32, addresses & 0xFFFFFFFF, addresses)
        field, own_rank = addresses >> RANK_SHIFT, lanes.cta % self.cluster
        rank = np.where(field >= REMOTE, field - REMOTE, own_rank & ~1 | field if self.pairs else own_rank)
        offsets = (addresses & ((1 << RANK_SHIFT) - 1)) - self.shared.low
        wrong = (offsets < 0) | (offsets > self.shared.size - size) | (rank >= self.cluster)
        wrong |= (field < REMOTE) & ((field < 0) | (field > self.pairs))
        if wrong.any():
            raise self._make_bounds_error(site, lanes, int(np.flatnonzero(wrong)[0]), address, size, "shared")
        if site.own_cta and (rank != own_rank).any():
            position = int(np.flatnonzero(rank != own_rank)[0])
            text = (
                f"the shared memory of rank {rank[position]} of the cluster; from rank {own_rank[position]}, only "
                "`.shared::cluster` reaches it, not `.shared` or `.shared::cta`"
            )
            raise self._make_fault(faults.OUT_OF_BOUNDS, site, lanes, position, address, size, text)
        cta = lanes.cta // self.cluster * self.cluster + rank
        return offsets, cta * self.shape.shared_stride

    def _resolve_local(self, site: Site, lanes: Lanes, address: Value, size: int) -> tuple[Region, Array]:
        region = self.local
        offsets = np.broadcast_to(np.asarray(address).astype(np.int64), lanes.n)
        if offsets.min() < 0 or offsets.max() > region.size - size:
            bad = int(np.flatnonzero((offsets < 0) | (offsets > region.size - size))[0])
            raise self._make_bounds_error(site, lanes, bad, address, size, "local")
        self._check_alignment(site, lanes, offsets, address, size)
        return region, offsets + lanes.index * region.size

    def _resolve_param(self, site: Site, lanes: Lanes, address: Value, size: int) -> tuple[Region, Array]:
        offsets = np.asarray(address).astype(np.int64)
        if offsets.min() < 0 or offsets.max() > self.params.size - size:
            bad = int(np.argmax(np.atleast_1d((offsets < 0) | (offsets > self.params.size - size))))
            raise self._make_bounds_error(site, lanes, bad, address, size, "param")
        return self.params, self._check_alignment(site, lanes, offsets, address, size)

    def _resolve_generic(self, site: Site, lanes: Lanes, address: Value, size: int) -> tuple[Region, Any]:
        if isinstance(address, int):
            address = np.full(lanes.n, address, np.uint64)
        region = site.region
        offsets = np.subtract(address, region.low, dtype=np.uint64)
        if size <= region.size and offsets.max() <= region.size - size:
            return region, self._check_alignment(site, lanes, offsets.view(np.int64), address, size)
        window = int(address[0]) >> 32
        if address.min() >> 32 != window or (address.max() >> 32 != window and window in _WINDOW):
            if address.min() >= GLOBAL_BASE:
                return self._resolve_global(site, lanes, address, size, "global")
            raise Mixed
        inside = address - (window << 32)
        space = _WINDOW.get(window)
        if space == "shared":
            return self._resolve_shared(site, lanes, inside, size)
        if space == "local":
            return self._resolve_local(site, lanes, inside, size)
        if space == "param":
            return self._resolve_param(site, lanes, inside, size)
        return self._resolve_global(site, lanes, address, size, "global")

    def _make_bounds_error(
        self, site: Site, lanes: Lanes, position: int, address: Value, size: int, space: str = "global"
    ) -> PtxError:
        lane_address = int(np.broadcast_to(np.asarray(address), lanes.n)[position])
        text = self._describe_nearest(lane_address, space)
        if lane_address < self.params.size and ".tensor" in site.instruction.modifiers:
            text += ", or the parameter address of a tensor map, which `cvta.param` converts to a generic address"
        help = _POINTER if lane_address < _LOWEST else _GUARD if lane_address >= GLOBAL_BASE else None
        help = help if self.space.find_freed(lane_address) is None else _LIFETIME
        help = None if self.multicasts.contains(lane_address) else help
        return self._make_fault(
            faults.OUT_OF_BOUNDS, site, lanes, position, address, size, text, help=help if space == "global" else None
        )

    def _describe_nearest(self, address: int, space: str) -> str:
        if space == "shared":
            last = self.shared.low + self.shared.size - 1
            description = f"shared memory is {self.shared.low:#x} … {last:#x} ({self.shared.size} bytes)"
            if not self.shared.size:
                description = "the CTA has no shared memory"
            window = _WINDOW.get(address >> 32, "global" if address >= GLOBAL_BASE else "")
            return f"an address of another space ({window}): {description}" if window else description
        if space == "local":
            return f"the thread has {self.local.size} bytes of local memory"
        if space == "param":
            return f"the kernel has {self.params.size} bytes of parameters"
        if address < _LOWEST:
            low, description = self.shared.low, "a null pointer"
            if address:
                description = "below all arrays: an offset from a null pointer, or a number passed as a pointer"
            if low <= address < low + self.shared.size:
                return f"{description}, or an address in shared memory, where it is {self.names(address)}"
            return description
        if address >> 32 in _WINDOW:
            return f"a generic address of {_WINDOW[address >> 32]} memory"
        if self.multicasts.contains(address):
            return "an address of a multicast object, which only `multimem` instructions access"
        allocation = self.space.find_freed(address)
        if allocation is not None:
            return f"`{allocation.name}`, {allocation.size} bytes at {allocation.low:#x}, was freed"
        region = self.space.find_nearest(address)
        if region is None:
            return "the launch has no global memory: no argument is an array, and the module has no global variables"
        after = address - (region.low + region.size)
        distance = f"{after} bytes after its end" if after >= 0 else f"{region.low - address} bytes before its start"
        distance = distance if after >= 0 or address < region.low else "the access crosses its end"
        return f"the nearest allocation is `{region.name}`, {region.size} bytes at {region.low:#x}: {distance}"

    def _make_fault(
        self, rule: faults.Rule, site: Site, lanes: Lanes, position: int, address: Value, size: int, why: str,
        help: str | None = None,
    ) -> PtxError:  # fmt: skip
        lane_address = int(np.broadcast_to(np.asarray(address), lanes.n)[position])
        place, low = f"{lane_address:#x}", self.shared.low
        if low <= lane_address < low + 2 * self.shared.size and ".shared" in site.instruction.full_opcode:
            place = f"{self.names(lane_address)} ({place})"
        text = f"`{site.instruction.full_opcode}` accesses {size} byte{'s' if size > 1 else ''} at {place}: {why}"
        return faults.error(
            rule, site.origin, text, notes=(self.describe_thread(lanes, position, site.function),), help=help
        )

    def describe_thread(self, lanes: Lanes, position: int, function: str) -> str:
        """Describe the thread at a position of these lanes."""
        lane = int(lanes.index[position])
        thread, cta = divmod(lane, self.shape.ctas)
        x, y, _ = self.shape.block
        tid = (thread % x, thread // x % y, thread // (x * y))
        number = Cta.from_ctaid(self.ctaid[:, cta], self.grid_shape)
        grid = f" of `{self.grid}`" if self.grid not in ("", function) else ""
        return f"in `{function}`{grid}, CTA {number}, thread {tid}, one of {lanes.n} here"


_joined = np.bitwise_or.reduce
"""The bitwise OR of offsets: at least as large as each of them, and aligned only if all are."""


class Mixed(Exception):
    """The lanes of one access hit different regions: the caller splits them by `Memory.split`."""
