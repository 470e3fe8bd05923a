"""The events of a run on a timeline, as plain values. Knows neither the machine nor a file format.

Time is logical: a warp's clock counts the instructions that it has issued, and a wait ends no earlier than its cause on
the clock of the causing warp. It is not timing: every instruction takes one step, every copy none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.sim.reports.findings import Cta

UNIT = "steps of the simulated program, not time: one instruction of a warp is one step, a copy takes none"


@dataclass(frozen=True, slots=True)
class Track:
    """A row of the timeline: a warp of a CTA, or an asynchronous engine to which the CTA's warps issue."""

    cta: int
    name: str
    engine: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A warp runs forward through the program, from one line to another, without waiting."""

    track: int
    start: int
    end: int
    label: str
    lines: tuple[int, int]
    lanes: int
    steps: int


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a wait's end: an event on a track at a time."""

    track: int
    time: int


@dataclass(frozen=True, slots=True)
class Wait:
    """A warp waits at a barrier for the end of a phase or round, which `cause` brought about. `is_over` is false if
    the run stopped while the warp was waiting."""

    track: int
    start: int
    end: int
    barrier: str
    phase: int
    line: int
    cause: Cause | None
    is_over: bool = True


@dataclass(frozen=True, slots=True)
class Transfer:
    """Work of an engine, from its issue to the first wait for it: the time that the program leaves for it. `has_wait`
    is false for work without a wait, which is drawn to the end."""

    track: int
    start: int
    end: int
    label: str
    line: int
    issuer: int
    bytes: int = 0
    flops: int = 0
    barrier: str = ""
    count: int = 1
    has_wait: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """Activity at one line of the PTX: how often warps and lanes ran it, how long warps waited at it."""

    number: int
    warps: int
    lanes: int
    wait_steps: int
    python: tuple[str, int] | None


@dataclass(slots=True)
class RunRecord:
    """The complete record of one run."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    schedule: str
    source: str
    ctas: list[tuple[int, int, int]] = field(default_factory=list["tuple[int, int, int]"])
    ctas_left_out: int = 0
    is_truncated: bool = False
    tracks: list[Track] = field(default_factory=list[Track])
    runs: list[Run] = field(default_factory=list[Run])
    waits: list[Wait] = field(default_factory=list[Wait])
    transfers: list[Transfer] = field(default_factory=list[Transfer])
    lines: list[Line] = field(default_factory=list[Line])
    moments: dict[int, Cause] = field(default_factory=dict[int, Cause])
    """The place of the first lane of a finding, by the finding's identity."""
    texts: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """The Python files of traced instructions. Files that `.loc` of foreign PTX names are never opened."""

    @property
    def names(self) -> list[str]:
        """The names of the recorded CTAs, as in findings."""
        return [str(Cta.from_ctaid(cta, self.grid)) for cta in self.ctas]

    @property
    def end(self) -> int:
        """The latest time on any track."""
        return max((item.end for items in (self.runs, self.waits, self.transfers) for item in items), default=0)
