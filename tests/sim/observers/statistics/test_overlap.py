"""Overlap of copies and products, compared with counting steps one by one."""

from __future__ import annotations

import random

import pytest

from pyptx.sim.observers.statistics.overlap import Overlap, measure_overlap
from pyptx.sim.observers.timeline.records import Run, RunRecord, Track, Transfer

COPIES, PRODUCTS = ("TMA loads", "TMA stores", "cp.async"), ("wgmma", "tcgen05")
Spans = list[tuple[int, int]]


def draw_spans(chance: random.Random, most: int) -> Spans:
    starts = [chance.randint(3, 40) for _ in range(chance.randint(0, most))]
    return [(start, start + chance.randint(1, 8)) for start in starts]


def list_steps(spans: Spans) -> set[int]:
    return {step for start, end in spans for step in range(start, end)}


@pytest.mark.parametrize("seed", range(30))
def test_overlap_is_counted_per_cta(seed: int) -> None:
    chance = random.Random(seed)
    record = RunRecord("k", (3, 1, 1), (64, 1, 1), (1, 1, 1), "lazy", "")
    products: list[tuple[int, int, int]] = []
    copies = multiplies = both = steps = 0
    for cta in range(3):
        record.ctas.append((cta, 0, 0))
        moving, working, running = Spans(), Spans(), draw_spans(chance, 4)
        for name in chance.sample((*COPIES, *PRODUCTS), 3):
            spans = draw_spans(chance, 3)
            (moving if name in COPIES else working).extend(spans)
            record.transfers += [Transfer(len(record.tracks), *span, "", 1, 0) for span in spans]
            record.tracks.append(Track(cta, name, True))
        record.runs += [Run(len(record.tracks), *span, "", (1, 2), 32, 1) for span in running]
        record.tracks.append(Track(cta, "warp 0", False))
        own = draw_spans(chance, 2)
        products += [(cta, *span) for span in own]
        moving_steps, working_steps = list_steps(moving), list_steps([*working, *own])
        copies, multiplies = copies + len(moving_steps), multiplies + len(working_steps)
        both += len(moving_steps & working_steps)
        steps += max((end for _, end in running), default=0) - min((start for start, _ in running), default=0)
    chance.shuffle(record.transfers)
    assert measure_overlap(record, products) == Overlap(copies, multiplies, both, steps)


def test_the_share_is_that_of_the_time_of_products() -> None:
    assert Overlap(copies=9, products=4, both=3, steps=20).share == 0.75
    assert Overlap(copies=9, products=0, both=0, steps=20).share == 0
