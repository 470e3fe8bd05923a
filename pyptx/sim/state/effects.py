"""The queue of effects: work that asynchronous engines have been issued but have not completed.

An instruction issues an effect when it runs. The schedule decides when the effect lands: `eager` at once, `lazy` when a
wait needs it or nothing else can run. `commit_group` numbers groups per lane and agent. Effects that one thread issues
to an agent of `IN_ORDER` land in the order of issue.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.state.mbarriers import Refuse
from pyptx.sim.state.sink import Sink

WGMMA, TCGEN05, TENSOR_STORES = "wgmma", "tcgen05", "tcgen05.st"
"""The agents of warpgroup products, of tcgen05 operations that one thread issues, and of warp-wide tcgen05 stores."""
BULK, COPIES, STORES = "bulk", "cp.async", "store"
"""The agents of bulk and tensor copies, of per-lane copies, and of stores whose completion an mbarrier signals."""
IN_ORDER = frozenset((WGMMA, TCGEN05, TENSOR_STORES))
_MOST_TOGETHER = 8
"""The most `tcgen05` operations of a thread that land together at random."""
_SOON = 0.25
"""The probability that a product lands at once if no other is pending."""
_APART, _CTAS = 0.01, 8
"""The probability that effects land separately in each CTA, for up to this many CTAs; more CTAs diverge less often.
CTAs interact only within a cluster, and diverged batches of many CTAs run several times slower."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Work that an engine has yet to do.

    `agent` names the engine and `lanes` the issuers. `groups` are the numbers of their groups that it belongs to, -1 if
    only an mbarrier signals completion. `land` takes the positions of the lanes for which it lands, all of them unless
    it is divisible. `mbarrier_rows` are the mbarriers that it signals, `[lane, row]`, None if none or unknown.
    """

    agent: str
    lanes: Array
    groups: Array
    positions: Array
    land: Callable[[Array], None]
    divisible: bool
    mbarrier_rows: Array | None

    def drop_lanes(self, landing_mask: Array) -> Effect:
        """Return the effect without lanes for which it has landed."""
        remaining = ~landing_mask
        parts = self.lanes[remaining], self.groups[remaining], self.positions[remaining]
        return Effect(
            self.agent, *parts, self.land, True, None if self.mbarrier_rows is None else self.mbarrier_rows[remaining]
        )


@dataclass(frozen=True, slots=True)
class Choices:
    """What the schedule of a batch decides for engines and mbarriers."""

    hasty: frozenset[str] = frozenset()
    """Agents whose effects land at once."""
    chance: Random | None = None
    """The generator that chooses products to land at once, if effects land at random."""
    refuse: Refuse | None = None
    """Which waits fail at random."""


_Landing = list[tuple[Effect, Array | None]]
"""Effects that land, each with a mask of its lanes; None for all."""


@dataclass(slots=True)
class Effects:
    """Pending effects in the order of issue, and how many groups each lane has committed."""

    eager: bool
    pending: list[Effect] = field(default_factory=list[Effect])
    commit_counts: dict[str, Array] = field(default_factory=dict[str, Array])
    sink: Sink[Any] | None = None
    _hasty: frozenset[str] = frozenset()
    _chance: Random | None = None

    def begin(self, choices: Choices) -> None:
        """Begin a batch."""
        self._hasty, self._chance = choices.hasty, choices.chance
        if self.sink is not None:
            self._hasty |= self.sink.hasty

    def lands_at_once(self, agent: str) -> bool:
        """Return whether new work of an agent in `IN_ORDER` lands at once and need not be issued."""
        if self._lands_now(agent):
            return True
        if self._chance is None or self._chance.random() >= _SOON:
            return False
        return not any(effect.agent == agent for effect in self.pending)

    def _lands_now(self, agent: str) -> bool:
        return self.eager or agent in self._hasty

    def issue(
        self, agent: str, lanes: Array, total: int, land: Callable[[], None], in_group: bool = True, size: int = 0,
        mbarrier_rows: Array | None = None,
    ) -> None:  # fmt: skip
        """Queue an effect of some of `total` lanes; in the eager schedule it lands at once. `size` is the number of
        bytes that it moves for all of them; `mbarrier_rows` are the mbarriers that each lane's part signals."""
        if self.sink is not None:
            land = self.sink.wrap_effect(agent, lanes, land, in_group, size)
        if self._lands_now(agent):
            land()
            return
        numbers = self._number_lanes(agent, lanes, total, in_group)
        self.pending.append(Effect(agent, lanes, *numbers, lambda _: land(), False, mbarrier_rows))

    def issue_each(
        self, agent: str, lanes: Array, total: int, land: Callable[[Array], None],
        mbarrier_rows: Array | None = None,
    ) -> None:  # fmt: skip
        """Queue equal effects of several lanes as one, which may land for some of them, by position in `lanes`. Those
        that signal mbarriers, and those of tcgen05, are in no group."""
        if self.sink is not None:
            land = self.sink.wrap_effects(land)
        in_group = mbarrier_rows is None and agent != TCGEN05
        groups, positions = self._number_lanes(agent, lanes, total, in_group)
        if self._lands_now(agent):
            land(positions)
        else:
            self.pending.append(Effect(agent, lanes, groups, positions, land, True, mbarrier_rows))

    def _number_lanes(self, agent: str, lanes: Array, total: int, in_group: bool) -> tuple[Array, Array]:
        """Return each lane's current group, and its position."""
        count = len(lanes)
        groups = self._get_commit_counts(agent, total)[lanes] if in_group and not self.eager else np.full(count, -1)
        return groups, np.arange(count)

    def _get_commit_counts(self, agent: str, total: int) -> Array:
        return self.commit_counts.setdefault(agent, np.zeros(total, np.int64))

    def commit(self, agent: str, lanes: Array, total: int) -> None:
        """Commit the current group of these lanes."""
        if self.sink is not None:
            self.sink.on_commit(agent, lanes)
        if not self.eager:
            self._get_commit_counts(agent, total)[lanes] += 1

    def wait(self, agent: str, lanes: Array, total: int, newest: int | None) -> None:
        """Land the groups that these lanes have committed, except the `newest` ones; None lands all they issued."""
        if self.sink is not None:
            self.sink.on_wait(agent, lanes, newest)
        if self.eager or not self.pending:
            return
        limit = np.full(total, -1)
        limit[lanes] = (
            np.iinfo(np.int64).max if newest is None else self._get_commit_counts(agent, total)[lanes] - newest
        )
        landing: _Landing = []
        for effect in self.pending:
            if effect.agent == agent:
                ready = (effect.groups >= 0) & (effect.groups < limit[effect.lanes])
                if ready.any():
                    landing.append((effect, ready))
        self._land(landing)

    def land_awaited(self, mbarriers: Array) -> bool:
        """Land each lane's oldest effect that signals one of these mbarriers, given as a mask of rows. Effects in order
        land, with all before them, only if there is no other. Return whether any landed."""
        for in_order in (False, True):
            landing: _Landing = []
            landing_lanes = set[int]()
            for effect in self.pending:
                if effect.mbarrier_rows is not None and (effect.agent in IN_ORDER) is in_order:
                    due = np.asarray(mbarriers[effect.mbarrier_rows].any(axis=1))
                    if due.any():
                        _take_first(effect, due, landing_lanes, landing)
            if landing:
                self._land(landing)
                return True
        return False

    def land_oldest(self) -> bool:
        """Land each lane's oldest effect; of effects in order, the oldest that signals an mbarrier with all before it,
        as nothing waits for the others. Return whether any landed."""
        landing: _Landing = []
        landing_lanes = {True: set[int](), False: set[int]()}
        for effect in self.pending:
            in_order = effect.agent in IN_ORDER
            if not in_order or effect.mbarrier_rows is not None:
                _take_first(effect, np.ones(len(effect.lanes), np.bool_), landing_lanes[in_order], landing)
        self._land(landing)
        return bool(landing)

    def land_some(self, chance: Random, ctas: int) -> bool:
        """Land effects at random: any that only an mbarrier signals, the oldest groups of each engine, and the oldest
        products of each thread. Return whether any landed."""
        products = [e for e in self.pending if e.agent == TCGEN05]
        mbarrier_effects = [e for e in self.pending if e.agent != TCGEN05 and bool((e.groups < 0).all())]
        landing = _choose_per_thread(mbarrier_effects, chance, ctas)
        for agent in sorted({e.agent for e in self.pending if bool((e.groups >= 0).any())}):
            agent_effects = [e for e in self.pending if e.agent == agent and bool((e.groups >= 0).any())]
            landing += [(effect, None) for effect in agent_effects[: chance.randint(0, len(agent_effects))]]
        parts = [landing]
        if products:
            parts.insert(chance.randint(0, 1), _choose_per_thread(products, chance, ctas, _MOST_TOGETHER))
        for part in parts:
            self._land(part)
        return any(parts)

    def land_all(self) -> None:
        """Land all effects; the batch ends."""
        self._land([(effect, None) for effect in self.pending])

    def _land(self, landing: _Landing) -> None:
        if any(effect.agent in IN_ORDER for effect, _ in landing):
            landing = self._add_earlier(landing)
        masks = {id(effect): part if effect.divisible else None for effect, part in landing}
        remaining: list[Effect] = []
        for effect in self.pending:
            part = masks.get(id(effect))
            if id(effect) not in masks:
                remaining.append(effect)
            elif part is not None and not part.all():
                remaining.append(effect.drop_lanes(part))
        self.pending = remaining
        for effect, part in landing:
            effect.land(effect.positions if part is None or not effect.divisible else effect.positions[part])

    def _add_earlier(self, landing: _Landing) -> _Landing:
        """Add the effects that must land earlier, in the order of issue."""
        masks = {id(effect): part for effect, part in landing if effect.agent in IN_ORDER}
        lane_count = 1 + max(int(effect.lanes[-1]) for effect in self.pending if effect.agent in IN_ORDER)
        due = {effect.agent: np.zeros(lane_count, np.bool_) for effect, _ in landing if effect.agent in IN_ORDER}
        effects: _Landing = []
        for effect in reversed(self.pending):
            lanes = due.get(effect.agent)
            if lanes is None:
                continue
            part = lanes[effect.lanes]
            if id(effect) in masks:
                mask = masks[id(effect)]
                part |= True if mask is None else mask
            if part.any():
                effects.append((effect, part if effect.divisible else None))
                lanes[effect.lanes[part] if effect.divisible else effect.lanes] = True
        return [(effect, part) for effect, part in landing if effect.agent not in IN_ORDER] + effects[::-1]


