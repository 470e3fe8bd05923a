"""What streams and graphs do: operations that describe themselves, and run when it is their turn."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from pyptx.driver import host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.heap import Bytes
from pyptx.driver.launching import Request, launch
from pyptx.driver.pools import Pool
from pyptx.driver.process import Context, Driver
from pyptx.sim.hazards.ranges import NONE, AccessedMemory, Ranges

if TYPE_CHECKING:
    from pyptx.driver.captures import Capture
    from pyptx.driver.graphs import Node

HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
_PROGRAMMATIC = 6
"""The launch attribute PROGRAMMATIC_STREAM_SERIALIZATION, by its number in the enum `CUlaunchAttributeID`."""
UNTOUCHED = AccessedMemory()
HOST_MEMORY, DEVICE_MEMORY, ARRAY, ANY_MEMORY = 1, 2, 3, 4
"""Where the bytes of a copy are, by their number in the enum `CUmemorytype`."""


@dataclass(eq=False)
class Event:
    """An event: the clock when it was recorded, or the nodes after which it was recorded in a capture."""

    handle: int
    device: int
    flags: int
    time: int | None = None
    is_recorded: bool = False
    """Whether it was recorded outside captures."""
    place: str = ""
    """Where the program recorded it."""
    capture: Capture | None = None
    nodes: list[Node] = field(default_factory=list["Node"])


class Operation:
    """Work of a stream or a node of a graph. `kind` is its number in the enum `CUgraphNodeType`."""

    kind: ClassVar[int]
    changes_lifetime: ClassVar[bool] = False
    """Whether it begins or ends the life of memory."""

    def run(self, driver: Driver) -> AccessedMemory:
        """Do the work, and return the memory that it accessed. DriverError if it fails."""
        return UNTOUCHED

    def stage(self, driver: Driver) -> Operation:
        """Return the operation to run later: what the program may change at once has been copied."""
        return self

    def is_awaited(self, driver: Driver, *, is_async: bool) -> bool:
        """Return whether the call that submits it returns only when it has ended."""
        return False

    def describe(self) -> str:
        """Return what the work is, for people."""
        return type(self).__name__.lower()


@dataclass(frozen=True, slots=True)
class Launch(Operation):
    """The launch of a kernel, with the attributes that the program gave it."""

    kind: ClassVar[int] = 0
    context: Context
    request: Request
    attributes: dict[int, bytes]

    def run(self, driver: Driver) -> AccessedMemory:
        return launch(driver, self.context, self.request).find_accessed_memory()

    @property
    def is_programmatic(self) -> bool:
        """Whether it may start before the previous work of its stream has ended."""
        return any(self.attributes.get(_PROGRAMMATIC, b""))

    def describe(self) -> str:
        return f"launch of {self.request}"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a copy: its memory, and the bytes between rows and rows between slices, 0 if there are no gaps."""

    memory: int
    address: int
    pitch: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class Copy(Operation):
    """A copy of a box of bytes."""

    kind: ClassVar[int] = 1
    target: Side
    source: Side
    width: int
    height: int = 1
    depth: int = 1
    snapshot: NDArray[np.uint8] | None = None
    """The source when the copy was submitted, if it runs later."""

    def run(self, driver: Driver) -> AccessedMemory:
        if not (self.width and self.height and self.depth):
            return UNTOUCHED
        target, source = self._view(driver, self.target, writes=True), self._view(driver, self.source)
        np.copyto(target, source)
        # Pageable memory has been read when the call returns, and may be anything's by now.
        is_late = bool(driver.heap.find_kind(self.source.address))
        return AccessedMemory(_list_rows(source) if is_late else NONE, _list_rows(target))

    def stage(self, driver: Driver) -> Copy:
        self._view(driver, self.target, writes=True)
        snapshot = self._view(driver, self.source).copy()
        if driver.heap.find_kind(self.source.address):
            return replace(self, snapshot=snapshot)
        return replace(self, snapshot=snapshot, source=Side(HOST_MEMORY, snapshot.ctypes.data))

    def is_awaited(self, driver: Driver, *, is_async: bool) -> bool:
        target, source = (driver.heap.find_kind(side.address) for side in (self.target, self.source))
        return not target if is_async else (target, source) != ("device", "device")

    def find_change(self, driver: Driver) -> Ranges:
        """Return the bytes of the source that have changed since the copy was submitted."""
        if self.snapshot is None:
            return NONE
        source = self._view(driver, self.source)
        changed = _list_addresses(source)[source != self.snapshot]
        # Bytes stay apart, as work may have changed some of them.
        return Ranges.merge(changed, 1, np.arange(len(changed)))

    def _view(self, driver: Driver, side: Side, *, writes: bool = False) -> NDArray[np.uint8]:
        pitch = side.pitch or self.width
        slice_size = pitch * (side.rows or self.height)
        if pitch < self.width or slice_size < pitch * self.height:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        # One row or slice may have any pitch.
        pitch, slice_size = pitch if self.height > 1 else self.width, slice_size if self.depth > 1 else self.width
        size = (self.depth - 1) * slice_size + (self.height - 1) * pitch + self.width
        view = view_memory(driver, side.address, size, is_device=side.memory == DEVICE_MEMORY, writes=writes)
        shape = self.depth, self.height, self.width
        return np.lib.stride_tricks.as_strided(view, shape, (slice_size, pitch, 1))

    def describe(self) -> str:
        shape = " × ".join(str(size) for size in (self.depth, self.height, self.width) if size != 1) or "1"
        return f"copy of {shape} bytes from {self.source.address:#x} to {self.target.address:#x}"


