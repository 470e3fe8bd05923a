"""Engines on the timelines of the example kernels: the same transfers and notifications in every schedule."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from examples.parts.example import find_example
from pyptx import Kernel, sim
from pyptx.parser import parse
from pyptx.sim.observers.timeline import Timeline
from pyptx.sim.observers.timeline.records import RunRecord, Transfer
from tests.sim.observers.timeline.runs import HEAD
from tests.sim.observers.timeline.test_perfetto import check

HOPPER_GEMM = find_example("hopper/cluster_gemm")
MMA_GEMM = find_example("ampere/pipelined_gemm")
TCGEN05_GEMM = find_example("blackwell/two_sm_gemm")

SCHEDULES = ["eager", "lazy", "random", "adversarial"]


@cache
def gemm(name: str, schedule: str) -> Timeline:
    """Return the timeline of a product of 512 x 256 x 128: two clusters, or four CTAs."""
    kernels: dict[str, Kernel] = {"hopper": HOPPER_GEMM.make(), "tcgen05": TCGEN05_GEMM.make(), "mma": MMA_GEMM.make()}
    a, b = (np.ones((rows, 128), ml_dtypes.bfloat16) for rows in (512, 256))
    timeline = kernels[name].simulate(a, b, schedule=schedule, timeline=True, check="none").timeline
    assert timeline is not None
    return timeline


def on(record: RunRecord, engine: str, cta: int = 0) -> list[Transfer]:
    return [
        t for t in record.transfers if record.tracks[t.track].name == engine and record.tracks[t.track].cta == cta
    ]  # fmt: skip


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_hopper_gemm(schedule: str) -> None:
    timeline = gemm("hopper", schedule)
    check(timeline.perfetto())
    run_record = timeline.recorded
    loads, products, stores = (on(run_record, name) for name in ("TMA loads", "wgmma", "TMA stores"))
    # Two steps along K: each has a tile of a, and half a tile of b for both CTAs.
    assert [(t.label, t.bytes, t.barrier) for t in loads] == [
        ("2d", 16384, "full[0]"), ("2d multicast", 16384, "full[0]"), ("2d", 16384, "full[1]"),
        ("2d multicast", 16384, "full[1]"),
    ]  # fmt: skip
    # Two warpgroups, a group of four products for each step.
    assert [(t.label, t.count, t.flops) for t in products] == [("m64n256k16", 4, 4 * 2 * 64 * 256 * 16)] * 4
    assert {run_record.tracks[t.issuer].name for t in products} == {"warp 4", "warp 8"}
    assert sum(t.bytes for t in stores) == 128 * 256 * 2
    assert all(t.has_wait for t in run_record.transfers)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_blackwell_gemm_of_two_ctas(schedule: str) -> None:
    timeline = gemm("tcgen05", schedule)
    check(timeline.perfetto())
    run_record = timeline.recorded
    for cta in (0, 2):
        products = on(run_record, "tcgen05", cta)
        assert [(t.label, t.count, t.barrier) for t in products] == [
            ("m256n256k16", 4, "empty[0]"), ("m256n256k16", 4, "empty[1]"),
        ]  # fmt: skip
        assert sum(t.flops for t in products) == 2 * 256 * 256 * 128
        assert on(run_record, "tcgen05", cta + 1) == []
    assert {w.barrier for w in run_record.waits} == {"cluster barrier", "full[0]", "done[0]"}
    # The last products arrive at a barrier without waiters, and at the one of the results.
    assert all(t.has_wait for t in run_record.transfers)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_ampere_gemm(schedule: str) -> None:
    run_record = gemm("mma", schedule).recorded
    copies = on(run_record, "cp.async")
    assert {run_record.tracks[t.issuer].name for t in copies} == {f"warp {n}" for n in range(8)}
    # A CTA of 128 x 256 results takes 128 rows of one matrix and 256 of the other, then three stages of zeros.
    assert sum(t.bytes for t in copies) == (128 + 256) * (128 * 2 + 3 * 64)
    assert all(t.has_wait for t in copies)


@pytest.mark.parametrize("name", ["hopper", "tcgen05", "mma"])
def test_logical_time_does_not_depend_on_the_schedule(name: str) -> None:
    ends = {schedule: gemm(name, schedule).recorded.end for schedule in SCHEDULES if schedule in ("eager", "lazy")}
    assert len(set(ends.values())) == 1


def test_the_lines_of_python_are_shown() -> None:
    timeline = gemm("hopper", "lazy")
    (file,) = [name for name in timeline.recorded.texts if name.endswith("cluster_gemm.py")]
    text = timeline.recorded.texts[file]
    waits = {
        line.python[1]: line.wait_steps for line in timeline.recorded.lines if line.python and line.python[0] == file
    }
    worst = max(waits, key=lambda number: waits[number])
    assert "ptx.cluster.sync()" in text[worst - 1]
    page = timeline.html()
    assert "Wait until the consumers have read the stage" in page


def test_copies_that_arrive_at_an_mbarrier_end_with_its_phase() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 from)
{{
    .reg .b32 %t, %a;
    .reg .b64 %g;
    .reg .pred %p;
    .shared .align 8 .b64 bar;
    .shared .align 16 .b8 box[512];
    ld.param.u64 %g, [from];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %g, %t, 16, %g;
    mov.u32 %a, box;
    mad.lo.u32 %a, %t, 16, %a;
    setp.eq.u32 %p, %t, 0;
    @%p mbarrier.init.shared::cta.b64 [bar], 32;
    bar.warp.sync 0xffffffff;
    cp.async.ca.shared.global [%a], [%g], 16;
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;
    @!%p bra again;
    ret;
}}
"""
    for schedule in ("eager", "lazy"):
        args: list[Any] = [np.zeros(128, "u4")]
        timeline = sim.run(parse(text), grid=3, block=32, args=args, schedule=schedule, timeline=2).timeline
        assert timeline is not None
        for cta in (0, 1):
            (copy,) = on(timeline.recorded, "cp.async", cta)
            assert (copy.bytes, copy.barrier, copy.has_wait) == (512, "bar", True)


def test_a_hazard_stands_at_the_time_at_which_it_was_found() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t, %a, %n;
    .reg .pred %p;
    .shared .align 4 .b32 box[64];
    mov.u32 %t, %tid.x;
    mov.u32 %n, 0;
    mov.u32 %a, box;
    mad.lo.u32 %a, %t, 4, %a;
again:
    st.shared.u32 [%a], %t;
    setp.eq.u32 %p, %n, 3;
    @%p xor.b32 %a, %a, 128;
    add.u32 %n, %n, 1;
    setp.lt.u32 %p, %n, 5;
    @%p bra again;
    ret;
}}
"""
    args: list[Any] = [np.zeros(4, "u4")]
    result = sim.run(parse(text), block=64, args=args, timeline=True, check="all", on_hazard="report")
    assert result.timeline is not None
    events = check(result.timeline.perfetto())["i"]
    assert [e["name"] for e in events] == ["PTX0901 data race"]
    # Four steps before the loop, six per iteration; the fifth one writes the register that the other warp has written.
    assert 4 + 4 * 6 <= events[0]["ts"] < 4 + 5 * 6
