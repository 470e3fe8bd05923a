"""The queue of effects: what an asynchronous engine was told to do and has not done yet.

An engine issues an effect when its instruction runs. The schedule says when effects land: `eager` at once, others when
a wait needs them or later. Waits ask the queue to land what they wait for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Effect:
    """Something an engine will do. `agent` names the engine and who it works for, `group` what a wait asks for."""

    agent: str
    group: tuple[int, ...]
    land: Callable[[], None]


@dataclass(slots=True)
class Effects:
    """Effects in the order of their issue."""

    eager: bool = True
    pending: list[Effect] = field(default_factory=list[Effect])

    def issue(self, effect: Effect) -> None:
        """Take an effect; in the eager schedule it lands at once."""
        if self.eager:
            effect.land()
        else:
            self.pending.append(effect)

    def land(self, wanted: Callable[[Effect], bool]) -> int:
        """Land every pending effect that is wanted, in order; return how many."""
        landing = [effect for effect in self.pending if wanted(effect)]
        self.pending = [effect for effect in self.pending if not wanted(effect)]
        for effect in landing:
            effect.land()
        return len(landing)
