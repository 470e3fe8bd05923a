"""Which of the grids in flight runs, and when the next one starts. Same seed, same turns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pyptx.sim.scheduling.schedules import SEEDED

_NEWEST, _OLDEST, _LATE, _ALTERNATE, _RANDOM = "newest", "oldest", "late", "alternate", "random"
_ADVERSE = (_NEWEST, _OLDEST, _LATE, _ALTERNATE)
"""The kinds of turns of the adversarial schedule, by seed."""
_STARTS, _LATE_STARTS, _LOOKS = 0.6, 0.2, 0.3


@dataclass(slots=True)
class Turns:
    """Turns of one kind: `newest` starts grids as early as possible and runs the last one first, `oldest` starts them
    as early and runs the first one first, `late` starts one when the others have completed, `alternate` takes turns."""

    kind: str
    chance: random.Random
    late: bool | None = None
    """Whether the next grid starts late, drawn when it may first start."""
    last: int = -1

    @property
    def short(self) -> bool:
        """Whether a turn ends with every block."""
        return self.kind == _ALTERNATE

    def starts_next(self, busy: bool, running: bool) -> bool:
        """Tell whether the next grid, which may start, starts now; `busy`: another can run, `running`: one has not
        completed."""
        if self.kind == _LATE:
            return not running
        if self.kind != _RANDOM:
            return True
        if self.late is None:
            self.late = self.chance.random() < _LATE_STARTS
        starts = not running if self.late else not busy or self.chance.random() < _STARTS
        if starts:
            self.late = None
        return starts

    def pick(self, able: Sequence[bool], polling: Sequence[bool]) -> int:
        """Return the number of the grid that runs: one that can or, now and then, one that only polls."""
        ready = [number for number, can in enumerate(able) if can]
        if self.kind == _NEWEST:
            return ready[-1]
        if self.kind in (_OLDEST, _LATE):
            return ready[0]
        if self.kind == _ALTERNATE:
            self.last = next((number for number in ready if number > self.last), ready[0])
            return self.last
        pollers = [number for number, polls in enumerate(polling) if polls and not able[number]]
        if pollers and self.chance.random() < _LOOKS:
            return self.chance.choice(pollers)
        return self.chance.choice(ready)


def make_turns(schedule: str, seed: int) -> Turns:
    """Return the turns of a schedule."""
    chance = random.Random(f"{schedule} grids {seed}")
    if schedule not in SEEDED:
        return Turns(_LATE if schedule == "lazy" else _NEWEST, chance)
    if schedule == "random":
        return Turns(_RANDOM, chance)
    return Turns(_ADVERSE[seed] if seed < len(_ADVERSE) else chance.choice(_ADVERSE), chance)