def _take_first(effect: Effect, due: Array, landing_lanes: set[int], landing: _Landing) -> None:
    """Add an effect to `landing` for the due lanes that are not yet in `landing_lanes`, and add these."""
    lanes = effect.lanes.tolist() if effect.divisible else [int(effect.lanes[0])]
    first = np.array([lane not in landing_lanes for lane in lanes])
    if effect.divisible:
        first &= due
    if first.any():
        landing.append((effect, first if effect.divisible else None))
        landing_lanes.update(effect.lanes[first].tolist() if effect.divisible else lanes)


def _choose_per_thread(effects: list[Effect], chance: Random, ctas: int, oldest: int = 0) -> _Landing:
    """Return some effects of random threads, the oldest or the newest, mostly the same ones for all CTAs: CTAs that
    diverge here stay apart, which costs far more than the copies. With `oldest`, take at most that many, oldest
    first."""
    if chance.random() < _APART * min(1, _CTAS / ctas):
        halves = [(effect, np.array([chance.random() < 0.5 for _ in effect.positions])) for effect in effects]
        return [(effect, part if effect.divisible else None) for effect, part in halves if part[0]]
    threads: dict[int, dict[bytes, list[Effect]]] = {}
    for effect in effects:
        thread = int(effect.lanes[0]) // ctas
        threads.setdefault(thread, {}).setdefault(effect.lanes.tobytes(), []).append(effect)
    landing: _Landing = []
    for _, per_lanes in sorted(threads.items()):
        if chance.random() < 0.5:
            count = chance.randint(1, oldest or 3)
            part = slice(count) if oldest or chance.random() < 0.7 else slice(-count, None)
            landing += [(effect, None) for lane_effects in per_lanes.values() for effect in lane_effects[part]]
    return landing
