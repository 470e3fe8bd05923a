"""The orders in which a schedule runs groups of lanes, and what it lets happen early or late. Same seed, same order.

`eager` and `lazy` have no order of their own: lowest block first. The others sort warps or CTAs into ranks.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes, Shape
from pyptx.sim.scheduling.schedules import SEEDED
from pyptx.sim.state.effects import BULK, COPIES, STORES, TCGEN05, TENSOR_STORES, WGMMA, Choices

Key = tuple[int, int, int]
"""A rank, minus the call depth, and the block (negative if higher ones run first): the lowest key runs."""

_MOST_RANKS = 3
_LONGEST_TURN = 48
_REFUSALS = 0.15
_LANDINGS = 0.3
_MOST_PARTS = 8
"""The most parts into which the CTAs of a batch split."""
_STREWN = 8
"""The number of parts into which the lanes of a warp split at random."""
_FEW = 2048
"""Up to this many lanes are also split by CTA: CTAs interleave, so split lanes run several times slower."""


@dataclass(slots=True)
class Order:
    """One order. `ranks`: the rank of every lane; lower ranks run as long as they can. `down`: the higher of two blocks
    runs first. `fair`: ranks take turns of random length, effects land and waits fail at random. `hasty`: agents whose
    effects land immediately."""

    name: str
    ranks: Array
    chance: random.Random
    down: bool = False
    fair: bool = False
    hasty: frozenset[str] = frozenset()
    _rank_of: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def split(self, depth: int, pc: int, lanes: Lanes) -> list[tuple[Key, Lanes]]:
        """Return lanes at a block with their keys, split by rank."""
        place = (-depth, -pc if self.down else pc)
        rank = self.find_rank(lanes)
        if rank >= 0:
            return [((rank, *place), lanes)]
        ranks = self.ranks[lanes.sel]
        subsets = ((int(rank_of_part), lanes.subset(ranks == rank_of_part)) for rank_of_part in np.unique(ranks))
        return [((part_rank, *place), subset) for part_rank, subset in subsets if subset is not None]

    def find_rank(self, lanes: Lanes) -> int:
        """Return the rank of lanes, -1 if they have several."""
        if lanes.positions is not None:
            ranks = self.ranks[lanes.positions]
            return int(ranks[0]) if (ranks == ranks[0]).all() else -1
        rank_of_lanes = self._rank_of.get((lanes.lo, lanes.hi))
        if rank_of_lanes is None:
            ranks = self.ranks[lanes.lo : lanes.hi]
            rank_of_lanes = self._rank_of[lanes.lo, lanes.hi] = int(ranks[0]) if (ranks == ranks[0]).all() else -1
        return rank_of_lanes

    def pick(self, ready: Mapping[Key, Sequence[Lanes]]) -> Key:
        """Return the key that runs next. Lanes of one warp run lowest block first in every order: they reconverge after
        a branch as on hardware, so that the code there may be `.aligned`."""
        if self.fair:
            rank = self.chance.choice(sorted({key[0] for key in ready}))
            return min(key for key in ready if key[0] == rank)
        first = min(ready)
        if not self.down or len(ready) == 1:
            return first
        earlier_warps, choice = set[int](), first
        for key in sorted((key for key in ready if key[0] == first[0]), key=lambda key: (key[1], -key[2])):
            warps = {warp for lanes in ready[key] for warp in np.unique(lanes.shape.warp[lanes.sel]).tolist()}
            if not warps & earlier_warps:
                choice = key
            earlier_warps |= warps
        return choice

    def split_warps(self, lanes: Lanes) -> list[Lanes]:
        """Split the lanes of each warp into parts that run a block in turn: lanes are threads, and no kernel may rely
        on one reaching a release before another reaches its acquire."""
        ranks = [31 - lane if self.down else self.chance.randrange(_STREWN) for lane in range(32)]
        lane_ranks = np.array(ranks)[lanes.shape.lane[lanes.sel]]
        parts = (lanes.subset(lane_ranks == rank) for rank in np.unique(lane_ranks))
        return [part for part in parts if part is not None]

    def draw_turn(self) -> int:
        """Return after how many blocks another group may run; 0 if only when it must."""
        return self.chance.randint(1, _LONGEST_TURN) if self.fair else 0

    def should_yield(self, key: Key, ready: Iterable[Key]) -> bool:
        """Tell whether a group that reaches `key` lets another one run, or joins it."""
        if not self.fair:
            return key >= min(ready)
        return any(ready_key <= key for ready_key in ready if ready_key[0] == key[0])

    def should_land(self) -> bool:
        """Tell whether effects of engines land now, although no lane waits for them."""
        return self.fair and self.chance.random() < _LANDINGS

    def draw_refusals(self, lanes: Lanes) -> Array | None:
        """Return the lanes, in whole warps, that an mbarrier's `try_wait` refuses although their phase has
        completed."""
        if self.chance.random() >= _REFUSALS:
            return None
        warps = lanes.shape.warp[lanes.sel]
        return warps % 2 == self.chance.randint(0, 1) if self.chance.random() < 0.5 else np.ones(lanes.n, np.bool_)


def make_order(schedule: str, seed: int, batch: int, shape: Shape) -> Order | None:
    """Return the order of a schedule for a batch of CTAs; None for lowest block first."""
    if schedule not in SEEDED:
        return None
    chance = random.Random(f"{schedule} {seed} {batch}")
    if schedule == "random":
        return Order("random", _partition(shape, chance), chance, fair=True)
    name, ranks, down, hasty = _ADVERSE[seed % len(_ADVERSE)] if seed < len(_ADVERSE) else chance.choice(_ADVERSE)
    return Order(name, _RANKED[ranks](shape, chance), chance, down, hasty=hasty)


def make_choices(order: Order | None) -> Choices:
    """Return what an order decides for engines and mbarriers."""
    if order is None:
        return Choices()
    return Choices(order.hasty, order.chance, order.draw_refusals) if order.fair else Choices(order.hasty)


def reverses_ctas(schedule: str, seed: int) -> bool:
    """Tell whether the last CTAs of a grid run first."""
    return schedule in SEEDED and seed % 2 == 1


def _rank_equally(shape: Shape, chance: random.Random) -> Array:
    return np.zeros(shape.lanes, np.int64)


def _reverse_warps(shape: Shape, chance: random.Random) -> Array:
    return shape.warps - 1 - shape.thread // 32


def _reverse_ctas(shape: Shape, chance: random.Random) -> Array:
    return (shape.ctas - 1 - shape.cta) * min(shape.ctas, _MOST_PARTS) // shape.ctas


def _order_ctas(shape: Shape, chance: random.Random) -> Array:
    return shape.cta * min(shape.ctas, _MOST_PARTS) // shape.ctas


def _starve_one(shape: Shape, chance: random.Random) -> Array:
    """Let one warp of every CTA run only when no other can, so that it always arrives last."""
    return (shape.thread // 32 == chance.randrange(shape.warps)).astype(np.int64)


def _prefer_odd(shape: Shape, chance: random.Random) -> Array:
    return 1 - shape.thread // 32 % 2


def _partition(shape: Shape, chance: random.Random) -> Array:
    """Split the warps at random places, mostly between warpgroups, or the CTAs."""
    if shape.ctas > 1 and shape.lanes <= _FEW and chance.random() < 0.3:
        return (shape.cta >= chance.randrange(shape.ctas)).astype(np.int64)
    unit = 4 if shape.warps > 4 and chance.random() < 0.7 else 1
    places = range(unit, shape.warps, unit)
    cuts = sorted(chance.sample(places, min(len(places), chance.randrange(_MOST_RANKS))))
    return np.searchsorted(np.array(cuts, np.int64), shape.thread // 32, "right")


_RANKED = {
    "same": _rank_equally, "last warp": _reverse_warps, "last CTA": _reverse_ctas, "first CTA": _order_ctas,
    "starve": _starve_one, "odd": _prefer_odd,
}  # fmt: skip
_LATE = frozenset[str]()
_COPIES = frozenset((BULK, COPIES, STORES))
PRODUCTS = frozenset((WGMMA, TCGEN05, TENSOR_STORES))
_ADVERSE = (
    ("consumers first", "same", True, _LATE),
    ("last warp first", "last warp", False, _LATE),
    ("producers first, copies at once", "same", False, _COPIES),
    ("one warp starves", "starve", False, _LATE),
    ("last CTA first, products at once", "last CTA", False, PRODUCTS),
    ("odd warps first", "odd", True, _LATE),
    ("one warp starves, consumers first, products at once", "starve", True, PRODUCTS),
    ("first CTA first", "first CTA", True, _LATE),
    ("last warp first, consumers first, copies at once", "last warp", True, _COPIES),
)
"""The orders of the adversarial schedule, by seed: each makes some warp or CTA the last, or the first, to arrive."""
