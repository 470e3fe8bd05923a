"""Memory pools: how many bytes they hold and have handed out. The memory itself is the heap's."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.driver.codes import Code, DriverError

PINNED, MANAGED = 1, 2
"""Types of allocations, by their number in the enum `CUmemAllocationType`."""
NO_LOCATION, DEVICE, HOST, HOST_NUMA = 0, 1, 2, 3
"""Types of locations, by their number in the enum `CUmemLocationType`."""
Location = tuple[int, int]
"""The type of a location, and its ordinal."""
RELEASE_THRESHOLD = 4
READ, READ_WRITE = 1, 3
"""How a location may access memory, by their numbers in the enum `CUmemAccess_flags`."""
_UNIT, _CHUNK = 512, 2 << 20


@dataclass(slots=True)
class Meter:
    """Bytes now, and the most since the program reset that number."""

    current: int = 0
    high: int = 0

    def set(self, value: int) -> None:
        """Change the number of bytes."""
        self.current = value
        self.high = max(self.high, value)


@dataclass(eq=False)
class Pool:
    """A memory pool: where and what it allocates, the most bytes (0 if unlimited), and which devices may access it."""

    handle: int
    location: Location
    type: int = PINNED
    limit: int = 0
    is_default: bool = False
    settings: dict[int, int] = field(default_factory=lambda: {1: 1, 2: 1, 3: 1, RELEASE_THRESHOLD: 0})
    """Attributes that a program may set, by their number in the enum `CUmemPool_attribute`."""
    access: dict[Location, int] = field(default_factory=dict[Location, int])
    used: Meter = field(default_factory=Meter)
    reserved: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        self.access[self.location] = READ_WRITE

    @property
    def kind(self) -> str:
        """The kind of its allocations."""
        if self.type == MANAGED:
            return "managed"
        return "device" if self.location[0] == DEVICE else "host"

    def take(self, size: int) -> None:
        """Count an allocation; DriverError beyond the limit."""
        used = self.used.current + _round(size, _UNIT)
        if self.limit and used > self.limit:
            raise DriverError(Code.ERROR_OUT_OF_MEMORY)
        self.used.set(used)
        if used > self.reserved.current:
            self.reserved.set(_round(used, _CHUNK))

    def give(self, size: int) -> None:
        """Count a free."""
        self.used.set(self.used.current - _round(size, _UNIT))

    def trim(self, keep: int) -> None:
        """Return reserved memory that is not used, except for some bytes."""
        least = _round(max(keep, self.used.current), _CHUNK)
        self.reserved.set(min(self.reserved.current, least))

    def trim_to_threshold(self) -> None:
        """Return memory as every synchronization does."""
        self.trim(self.settings[RELEASE_THRESHOLD])


def _round(size: int, unit: int) -> int:
    return -(-size // unit) * unit
