"""The record of a run: clocks, waits and who ended them, transfers from issue to the first wait."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.observers.timeline import Stopped
from pyptx.sim.observers.timeline import record as record_module
from pyptx.sim.observers.timeline.findings import Spot, locate_stop
from tests.messages import raises
from tests.sim.observers.timeline.runs import BULK, HAND_OVER, HEAD, find_track, timeline

SCHEDULES = ["eager", "lazy"]


def line_of(text: str, words: str) -> int:
    return next(index for index, line in enumerate(text.splitlines(), 1) if words in line)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_ends_when_the_last_arrival_has_run(schedule: str) -> None:
    record = timeline(HAND_OVER, 64, schedule=schedule)
    run_record = record.recorded
    (wait,) = [w for w in run_record.waits if w.barrier == "full[1]"]
    assert (wait.track, wait.phase) == (find_track(record, 0, "warp 1"), 0)
    # Both warps run 4 steps, including the barrier, then test and branch: 6. Warp 0 adds three times and arrives.
    assert (wait.start, wait.end) == (6, 10)
    assert wait.line == line_of(HAND_OVER, "try_wait")
    assert wait.cause is not None
    assert (wait.cause.track, wait.cause.time) == (find_track(record, 0, "warp 0"), 9)


def test_a_record_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(most: int) -> tuple[int, bool]:
        monkeypatch.setattr(record_module, "MOST_RECORDS", most)
        run_record = timeline(BULK, 64).recorded
        return sum(map(len, (run_record.runs, run_record.waits, run_record.transfers))), run_record.is_truncated

    whole, is_truncated = count(1000)
    assert not is_truncated
    assert [count(most) for most in range(whole + 1)] == [*((most, True) for most in range(whole)), (whole, False)]


def test_a_warp_that_comes_early_to_a_barrier_waits_for_the_last_one() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t;
    .reg .pred %p;
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 32;
    @%p bra meet;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
meet:
    bar.sync 3;
    ret;
}}
"""
    record = timeline(text, 64)
    (wait,) = record.recorded.waits
    assert (wait.barrier, wait.track) == ("bar 3", find_track(record, 0, "warp 0"))
    assert (wait.start, wait.end) == (4, 6)
    assert wait.cause is not None
    assert wait.cause.track == find_track(record, 0, "warp 1")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_copies_reach_from_issue_to_the_first_wait(schedule: str) -> None:
    record = timeline(BULK, 64, schedule=schedule)
    run_record = record.recorded
    load, store = sorted(run_record.transfers, key=lambda t: t.start)
    assert (run_record.tracks[load.track].name, load.bytes, load.barrier) == ("TMA loads", 512, "bar")
    assert (run_record.tracks[store.track].name, store.bytes, store.barrier) == ("TMA stores", 512, "")
    assert load.line == line_of(BULK, "complete_tx::bytes")
    assert load.issuer == store.issuer == find_track(record, 0, "warp 0")
    # Five steps and the branch, init, arrive; the copy is the ninth. A warp reconverges, and its wait is the next step.
    assert (load.start, load.end) == (8, 10)
    assert load.has_wait
    assert store.has_wait
    assert store.end > store.start


def test_what_nobody_waits_for_is_told() -> None:
    text = BULK.replace("    cp.async.bulk.wait_group 0;\n", "")
    assert text != BULK
    last = timeline(text, 64).recorded.transfers[-1]
    assert not last.has_wait


def test_lines_count_warps_lanes_and_waits() -> None:
    run_record = timeline(HAND_OVER, 64).recorded
    by_line = {line.number: line for line in run_record.lines}
    adds = by_line[line_of(HAND_OVER, "add.u32")]
    assert (adds.warps, adds.lanes) == (1, 32)
    assert by_line[line_of(HAND_OVER, "setp.eq")].lanes == 64
    assert by_line[line_of(HAND_OVER, "try_wait")].wait_steps == 4


def test_every_step_of_a_warp_is_in_one_run() -> None:
    run_record = timeline(HAND_OVER, 64).recorded
    for track in range(len(run_record.tracks)):
        runs = sorted((r for r in run_record.runs if r.track == track), key=lambda r: r.start)
        assert all(r.end - r.start == r.steps for r in runs)
        assert all(first.end <= second.start for first, second in itertools.pairwise(runs))


def test_nothing_is_recorded_unless_asked_for() -> None:
    result = sim.run(parse(HAND_OVER), block=64, args=[np.zeros(4, "u4")])
    assert result.timeline is None


def test_as_many_ctas_are_recorded_as_asked_for() -> None:
    for number, expected in ((1, 1), (3, 3), (99, 5)):
        result = sim.run(parse(HAND_OVER), grid=5, block=64, args=[np.zeros(4, "u4")], timeline=number)
        assert result.timeline is not None
        run_record = result.timeline.recorded
        assert (len(run_record.ctas), run_record.ctas_left_out) == (expected, 5 - expected)


def test_recording_changes_no_result() -> None:
    def run(**options: Any) -> list[int]:
        data = np.arange(256, dtype=np.uint32)
        sim.run(parse(BULK), block=64, args=[data], **options)
        return data.tolist()

    assert run() == run(timeline=True)


