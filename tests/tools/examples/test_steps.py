"""What an iteration of an example's main loop does, from a run's counts by line."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from examples.parts.example import find_example
from pyptx.sim.observers.statistics.overlap import Overlap
from pyptx.sim.observers.statistics.report import LineAccess, Statistics
from pyptx.sim.observers.timeline.records import Line, RunRecord, Track, Transfer
from tools.examples.account import choose_run
from tools.examples.steps import Step, measure_step

# Two tiles with three steps each; a producer thread, and two warpgroups whose second skips a product once.
PTX = {
    "elect.sync _|%p3, 4294967295;": 1,
    "$load:": None,
    "mbarrier.try_wait.parity.shared.b64 %p5, [%r23], %r24;": 6,
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier [%r28], [%rd2, {%r21, %r19}], [%r26];": 6,
    "@%p7 bra $load;": 6,
    "mov.u32 %r55, %r4;": 8,
    "$tile:": None,
    "setp.lt.u32 %p11, %r55, 2;": 24,
    "@!%p11 bra $end;": 24,
    "mov.s32 %r56, 0;": 16,
    "$step:": None,
    "$wait:": None,
    "mbarrier.try_wait.parity.shared.b64 %p12, [%r58], %r40;": 48,
    "@!%p12 bra $wait;": 48,
    "@%p13 wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%f0}, %rd5, %rd6;": 44,
    "wgmma.wait_group.sync.aligned 1;": 48,
    "@%p17 bra $step;": 48,
    "bar.sync 1, 128;": 16,
    "barrier.cluster.wait;": 16,
    "bra.uni $tile;": 16,
    "$end:": None,
    "bar.sync 0;": 12,
}


def make_record(text: dict[str, int | None] = PTX) -> RunRecord:
    record = RunRecord("k", (2, 1, 1), (384, 1, 1), (2, 1, 1), "eager", "\n".join(text))
    record.ctas = [(0, 0, 0)]
    record.tracks = [Track(0, "TMA loads", True), Track(0, "warp 0", False), Track(0, "tcgen05", True)]
    record.lines = [Line(number, runs, 32, 0, None) for number, runs in enumerate(text.values(), 1) if runs is not None]
    return record


def make_statistics(*accesses: LineAccess) -> Statistics:
    return Statistics({}, {}, 0, accesses, Overlap(0, 0, 0, 0))


def find_line(word: str) -> int:
    return next(number for number, line in enumerate(PTX, 1) if word in line)


def test_a_step_is_of_all_warps_and_has_each_instruction_once() -> None:
    record = make_record()
    record.transfers = [Transfer(0, 0, 1, "2d multicast", find_line("cp.async"), 1, bytes=1000)] * 6
    step = measure_step(record, make_statistics())
    assert step == Step(
        2 * 2 * 64 * 256 * 16, 2000, Counter({"mbarrier": 1, "group": 1}), Counter(mbarrier=1),
        Counter({"bar": 1, "cluster barrier": 1}),
    )  # fmt: skip
    assert str(step) == (
        "a step: 1,048,576 FLOP, 2,000 bytes; waits: 1 mbarrier, 1 group; 1 mbarrier to load; "
        "1 bar, 1 cluster barrier more a tile"
    )


def test_products_of_one_thread_count_for_the_cta() -> None:
    text = {line.replace("wgmma.mma_async.sync.aligned.m64n256k16", "tcgen05.mma"): runs for line, runs in PTX.items()}
    record = make_record(text)
    record.transfers = [Transfer(2, 0, 1, "m128n256k16", find_line("wgmma.mma"), 1, flops=4096, count=4)] * 6
    step = measure_step(record, make_statistics())
    assert step is not None
    assert step.flops == 4096


def test_work_outside_loops_is_no_step() -> None:
    record = make_record()
    record.lines = [line for line in record.lines if line.number != find_line("wgmma.mma")]
    access = LineAccess(find_line("elect"), None, "ld.global.b32", "global", 1, 4, 4, 4, 128)
    inside = LineAccess(find_line("bar.sync 1"), None, "ld.global.b32", "global", 16, 4, 4, 4, 16 * 64)
    assert measure_step(record, make_statistics(access, replace(inside, bytes=127))) is None
    step = measure_step(record, make_statistics(access, inside))
    assert step is not None
    assert (step.flops, step.loaded) == (0, 8 * 64)
    assert measure_step(RunRecord("k", (1, 1, 1), (1, 1, 1), (1, 1, 1), "", ""), make_statistics()) is None


@pytest.mark.parametrize(
    ("name", "flops", "loaded"),
    [
        ("hopper/grouped_gemm", 2 * 128 * 256 * 64, (128 + 256) * 64 * 2),
        ("ampere/stream_k_gemm", 2 * 128 * 192 * 32, (128 + 192) * 32 * 2),
        # Half of what a pair of CTAs does.
        ("blackwell/persistent_gemm", 256 * 256 * 64, 256 * 64 * 2),
    ],
)
def test_steps_of_products_are_those_of_their_tiles(name: str, flops: int, loaded: int) -> None:
    example = find_example(name)
    report = example.simulate(choose_run(example), statistics=True, timeline=1024, check="none").report
    assert report.timeline is not None
    assert report.stats.statistics is not None
    step = measure_step(report.timeline.recorded, report.stats.statistics)
    assert step is not None
    assert (step.flops, step.loaded) == (flops, loaded)