@dataclass(frozen=True, slots=True)
class Fill(Operation):
    """A memset of rows of elements."""

    kind: ClassVar[int] = 2
    address: int
    pitch: int
    value: int
    element: int
    width: int
    height: int

    def run(self, driver: Driver) -> AccessedMemory:
        rows = self._view(driver)
        if not rows.size:
            return UNTOUCHED
        data = self.value.to_bytes(4, "little")[: self.element]
        np.copyto(rows, np.tile(np.frombuffer(data, np.uint8), self.width))
        return AccessedMemory(writes=_list_rows(rows))

    def stage(self, driver: Driver) -> Fill:
        self._view(driver)
        return self

    def _view(self, driver: Driver) -> NDArray[np.uint8]:
        """Return the rows. DriverError if there is no such memory."""
        row = self.width * self.element
        if self.address % self.element or (self.height > 1 and self.pitch < row):
            raise DriverError(Code.ERROR_INVALID_VALUE)
        if not row or not self.height:
            return np.empty((0, 0), np.uint8)
        pitch = self.pitch if self.height > 1 else row
        size = (self.height - 1) * pitch + row
        view = view_memory(driver, self.address, size, is_device=True, writes=True)
        return np.lib.stride_tricks.as_strided(view, (self.height, row), (pitch, 1))

    def is_awaited(self, driver: Driver, *, is_async: bool) -> bool:
        return not is_async and driver.heap.find_kind(self.address) != "device"

    def describe(self) -> str:
        return f"memset of {self.height} × {self.width} × {self.element} bytes at {self.address:#x} to {self.value:#x}"


@dataclass(frozen=True, slots=True)
class HostCall(Operation):
    """A call of a function of the program."""

    kind: ClassVar[int] = 3
    function: int
    data: int

    def run(self, driver: Driver) -> AccessedMemory:
        HOST_FUNCTION(self.function)(self.data)
        return UNTOUCHED

    def describe(self) -> str:
        return f"call of the host function at {self.function:#x}"


@dataclass(frozen=True, slots=True)
class Callback(Operation):
    """A call of a function that takes a stream and its status; graphs have none."""

    kind: ClassVar[int] = -1
    function: int
    stream: int
    data: int

    def run(self, driver: Driver) -> AccessedMemory:
        CALLBACK(self.function)(self.stream, 0, self.data)
        return UNTOUCHED


