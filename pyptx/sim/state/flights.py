"""The state of a grid in a stream: its predecessor, the CTAs that let the next grid start, and waiting lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyptx.sim.state.barriers import Waiter


@dataclass(slots=True, eq=False)
class Flight:
    """A grid of a stream. `predecessor` is the grid that it may overlap, None if it starts after all others."""

    label: str
    ctas: int
    predecessor: Flight | None
    describe_places: Callable[[], list[str]]
    """Returns lines that describe where its CTAs are."""
    count_unfinished: Callable[[], int]
    """Counts the CTAs that have not ended."""
    count_instructions: Callable[[], int]
    """Counts the instructions that all grids of the stream have issued."""
    has_ended: bool = False
    trigger_ctas: set[int] = field(default_factory=set[int])
    """The CTAs that have executed `griddepcontrol.launch_dependents`."""
    waiters: list[Waiter] = field(default_factory=list[Waiter])
    """Lanes in `griddepcontrol.wait`."""

    @property
    def is_free(self) -> bool:
        """Whether `griddepcontrol.wait` returns at once."""
        return self.predecessor is None or self.predecessor.has_ended
