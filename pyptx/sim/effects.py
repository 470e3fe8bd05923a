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
    these lanes' groups that it belongs to; -1 where completion is told through an mbarrier only."""

    agent: str
    lanes: Array
    groups: Array
    land: Callable[[], None]


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
        groups = self._counts(agent, total)[lanes] if grouped else np.full(len(lanes), -1)
        self.pending.append(Effect(agent, lanes, groups, land))

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
        self._land(
            [
                e
                for e in self.pending
                if e.agent == agent and bool(((e.groups >= 0) & (e.groups < limit[e.lanes])).any())
            ]
        )

    def land_oldest(self) -> bool:
        """Land the oldest effect of every lane that issued one; say whether there was any."""
        oldest: dict[int, Effect] = {}
        for effect in self.pending:
            oldest.setdefault(int(effect.lanes[0]), effect)
        self._land(list(oldest.values()))
        return bool(oldest)

    def land_some(self, chance: Random, ctas: int) -> bool:
        """Land effects at random: any of those that only an mbarrier tells of; of the groups of an engine, which end in
        their order, the oldest. Say whether there was any."""
        told = [e for e in self.pending if bool((e.groups < 0).all())]
        landing = _some_of_each_thread(told, chance, ctas)
        for agent in sorted({e.agent for e in self.pending if bool((e.groups >= 0).any())}):
            own = [e for e in self.pending if e.agent == agent and bool((e.groups >= 0).any())]
            landing += own[: chance.randint(0, len(own))]
        self._land(landing)
        return bool(landing)

    def land_all(self) -> None:
        """Land everything: the batch ends."""
        self._land(list(self.pending))

    def _land(self, landing: list[Effect]) -> None:
        chosen = {id(effect) for effect in landing}
        self.pending = [effect for effect in self.pending if id(effect) not in chosen]
        for effect in landing:
            effect.land()


def _some_of_each_thread(effects: list[Effect], chance: Random, ctas: int) -> list[Effect]:
    """Return some effects of random threads, the oldest or the newest, mostly the same of every CTA: CTAs that part
    here run apart from here on, which costs far more than the copies."""
    if chance.random() < _APART:
        return [effect for effect in effects if chance.random() < 0.5]
    threads: dict[int, dict[int, list[Effect]]] = {}
    for effect in effects:
        thread, cta = divmod(int(effect.lanes[0]), ctas)
        threads.setdefault(thread, {}).setdefault(cta, []).append(effect)
    found: list[Effect] = []
    for _, per_cta in sorted(threads.items()):
        if chance.random() < 0.5:
            count = chance.randint(1, 3)
            part = slice(count) if chance.random() < 0.7 else slice(-count, None)
            found += [effect for own in per_cta.values() for effect in own[part]]
    return found


def _then(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        first()
        second()

    return both
