"""Descriptions of the events that the machine reports to the hazard engine.

Knows no program and no address map: places, threads and bytes are plain values. docs/hazards.md lists the calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum, unique

import numpy as np
import numpy.typing as npt

from pyptx.diagnostics import Origin
from pyptx.isa.traits import PROXIES

Ints = npt.NDArray[np.int64]
Clock = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]


class Space(StrEnum):
    """An address space of the engine. In tensor memory, an address is `(column * 8 + lane // 16) * 16`."""

    GLOBAL = "global"
    SHARED = "shared"
    TENSOR = "tensor"


class Scope(IntEnum):
    """The scope of a strong operation, from narrow to wide."""

    CTA = 1
    CLUSTER = 2
    GPU = 3
    SYS = 4

    def __str__(self) -> str:
        return f"`.{self.name.lower()}`"


class Sem(StrEnum):
    """The memory semantics of an operation: `.weak`, or one of the strong ones."""

    WEAK = "weak"
    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"
    SC = "sc"

    @property
    def releases(self) -> bool:
        return self in (Sem.RELEASE, Sem.ACQ_REL, Sem.SC)

    @property
    def acquires(self) -> bool:
        return self in (Sem.ACQUIRE, Sem.ACQ_REL, Sem.SC)


@unique
class Family(IntEnum):
    """The agent of an access: a thread, or an asynchronous operation that a thread started."""

    THREAD = 0
    CP_ASYNC = 1
    ST_ASYNC = 2
    BULK_LOAD = 3
    BULK_STORE = 4
    WGMMA = 5
    TCGEN05 = 6
    TMEM_LD = 7
    TMEM_ST = 8

    @property
    def async_proxy(self) -> bool:
        """Whether its shared and global accesses go through the async proxy."""
        return self in _ASYNC


class Movement(StrEnum):
    """How an operation of the tensor core moves data, as the instruction table's `MOVES` says; a product does not."""

    NONE = ""
    COPY = "copy"
    SHIFT = "shift"


ENGINES = {
    Family.CP_ASYNC: "cp.async", Family.ST_ASYNC: "store", Family.BULK_LOAD: "bulk", Family.BULK_STORE: "bulk",
    Family.WGMMA: "wgmma", Family.TCGEN05: "tcgen05", Family.TMEM_LD: "tcgen05.ld", Family.TMEM_ST: "tcgen05.st",
}  # fmt: skip
"""The engine of each agent but a thread, as the instruction table names it."""
_ASYNC = frozenset(family for family, engine in ENGINES.items() if PROXIES[engine] == "async")


@dataclass(frozen=True, slots=True)
class Place:
    """One instruction: its origin, and its text for messages."""

    origin: Origin | None
    text: str = ""

    @property
    def line(self) -> int:
        """Its line, 0 if unknown."""
        return self.origin.line if self.origin else 0

    def __str__(self) -> str:
        location = str(self.origin) if self.origin else ""
        return f"`{self.text}` at {location}" if location and self.text else f"`{self.text}`" if self.text else location


@dataclass(frozen=True, slots=True)
class Access:
    """An instruction's access to memory, without its threads and addresses: build one per instruction.

    `readonly` is `ld.global.nc` and `ld.proxy::readonly`; `red` is the atomic without a result, so it never acquires.
    """

    place: Place
    space: Space
    size: int
    writes: bool
    reads: bool = True
    sem: Sem = Sem.WEAK
    scope: Scope = Scope.CTA
    readonly: bool = False
    red: bool = False
    family: Family = Family.THREAD
    movement: Movement = Movement.NONE

    @property
    def strong(self) -> bool:
        return self.sem is not Sem.WEAK

    @property
    def async_proxy(self) -> bool:
        return self.family.async_proxy and self.space is not Space.TENSOR

    @property
    def verb(self) -> str:
        return "updates" if self.reads and self.writes else "writes" if self.writes else "reads"


def load(place: Place, space: Space, size: int, sem: Sem = Sem.WEAK, scope: Scope = Scope.CTA) -> Access:
    """Return the access of a load of `size` bytes per lane."""
    return Access(place, space, size, False, True, sem, scope)


def store(place: Place, space: Space, size: int, sem: Sem = Sem.WEAK, scope: Scope = Scope.CTA) -> Access:
    """Return the access of a store of `size` bytes per lane."""
    return Access(place, space, size, True, False, sem, scope)


def atomic(place: Place, space: Space, size: int, sem: Sem = Sem.RELAXED, scope: Scope = Scope.GPU) -> Access:
    """Return the access of `atom` or `red`."""
    return Access(place, space, size, True, True, sem, scope)


@dataclass(frozen=True, slots=True)
class Bytes:
    """Runs of equal length in one space; `starts` holds the engine's byte addresses."""

    space: Space
    starts: Ints
    length: int

    @staticmethod
    def run(space: Space, start: int, length: int) -> Bytes:
        """Return one contiguous run."""
        return Bytes(space, np.array([start], np.int64), length)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of `length` bytes with a row of starts per copy. All bytes lie in `low` … `high` - 1."""

    starts: Ints
    length: int
    low: int
    high: int


def tensor_cells(base: int, column: int, columns: int, lane: int = 0, lanes: int = 128) -> Bytes:
    """Return a rectangle of tensor memory; the CTA's tensor memory starts at `base`."""
    first, count = lane // 16, (lane + lanes - 1) // 16 - lane // 16 + 1
    starts = base + (np.arange(column, column + columns, dtype=np.int64) * 8 + first) * 16
    return Bytes(Space.TENSOR, starts, count * 16)
