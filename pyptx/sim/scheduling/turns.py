"""Which of the grids that are in flight has its turn, and when the next one starts. Same seed, same turns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from pyptx.sim.scheduling.orders import SEEDED

_NEWEST, _OLDEST, _LATE, _ALTERNATE, _RANDOM = "newest", "oldest", "late", "alternate", "random"
_ADVERSE = (_NEWEST, _OLDEST, _LATE, _ALTERNATE)
"""The adversarial schedule's ways, by seed."""
_STARTS, _LATE_STARTS, _LOOKS = 0.6, 0.2, 0.3


@dataclass(slots=True)
class Turns:
    """Turns of one kind: `newest` starts grids as soon as it may and lets the last one run first, `oldest` starts them
    so too and lets the first one run first, `late` starts one when the others have ended, `alternate` takes turns."""

    how: str
    chance: random.Random
    late: bool | None = None
    """Whether the next grid starts late, drawn when it may start first."""
    last: int = -1

    @property
    def short(self) -> bool:
        """Whether a turn ends with every block."""
        return self.how == _ALTERNATE

    def starts(self, busy: bool, running: bool) -> bool:
        """Say whether the next grid, which may start, does; `busy`: another can go on, `running`: one has not ended."""
        if self.how == _LATE:
            return not running
        if self.how != _RANDOM:
            return True
        if self.late is None:
            self.late = self.chance.random() < _LATE_STARTS
        starts = not running if self.late else not busy or self.chance.random() < _STARTS
        if starts:
            self.late = None
        return starts

    def pick(self, able: Sequence[bool], polling: Sequence[bool]) -> int:
        """Return the number of the grid whose turn it is: one that can go on or, now and then, one that only polls."""
        ready = [at for at, can in enumerate(able) if can]
        if self.how == _NEWEST:
            return ready[-1]
        if self.how in (_OLDEST, _LATE):
            return ready[0]
        if self.how == _ALTERNATE:
            self.last = next((at for at in ready if at > self.last), ready[0])
            return self.last
        looking = [at for at, polls in enumerate(polling) if polls and not able[at]]
        if looking and self.chance.random() < _LOOKS:
            return self.chance.choice(looking)
        return self.chance.choice(ready)


def turns_of(schedule: str, seed: int) -> Turns:
    """Return the turns of a schedule."""
    chance = random.Random(f"{schedule} grids {seed}")
    if schedule not in SEEDED:
        return Turns(_LATE if schedule == "lazy" else _NEWEST, chance)
    if schedule == "random":
        return Turns(_RANDOM, chance)
    return Turns(_ADVERSE[seed] if seed < len(_ADVERSE) else chance.choice(_ADVERSE), chance)
