"""The statistics of a run as values, text and JSON: mix, bytes, operations, overlap."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.launch.results import Stats
from pyptx.sim.observers.statistics import Statistics
from tests.sim.observers.timeline.runs import BULK, HAND_OVER, HEAD

MMA = f"""{HEAD}.visible .entry k(.param .u64 data)
{{
    .reg .b32 %a<4>, %b<2>, %s, %t;
    .reg .f32 %d<4>;
    .reg .b64 %g;
    .shared .align 16 .b8 box[512];
    ld.param.u64 %g, [data];
    mov.b32 %a0, 0;
    mov.b32 %a1, 0;
    mov.b32 %a2, 0;
    mov.b32 %a3, 0;
    mov.b32 %b0, 0;
    mov.b32 %b1, 0;
    mov.f32 %d0, 0f00000000;
    mov.f32 %d1, 0f00000000;
    mov.f32 %d2, 0f00000000;
    mov.f32 %d3, 0f00000000;
    mov.u32 %t, %tid.x;
    mad.wide.u32 %g, %t, 16, %g;
    mov.u32 %s, box;
    mad.lo.u32 %s, %t, 16, %s;
    cp.async.cg.shared.global [%s], [%g], 16;
    cp.async.commit_group;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{%d0, %d1, %d2, %d3}};
    WAIT
    ret;
}}
"""


def stats_of(text: str, **launch: Any) -> tuple[Stats, Statistics]:
    result = sim.run(parse(text), args=[np.zeros(1024, "u4")], statistics=True, **launch)
    assert result.stats.statistics is not None
    assert result.timeline is None
    return result.stats, result.stats.statistics


def test_nothing_is_counted_unless_asked_for() -> None:
    stats = sim.run(parse(HAND_OVER), block=64, args=[np.zeros(4, "u4")]).stats
    assert stats.statistics is None
    assert stats.as_json()["lanes"] == 64
    assert "64 threads" in str(stats)


def test_the_mix_counts_every_instruction_of_a_warp_once() -> None:
    stats, report = stats_of(HAND_OVER, grid=3, block=64)
    assert sum(lanes for _, lanes in report.mix.values()) <= stats.lane_instructions
    warps, lanes = report.mix["integer"]
    assert (warps, lanes) == (3 * 3, 3 * 3 * 32)


def test_bytes_are_counted_by_space_and_by_engine() -> None:
    _, report = stats_of(BULK, grid=2, block=64, check="none")
    assert report.bytes["TMA loads"] == report.bytes["TMA stores"] == 2 * 512
    assert report.bytes["shared written"] == 2 * 64 * 8
    assert report.bytes["param read"] == 2 * 64 * 8
    assert "global read" not in report.bytes


def test_operations_of_tensor_cores() -> None:
    _, report = stats_of(MMA.replace("WAIT", "cp.async.wait_group 0;"), grid=2, block=32)
    assert report.tensor_flops == 2 * 2 * 16 * 8 * 16
    assert report.bytes["cp.async"] == report.bytes["shared written"] == 2 * 512


def test_a_copy_that_is_in_flight_during_a_product_overlaps_it() -> None:
    wait = "cp.async.wait_group 0;"
    _, after = stats_of(MMA.replace("WAIT", wait), block=32)
    _, before = stats_of(MMA.replace("WAIT", "").replace("    mma", f"    {wait}\n    mma"), block=32)
    assert (after.overlap.products, after.overlap.both, after.overlap.share) == (1, 1, 1.0)
    assert (before.overlap.products, before.overlap.both, before.overlap.share) == (1, 0, 0.0)
    assert after.overlap.copies > before.overlap.copies


def test_text_and_json_say_that_it_is_no_timing() -> None:
    stats, report = stats_of(MMA.replace("WAIT", "cp.async.wait_group 0;"), block=32)
    assert "not timing" in str(stats)
    assert "cp.async.cg.shared.global" in str(stats)
    document = json.loads(json.dumps(stats.as_json()))
    assert document["note"] == "hints about the program, not timing"
    assert document["tensor_flops"] == report.tensor_flops
    shared = next(item for item in document["accesses"] if item["space"] == "shared")
    assert (shared["wavefronts"], shared["ideal"], shared["factor"]) == (4, 4, 1.0)


def test_a_timeline_shows_the_factors_beside_the_lines() -> None:
    result = sim.run(parse(MMA.replace("WAIT", "")), block=32, args=[np.zeros(1024, "u4")], statistics=True,
                     timeline=True)  # fmt: skip
    assert result.timeline is not None
    assert {"banks": "1.0×", "sectors": "1.0×"} in result.timeline.marks.values()
