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

    def reset(self) -> None:
        """Forget everything: a batch begins."""
        self.pending = []
        self.committed = {}

    def issue(
        self, agent: str, lanes: Array, total: int, land: Callable[[], None], grouped: bool = True, size: int = 0
    ) -> None:
        """Take an effect of some of `total` lanes; in the eager schedule it lands at once. `size`: bytes that it moves
        for all of them, for who keeps a record."""
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

    def land_some(self, chance: Random) -> bool:
        """Land effects at random: any of those that only an mbarrier tells of; of the groups of an engine, which end in
        their order, the oldest. Say whether there was any."""
        landing = [e for e in self.pending if bool((e.groups < 0).all()) and chance.random() < 0.5]
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
