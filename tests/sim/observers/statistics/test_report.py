"""The statistics of a run as values, text and JSON: mix, bytes, operations, overlap."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.launch.results import Stats
from pyptx.sim.observers.statistics import Statistics
from pyptx.sim.observers.statistics.overlap import Overlap
from pyptx.sim.observers.statistics.report import LineAccess
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


PYTHON = "/home/me/kernel.py", 7
STORE = "st.global.v4.u32.with.a.longer.name"
REPORT = Statistics(
    {"integer": (30, 960), "memory": (10, 80), "idle": (0, 0), "control": (60, 1920)},
    {"shared read": 384, "TMA loads": 12},
    4096,
    (
        LineAccess(3, PYTHON, "ld.shared.u32", "shared", 1, 4, 2, 4, 128),
        LineAccess(4, PYTHON, "ld.shared.u32", "shared", 2, 8, 2, 5, 256),
        LineAccess(5, None, STORE[:33], "global", 1, 12, 4, 12, 512),
        LineAccess(5, None, "atom", "shared", 0, 0, 0, 0, 0),
        LineAccess(6, None, STORE[:34], "global", 3, 20, 5, 9, 96),
        LineAccess(7, None, "ld.global.u32", "global", 1, 4, 4, 4, 128),
    ),
    Overlap(copies=9, products=4, both=3, steps=20),
)
TEXT = """statistics (hints about the program, not timing)

instructions of warps                  warps   share   lanes
  control                                 60   60.0%  100.0%
  integer                                 30   30.0%  100.0%
  memory                                  10   10.0%   25.0%

bytes
  TMA loads                               12
  shared read                            384
  tensor cores (operations)             4096

  line  instruction                       space    requests    pieces     ideal  factor
     3  ld.shared.u32                     shared          3        12         4    3.0×  kernel.py:7
     5  st.global.v4.u32.with.a.longer.na global          1        12         4    3.0×
     5  atom                              shared          0         0         0    0.0×
     6  st.global.v4.u32.with.a.longer.n… global          3        20         5    4.0×
     7  ld.global.u32                     global          1         4         4    1.0×

engines: copies in flight for 9 steps, products for 4, both for 3 (75% of the products'), of 20"""


def test_the_text_has_shares_and_sums_the_accesses_of_a_python_line() -> None:
    assert [line.rstrip() for line in str(REPORT).split("\n")] == TEXT.split("\n")
    empty = Statistics({}, {}, 0, (), Overlap(0, 0, 0, 20))
    assert [line.split() for line in str(empty).split("\n")[1:]] == [
        [], ["instructions", "of", "warps", "warps", "share", "lanes"], [], ["bytes"]
    ]  # fmt: skip
    copies = Statistics({}, {}, 0, (), Overlap(5, 0, 0, 20))
    assert str(copies).endswith("engines: copies in flight for 5 steps, products for 0, both for 0 (0% of the "
                                "products'), of 20")  # fmt: skip


def test_accesses_by_line_and_by_cost() -> None:
    assert [item.line for item in REPORT.conflicts] == [4, 3]
    assert [item.line for item in REPORT.uncoalesced] == [6, 5]
    assert (REPORT.at(5, "global").opcode, REPORT.at(5, "shared").opcode) == (STORE[:33], "atom")
    assert [REPORT.at(line, "global").factor for line in (5, 6, 7)] == [3, 4, 1]
    assert REPORT.at(5, "shared").factor == 1
    assert (REPORT.by_source("shared"), REPORT.by_source("global")) == ({PYTHON: (12, 4)}, {})
    sectors = {line: {"sectors": factor} for line, factor in ((6, "4.0×"), (7, "1.0×"))}
    both = {"sectors": "3.0×", "banks": "1.0×"}
    assert REPORT.marks() == {3: {"banks": "2.0×"}, 4: {"banks": "4.0×"}, 5: both, **sectors}


def test_the_json_has_all_values() -> None:
    document = REPORT.as_json()
    assert document["mix"]["memory"] == {"warps": 10, "lanes": 80}
    assert (document["bytes"], document["tensor_flops"]) == (REPORT.bytes, 4096)
    assert document["accesses"][1] == {
        "line": 4, "source": [*PYTHON], "opcode": "ld.shared.u32", "space": "shared", "requests": 2, "wavefronts": 8,
        "ideal": 2, "factor": 4.0, "most": 5, "bytes": 256,
    }  # fmt: skip
    assert (document["accesses"][2]["source"], document["accesses"][2]["sectors"]) == (None, 12)
    assert document["overlap"] == {"copies": 9, "products": 4, "both": 3, "steps": 20, "share": 0.75}
