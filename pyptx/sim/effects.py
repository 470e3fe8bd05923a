"""The queue of effects: what an asynchronous engine was told to do and has not done yet.

An engine issues an effect when its instruction runs. The schedule says when effects land: `eager` at once, `lazy` when
a wait asks for them or nothing else can run. Groups are counted per lane and agent, as `commit_group` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

import numpy as np

from pyptx.sim.formats import Array

_APART = 0.01
"""How often every CTA's effects land at random by themselves."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Something an engine will do. `agent` names the engine, `lanes` who issued it, `groups` the number of each of
    these lanes' groups that it belongs to; -1 where completion is told through an mbarrier only. `land` takes which of
    the lanes that it was issued by it lands for: of one that is not divisible always all, `positions`."""

    agent: str
    lanes: Array
    groups: Array
    positions: Array
    land: Callable[[Array], None]
    divisible: bool = False

    def without(self, landed: Array) -> Effect:
        """Return what is left when it has landed for some lanes."""
        left = ~landed
        kept = self.lanes[left], self.groups[left], self.positions[left]
        return Effect(self.agent, *kept, self.land, True)


_Landing = list[tuple[Effect, Array | None]]
"""Effects that land, each for which of its lanes; None: for all."""


@dataclass(slots=True)
class Effects:
    """Effects in the order of their issue, and how many groups every lane has committed."""

    eager: bool = True
    pending: list[Effect] = field(default_factory=list[Effect])
    committed: dict[str, Array] = field(default_factory=dict[str, Array])
    landed: Callable[[], None] | None = None
    """What to call when the next effect has landed."""

    def reset(self) -> None:
        """Forget everything: a batch begins."""
        self.pending = []
        self.committed = {}

    def issue(
        self, agent: str, lanes: Array, total: int, land: Callable[[], None], grouped: bool = True, size: int = 0
    ) -> None:
        """Take an effect of some of `total` lanes; in the eager schedule it lands at once. `size`: bytes that it moves
        for all of them, for who keeps a record."""
        if self.landed is not None:
            land, self.landed = _then(land, self.landed), None
        if self.eager:
            land()
            return
        self.pending.append(Effect(agent, lanes, *self._numbered(agent, lanes, total, grouped), lambda _: land()))

    def issue_each(
        self, agent: str, lanes: Array, total: int, land: Callable[[Array], None], grouped: bool = True
    ) -> None:
        """Take the effects of lanes that do the same, as one: it lands for all or for some, by position in `lanes`."""
        groups, positions = self._numbered(agent, lanes, total, grouped)
        if self.eager:
            land(positions)
        else:
            self.pending.append(Effect(agent, lanes, groups, positions, land, True))

    def _numbered(self, agent: str, lanes: Array, total: int, grouped: bool) -> tuple[Array, Array]:
        """Return the group that each lane fills, and its position."""
        count = len(lanes)
        groups = self._counts(agent, total)[lanes] if grouped and not self.eager else np.full(count, -1)
        return groups, np.arange(count)

    def _counts(self, agent: str, total: int) -> Array:
        return self.committed.setdefault(agent, np.zeros(total, np.int64))

    def commit(self, agent: str, lanes: Array, total: int) -> None:
        """End the group that each of these lanes fills."""
        if not self.eager:
            self._counts(agent, total)[lanes] += 1

    def wait(self, agent: str, lanes: Array, total: int, newest: int | None) -> None:
        """Land what these lanes have committed but for their newest groups; None: everything they issued."""
        if self.eager or not self.pending:
            return
        limit = np.full(total, -1)
        limit[lanes] = np.iinfo(np.int64).max if newest is None else self._counts(agent, total)[lanes] - newest
        landing: _Landing = []
        for effect in self.pending:
            if effect.agent == agent:
                ready = (effect.groups >= 0) & (effect.groups < limit[effect.lanes])
                if ready.any():
                    landing.append((effect, ready))
        self._land(landing)

    def land_oldest(self) -> bool:
        """Land the oldest effect of every lane that issued one; say whether there was any."""
        landing: _Landing = []
        seen = set[int]()
        for effect in self.pending:
            lanes = effect.lanes.tolist() if effect.divisible else [int(effect.lanes[0])]
            first = np.array([lane not in seen for lane in lanes])
            if first.any():
                landing.append((effect, first if effect.divisible else None))
                seen.update(lanes)
        self._land(landing)
        return bool(landing)

    def land_some(self, chance: Random, ctas: int) -> bool:
        """Land effects at random: any of those that only an mbarrier tells of; of the groups of an engine, which end in
        their order, the oldest. Say whether there was any."""
        told = [e for e in self.pending if bool((e.groups < 0).all())]
        landing = _some_of_each_thread(told, chance, ctas)
        for agent in sorted({e.agent for e in self.pending if bool((e.groups >= 0).any())}):
            own = [e for e in self.pending if e.agent == agent and bool((e.groups >= 0).any())]
            landing += [(effect, None) for effect in own[: chance.randint(0, len(own))]]
        self._land(landing)
        return bool(landing)

    def land_all(self) -> None:
        """Land everything: the batch ends."""
        self._land([(effect, None) for effect in self.pending])

    def _land(self, landing: _Landing) -> None:
        chosen = {id(effect): part if effect.divisible else None for effect, part in landing}
        kept: list[Effect] = []
        for effect in self.pending:
            part = chosen.get(id(effect))
            if id(effect) not in chosen:
                kept.append(effect)
            elif part is not None and not part.all():
                kept.append(effect.without(part))
        self.pending = kept
        for effect, part in landing:
            effect.land(effect.positions if part is None or not effect.divisible else effect.positions[part])


def _some_of_each_thread(effects: list[Effect], chance: Random, ctas: int) -> _Landing:
    """Return some effects of random threads, the oldest or the newest, mostly the same of every CTA: CTAs that part
    here run apart from here on, which costs far more than the copies."""
    if chance.random() < _APART:
        halves = [(effect, np.array([chance.random() < 0.5 for _ in effect.positions])) for effect in effects]
        return [(effect, part if effect.divisible else None) for effect, part in halves if part[0]]
    threads: dict[int, dict[bytes, list[Effect]]] = {}
    for effect in effects:
        thread = int(effect.lanes[0]) // ctas
        threads.setdefault(thread, {}).setdefault(effect.lanes.tobytes(), []).append(effect)
    found: _Landing = []
    for _, per_lanes in sorted(threads.items()):
        if chance.random() < 0.5:
            count = chance.randint(1, 3)
            part = slice(count) if chance.random() < 0.7 else slice(-count, None)
            found += [(effect, None) for own in per_lanes.values() for effect in own[part]]
    return found


def _then(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        first()
        second()

    return both