@dataclass(frozen=True, slots=True)
class Empty(Operation):
    """No work: a node that joins others."""

    kind: ClassVar[int] = 5


@dataclass(frozen=True, slots=True)
class WaitEvent(Operation):
    """A wait for an event; everything before it has run."""

    kind: ClassVar[int] = 6
    event: Event

    def describe(self) -> str:
        return f"wait for event {self.event.handle:#x}"


@dataclass(frozen=True, slots=True)
class RecordEvent(Operation):
    """The record of an event at the current time."""

    kind: ClassVar[int] = 7
    event: Event

    def run(self, driver: Driver) -> AccessedMemory:
        self.event.time = driver.instructions
        return UNTOUCHED

    def describe(self) -> str:
        return f"record of event {self.event.handle:#x}"


@dataclass(frozen=True, slots=True)
class Allocate(Operation):
    """An allocation in a graph: each launch makes the same memory accessible."""

    kind: ClassVar[int] = 10
    changes_lifetime: ClassVar[bool] = True
    pool: Pool
    data: Bytes
    device: int
    place: str

    @property
    def address(self) -> int:
        """The address of the memory."""
        return self.data.ctypes.data

    def run(self, driver: Driver) -> AccessedMemory:
        self.pool.take(len(self.data))
        driver.heap.register(self.address, self.data, self.pool.kind, self.device, self.place).pool = self.pool
        return _touch(self.address, len(self.data))

    def describe(self) -> str:
        return f"allocation of {len(self.data)} bytes at {self.address:#x}"


@dataclass(frozen=True, slots=True)
class Born(Operation):
    """The point in a stream from which memory may be used that has just been allocated."""

    kind: ClassVar[int] = -1
    changes_lifetime: ClassVar[bool] = True
    address: int
    size: int

    def run(self, driver: Driver) -> AccessedMemory:
        return _touch(self.address, self.size)

    def describe(self) -> str:
        return f"allocation of {self.size} bytes at {self.address:#x}"


@dataclass(frozen=True, slots=True)
class Free(Operation):
    """The end of an allocation in stream order."""

    kind: ClassVar[int] = 11
    changes_lifetime: ClassVar[bool] = True
    address: int

    def run(self, driver: Driver) -> AccessedMemory:
        return _touch(self.address, free_memory(driver, self.address))

    def describe(self) -> str:
        return f"free of {self.address:#x}"


def free_memory(driver: Driver, address: int) -> int:
    """Free memory of a device or a pool, and return its size."""
    allocation = driver.heap.allocations.get(address)
    if allocation is None or not allocation.is_freed_as_device_memory:
        raise DriverError(Code.ERROR_INVALID_VALUE)
    return driver.heap.free(address, (allocation.kind,)).size


def view_memory(driver: Driver, address: int, size: int, *, is_device: bool, writes: bool = False) -> Bytes:
    """Return memory to read or to write: of the device, or any of the host."""
    view = driver.heap.view(address, size)
    if view is None:
        if is_device or not address:
            raise DriverError(Code.ERROR_INVALID_VALUE)
        return host_memory.view(address, size, writes=writes)
    # What the program registered is its own to protect and to unmap.
    if driver.heap.find_kind(address) == "registered":
        host_memory.require(address, size, writes=writes)
    return view


def _touch(address: int, size: int) -> AccessedMemory:
    """Return what an operation accesses that replaces all bytes of an allocation."""
    return AccessedMemory(writes=Ranges.merge(np.array([address]), size))


def _list_rows(box: NDArray[np.uint8]) -> Ranges:
    """Return the rows of a box in memory."""
    return Ranges.merge(_list_addresses(box[..., :1]).reshape(-1), box.shape[-1])


def _list_addresses(box: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the address of each byte of a box."""
    steps = zip(box.shape, box.strides, strict=True)
    offsets = [np.arange(size, dtype=np.int64) * stride for size, stride in steps]
    total: NDArray[np.int64] = reduce(np.add, np.ix_(*offsets))
    return total + box.ctypes.data
