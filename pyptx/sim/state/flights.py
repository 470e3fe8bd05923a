"""A grid of a stream: whose end it waits for, which of its CTAs let the next grid start, who waits. Runs nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyptx.sim.state.barriers import Waiting


def _nowhere() -> list[str]:
    return []


@dataclass(slots=True, eq=False)
class Flight:
    """A grid of a stream. `before` is the grid that it may overlap, None where it starts behind all others."""

    label: str
    ctas: int
    before: Flight | None = None
    ended: bool = False
    triggered: set[int] = field(default_factory=set[int])
    """The CTAs that have executed `griddepcontrol.launch_dependents`."""
    waiting: list[Waiting] = field(default_factory=list[Waiting])
    """Lanes in `griddepcontrol.wait`."""
    where: Callable[[], list[str]] = _nowhere
    """Says in a few lines where its CTAs are."""
    unfinished: Callable[[], int] = int
    """Counts the CTAs that have not ended."""
    elapsed: Callable[[], int] = int
    """Counts the instructions that all grids of the stream have issued."""

    @property
    def free(self) -> bool:
        """Whether `griddepcontrol.wait` goes on at once."""
        return self.before is None or self.before.ended
