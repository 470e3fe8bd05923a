"""Barriers of CTAs that complete apart, and barriers compared with a model of one CTA."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.base.lanes import Shape
from pyptx.sim.state.barriers import ClusterBarriers, CtaBarriers, Waiter
from tests.sim.kernels import SCHEDULES, kernel


def test_threads_counted_in_one_cta_remain_counted_while_another_completes() -> None:
    """Odd lanes have left. The barrier of CTA 1 needs those of both warps; its second warp waits for CTA 0."""
    body = """and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 64, %t;
@%p1 exit;
setp.eq.u32 %p2, %r2, 0; setp.lt.or.u32 %p3, %t, 32, %p2; mov.u64 %rd1, flag;
@%p3 bra meet;
poll: ld.acquire.gpu.global.u32 %r4, [%rd1]; setp.eq.u32 %p4, %r4, 0;
@%p4 bra poll;
meet: bar.sync 1, 64;
setp.eq.and.u32 %p5, %t, 0, %p2;
@%p5 st.release.gpu.global.u32 [%rd1], 1;
mul.wide.u32 %rd2, %r2, 256; add.u64 %o, %o, %rd2; add.u32 %r3, %r3, 1; st.global.u32 [%o], %r3;"""
    for schedule, seed in SCHEDULES:
        out = np.zeros(128, np.uint32)
        sim.run(
            parse(kernel(body, module=".global .u32 flag = 0;")),
            grid=2,
            block=64,
            args=[out],
            schedule=schedule,
            seed=seed,
            max_steps=100_000,
        )
        assert out.tolist() == [0 if n % 2 else n + 1 for n in range(128)]


COUNTS = {0: None, 3: 64, 7: 96, 15: 32}
"""The count of each barrier in the model; 96 is that of all warps of a CTA of 70 threads."""


class Model:
    """The barriers of one CTA, one lane at a time."""

    def __init__(self, warps: dict[int, int]) -> None:
        self.warps = warps
        self.live = set(warps)
        self.arrivals: defaultdict[int, list[int]] = defaultdict(list)
        self.votes: defaultdict[int, int] = defaultdict(int)

    def reset(self, number: int) -> None:
        self.arrivals[number] = []
        self.votes[number] = 0

    def is_complete(self, number: int) -> bool:
        """Tell whether a barrier has all arrivals: a count includes lanes that exited in warps that arrived."""
        arrivals, count = self.arrivals[number], COUNTS[number]
        if not arrivals or count in (None, 96):
            return len(arrivals) >= len(self.live) and bool(arrivals)
        warps = {self.warps[lane] for lane in arrivals}
        absent = [lane for lane, warp in self.warps.items() if warp in warps and lane not in {*self.live, *arrivals}]
        return len(arrivals) + len(absent) >= (count or 0)


@pytest.mark.parametrize("seed", range(12))
def test_barriers_of_several_ctas_complete_as_those_of_each(seed: int) -> None:
    chance, shape = random.Random(seed), Shape((70, 1, 1), 3)
    barriers = CtaBarriers(shape)
    by_cta = [np.flatnonzero(shape.cta == cta).tolist() for cta in range(3)]
    models = [Model({lane: int(shape.thread[lane]) // 32 for lane in lanes}) for lanes in by_cta]
    waiting: dict[int, tuple[int, set[int]]] = {}
    for step in range(150):
        blocked = set[int]().union(*(lanes for _, lanes in waiting.values()))
        warps = {cta: chance.randrange(3) for cta in chance.sample(range(3), chance.randint(1, 3))}
        chosen = sorted(
            lane
            for cta, warp in warps.items()
            for lane in models[cta].live - blocked
            if models[cta].warps[lane] == warp
        )
        if not chosen:
            continue
        lanes, number, votes = shape.select_index(np.array(chosen)), chance.choice([*COUNTS]), np.array(chosen) % 3 == 0
        if chance.random() < 0.06:
            lanes = shape.select_index(np.array(chosen[:1]))
            barriers.remove_lanes(lanes)
            models[int(lanes.cta[0])].live.remove(chosen[0])
        else:
            barriers.arrive(lanes, number, COUNTS[number], votes if number == 3 else None)
            for lane in chosen:
                models[int(shape.cta[lane])].arrivals[number].append(lane)
                models[int(shape.cta[lane])].votes[number] += number == 3 and lane % 3 == 0
            if chance.random() < 0.7:
                barriers.waiters.setdefault(number, []).append(Waiter(lanes, step, 0, 0))
                waiting[step] = number, set(chosen)
        for item in COUNTS:
            ready, complete, arrivals, true_lanes = barriers.release(item)
            assert arrivals.tolist() == [len(model.arrivals[item]) for model in models]
            assert true_lanes.tolist() == [model.votes[item] for model in models]
            assert complete.tolist() == [cta for cta, model in enumerate(models) if model.is_complete(item)]
            expected: dict[int, set[int]] = {}
            for waiter, (place, members) in waiting.items():
                free = {lane for lane in members if place == item and shape.cta[lane] in complete}
                if free:
                    expected[waiter] = free
                    members -= free
            assert {waiter.pc: set(lanes.index.tolist()) for waiter, lanes in ready} == expected
            for cta in map(int, complete):
                models[cta].reset(item)
        assert barriers.pending == {item for item in COUNTS if any(model.arrivals[item] for model in models)}


@pytest.mark.parametrize("seed", range(4))
def test_lanes_of_a_cluster_wait_until_all_that_run_have_arrived(seed: int) -> None:
    chance, shape = random.Random(seed), Shape((20, 1, 1), 6)
    barriers = ClusterBarriers(shape, 2)
    running = [set(np.flatnonzero(shape.cta // 2 == cluster).tolist()) for cluster in range(3)]
    arrived, phases = [set[int]() for _ in running], [0, 0, 0]
    for step in range(400):
        free = [lane for lanes, members in zip(running, arrived, strict=True) for lane in lanes - members]
        chosen = sorted(chance.sample(sorted(free), min(len(free), chance.randint(1, 30))))
        lanes = shape.select_index(np.array(chosen))
        if step % 20 == 7:
            lanes = shape.select_index(np.array(chosen[:1]))
            cluster = int(barriers.find_cluster(lanes)[0])
            assert chosen[0] in running[cluster]
            running[cluster].remove(chosen[0])
            barriers.live[cluster] -= 1
            barriers.advance_phase()
        else:
            barriers.arrive(lanes)
            barriers.waiters.append(Waiter(lanes, step, 0, 0))
            for lane in chosen:
                arrived[int(shape.cta[lane]) // 2].add(lane)
        expected = set[int]()
        for cluster, members in enumerate(arrived):
            if members and members == running[cluster]:
                phases[cluster] += 1
                expected |= members
                members.clear()
        assert barriers.phase.tolist() == phases
        released = [lane for _, part in barriers.release() for lane in part.index.tolist()]
        assert sorted(released) == sorted(expected)
        waiting = sorted(lane for item in barriers.waiters for lane in item.lanes.index.tolist())
        assert waiting == sorted(set[int]().union(*arrived))
    assert min(phases) > 3


def test_a_lane_that_runs_alone_ends_a_phase_and_one_that_never_arrived_passes() -> None:
    shape = Shape((1, 1, 1), 2)
    barriers, lanes = ClusterBarriers(shape, 2), shape.select_index(np.arange(2))
    assert barriers.has_passed(lanes).tolist() == [True, True]
    barriers.live[0] = 1
    barriers.arrive(shape.select_index(np.array([0])))
    assert barriers.phase.tolist() == [1]
    barriers.live[0] = 0
    barriers.advance_phase()
    assert barriers.phase.tolist() == [1]