def test_a_run_that_hangs_leaves_its_timeline_with_the_error() -> None:
    text = HAND_OVER.replace("    mbarrier.arrive.shared::cta.b64 _, [full+8];\n", "")
    with raises(PtxError) as excinfo:
        timeline(text, 64, check="none")
    assert isinstance(excinfo.value, Stopped)
    run_record = excinfo.value.timeline.recorded
    (wait,) = [w for w in run_record.waits if not w.is_over]
    assert (wait.barrier, wait.phase, wait.cause) == ("full[1]", 0, None)
    assert wait.track == find_track(excinfo.value.timeline, 0, "warp 1")
    assert wait.line == line_of(text, "try_wait")
    assert wait.end == run_record.end
    # Timeouts are not steps: the warp has waited since its seventh step.
    assert wait.start == 6
    assert not [r for r in run_record.runs if r.track == wait.track and r.start >= 6]


LATE = f"""{HEAD}.visible .entry k(.param .u64 from)
{{
    .reg .b32 %t, %a, %b, %n;
    .reg .b64 %g;
    .reg .pred %p<3>;
    .shared .align 8 .b64 bar;
    .shared .align 128 .b8 box[512];
    mov.u32 %t, %tid.x;
    mov.u32 %a, box;
    mov.u32 %b, bar;
    ld.param.u64 %g, [from];
    setp.ne.u32 %p0, %t, 0;
    @%p0 bra meet;
    mbarrier.init.shared::cta.b64 [bar], 1;
meet:
    bar.sync 0;
    @%p0 bra again;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    add.u32 %n, %t, 1;
    add.u32 %n, %n, 1;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%g], 512, [%b];
    add.u32 %n, %n, 1;
    add.u32 %n, %n, 1;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;
    @!%p1 bra again;
    ret;
}}
"""


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_copy_that_is_issued_last_ends_the_wait_and_ends_with_it(schedule: str) -> None:
    record = timeline(LATE, 64, schedule=schedule)
    run_record = record.recorded
    (load,) = run_record.transfers
    (wait,) = [w for w in run_record.waits if w.barrier == "bar" and w.track == find_track(record, 0, "warp 1")]
    assert wait.cause is not None
    assert (wait.cause.track, wait.cause.time, wait.end) == (load.track, load.start, load.start)
    # Warp 1 waits for it two steps before warp 0 does; the first one counts.
    assert load.end == wait.end + 1
    assert load.line == line_of(LATE, "complete_tx::bytes")


def test_groups_end_with_the_wait_that_asks_for_them() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 from)
{{
    .reg .b32 %t, %a;
    .reg .b64 %g;
    .shared .align 16 .b8 box[1024];
    ld.param.u64 %g, [from];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %g, %t, 16, %g;
    mov.u32 %a, box;
    mad.lo.u32 %a, %t, 16, %a;
    cp.async.ca.shared.global [%a], [%g], 16;
    cp.async.commit_group;
    cp.async.ca.shared.global [%a+512], [%g], 16;
    cp.async.commit_group;
    cp.async.wait_group 1;
    add.u32 %t, %t, 1;
    ld.shared.u32 %t, [%a];
    cp.async.wait_group 0;
    ret;
}}
"""
    first, second = timeline(text, 32).recorded.transfers
    assert (first.start, second.start) == (5, 7)
    assert first.end < second.end
    assert first.has_wait
    assert second.has_wait


def test_a_round_of_a_barrier_knows_nothing_of_the_round_before() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 out)
{{
    .reg .b32 %t;
    .reg .pred %p, %q;
    mov.u32 %t, %tid.x;
    setp.lt.u32 %p, %t, 64;
    @!%p bra others;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
    add.u32 %t, %t, 1;
    bar.sync 1, 64;
    bar.sync 2, 128;
    ret;
others:
    bar.sync 1, 64;
    bar.sync 2, 128;
    ret;
}}
"""
    record = timeline(text, 128, check="none")
    run_record = record.recorded
    assert [w for w in run_record.waits if w.barrier == "bar 1"] == []
    late = [w for w in run_record.waits if w.barrier == "bar 2"]
    assert {w.track for w in late} == {find_track(record, 0, "warp 2"), find_track(record, 0, "warp 3")}


def test_a_timeline_is_a_line_of_counts_and_a_frame_in_a_notebook() -> None:
    found = timeline(HAND_OVER, 64)
    assert str(found).partition(" (")[0] == "k: 1 CTA, 13 steps, 3 runs, 1 wait, 0 transfers"
    assert found._repr_html_() == found.frame()  # pyright: ignore[reportPrivateUsage]


def test_an_mbarrier_without_a_variable_has_its_address_as_a_name() -> None:
    text = HAND_OVER.replace("    .shared .align 8 .b64 full[2];\n", "").replace("[full+8]", "[%a]")
    text = text.replace(".reg .b32 %t;", ".reg .b32 %t, %a;\n    mov.u32 %a, 1024;")
    assert [wait.barrier for wait in timeline(text, 64, shared=8).recorded.waits] == ["0x400"]


def test_what_stopped_a_run_stands_at_the_line_that_names_it() -> None:
    text = HAND_OVER.replace("    add.u32 %t, %t, 1;\n    mbarrier.arrive", "    trap;\n    mbarrier.arrive")
    with pytest.raises(Stopped) as caught:
        timeline(text, 64)
    recorded = caught.value.timeline.recorded
    (diagnostic,) = caught.value.diagnostics
    assert locate_stop(recorded, diagnostic) == Spot(line_of(text, "trap;"), -1, 0)
    unknown = dataclasses.replace(diagnostic, origin=None)
    assert locate_stop(recorded, unknown) == Spot(0, -1, 0)
