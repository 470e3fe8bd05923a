"""Lanes of a warp that reach one warp-wide instruction at several places: with the same qualifiers and the same mask
they execute it together (vote.sync, match.sync, redux.sync, shfl.sync: Description)."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.base.lanes import Shape
from pyptx.sim.state.meetings import Meeting, wrap_warp_wide
from tests.sim.kernels import SCHEDULES, assert_reported, by_schedule, codes, kernel

T = np.arange(64)
FULL = 0xFFFFFFFF
APART = """mul.lo.u32 %r1, %t, 3; and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0; setp.gt.u32 %p2, %t, 40; {before}
@%p1 bra even;
{odd}
bra.uni done;
even: {even}
done: st.global.u32 [%o], %r5;"""


def bits(mask: np.ndarray) -> list[int]:
    """Return, for every thread, which lanes of its warp are selected."""
    return [sum(1 << int(t % 32) for t in T[thread // 32 == T // 32] if mask[t]) for thread in T]


def make_branches(odd: str, even_code: str, before: str = "") -> str:
    return kernel(APART.format(odd=odd, even=even_code, before=before))


def outputs(text: str) -> list[list[int]]:
    """Run a kernel under every schedule, without findings; return its distinct results."""
    module, outcomes = parse(text), list[list[int]]()
    for schedule, seed in SCHEDULES:
        out = np.zeros(64, np.uint32)
        result = sim.run(module, block=64, args=[out], schedule=schedule, seed=seed, max_steps=100_000)
        assert result.hazards == []
        if out.tolist() not in outcomes:
            outcomes.append(out.tolist())
    return outcomes


@pytest.mark.parametrize(
    ("odd", "even_code", "expected"),
    [
        ("redux.sync.add.u32 %r5, %r1, -1;", "redux.sync.add.u32 %r5, %t, 0xffffffff;",
         [int(np.where(T % 2, 3 * T, T)[t // 32 == T // 32].sum()) for t in T]),
        ("shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;", "shfl.sync.bfly.b32 %r5|%p3, %t, 1, 31, -1;",
         [t ^ 1 if t & 1 else 3 * (t ^ 1) for t in T]),
        ("vote.sync.ballot.b32 %r5, %p2, -1;", "vote.sync.ballot.b32 %r5, !%p2, -1;",
         bits(np.where(T % 2, T > 40, T <= 40))),
        ("match.any.sync.b32 %r5, 7, -1;", "mov.u32 %r6, 7; match.any.sync.b32 %r5, %r6, -1;", [FULL] * 64),
        ("elect.sync %r5|%p3, -1;", "elect.sync %r5|%p3, -1; @%p3 add.u32 %r5, %r5, 100;",
         [100 if t in (0, 32) else 0 for t in T]),
    ],
)  # fmt: skip
def test_two_branches_execute_it_together(odd: str, even_code: str, expected: list[int]) -> None:
    assert outputs(make_branches(odd, even_code)) == [[int(value) for value in expected]]


@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize("least", [1, 16, 31])
def test_ranges_of_lanes_and_single_lanes_meet(least: int, block: int) -> None:
    body = f"""and.b32 %r2, %t, 31; setp.lt.u32 %p1, %r2, {least}; mul.lo.u32 %r1, %t, 3;
@%p1 bra low;
redux.sync.add.u32 %r5, %r1, -1;
shfl.sync.idx.b32 %r6, %r1, 0, 31, -1;
bra.uni done;
low: redux.sync.add.u32 %r5, %t, -1;
shfl.sync.idx.b32 %r6, %t, 31, 31, -1;
done: shl.b32 %r6, %r6, 16; or.b32 %r5, %r5, %r6; st.global.u32 [%o], %r5;"""
    threads = T[:block]
    low = threads % 32 < least
    first, last = threads // 32 * 32, threads // 32 * 32 + 31
    contributions = np.where(low, threads, 3 * threads)
    total = np.array([contributions[threads // 32 == t // 32].sum() for t in threads])
    for schedule, seed in SCHEDULES:
        out = np.zeros(block, np.uint32)
        sim.run(parse(kernel(body)), block=block, args=[out], schedule=schedule, seed=seed)
        assert out.tolist() == (total | contributions[np.where(low, last, first)] << 16).tolist()


def test_lanes_meet_again_in_every_round_of_a_loop() -> None:
    text = make_branches("add.u32 %r5, %r5, 1; redux.sync.add.u32 %r5, %r5, -1;\nmov.u32 %r8, %r5; ",
                 "l: redux.sync.add.u32 %r5, %r5, -1;\nadd.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 2; @%p3 bra l;",
                 "mov.u32 %r5, 1; mov.u32 %r9, 0;")  # fmt: skip
    text = text.replace("bra.uni done;", "redux.sync.add.u32 %r5, %r5, -1;\nbra.uni done;")
    # 16 lanes contribute 2 and 16 contribute 1; then all contribute the sum.
    assert outputs(text) == [[48 * 32] * 64]


def test_lanes_that_end_are_not_waited_for() -> None:
    text = make_branches("redux.sync.add.u32 %r5, 1, -1;", "@%p2 ret;\nredux.sync.add.u32 %r5, 1, -1;")
    even_threads = [t for t in T if t % 2 == 0 and t > 40]
    expected = [32 if t < 32 else 32 - len(even_threads) for t in T]
    assert outputs(text) == [[0 if t in even_threads else expected[t] for t in T]]


def test_parts_of_a_warp_may_meet_by_themselves() -> None:
    text = make_branches("redux.sync.add.u32 %r5, 1, %r7;", "redux.sync.add.u32 %r5, 2, %r7;",
                 "and.b32 %r6, %t, 31; setp.lt.u32 %p4, %r6, 8; selp.b32 %r7, 0xff, 0xffffff00, %p4;")  # fmt: skip
    assert outputs(text) == [[12 if t % 32 < 8 else 36 for t in T]]


@pytest.mark.parametrize(
    "even_code",
    ["redux.sync.min.u32 %r5, %t, -1;", "redux.sync.add.s32 %r5, %t, -1;", "redux.sync.add.u32 %r5, %t, %r7;"],
)
def test_other_qualifiers_or_another_mask_do_not_meet(even_code: str) -> None:
    before = "mov.u32 %r7, 0x7fffffff;"
    text = make_branches("redux.sync.add.u32 %r5, %r1, -1;", even_code, before)
    assert_reported(text, "PTX0990", "redux.sync", block=64, args=[np.zeros(64, np.uint32)])


def test_a_lane_that_its_mask_leaves_out_is_reported() -> None:
    text = make_branches("redux.sync.add.u32 %r5, 1, 0x55555555;", "redux.sync.add.u32 %r5, 1, 0x55555555;")
    assert all("PTX0961" in codes_of_run for codes_of_run in codes(by_schedule(text, block=64)))


def test_a_value_from_a_lane_at_the_other_place_counts_as_written() -> None:
    text = make_branches(
        "shfl.sync.idx.b32 %r5, %r6, 0, 31, -1;", "mov.u32 %r6, 4;\nshfl.sync.idx.b32 %r5, %r6, 0, 31, -1;"
    )
    assert outputs(text) == [[4] * 64]


def test_lanes_of_two_masks_meet_others_at_two_more_places() -> None:
    """The odd lanes wait with the masks of both halves; the even ones of the upper half come later and elsewhere."""
    body = """and.b32 %r2, %t, 31; and.b32 %r3, %t, 1; mul.lo.u32 %r1, %t, 3;
setp.eq.u32 %p1, %r3, 0; setp.ge.u32 %p2, %r2, 16; selp.b32 %r4, 0xffff0000, 0x0000ffff, %p2;
@%p1 bra even;
redux.sync.add.u32 %r5, %r1, %r4;
bra.uni done;
even: @%p2 bra late;
redux.sync.add.u32 %r5, %t, %r4;
bra.uni done;
late: redux.sync.add.u32 %r5, 1000, %r4;
done: st.global.u32 [%o], %r5;"""
    brought = np.where(T % 2, 3 * T, np.where(T % 32 < 16, T, 1000))
    assert outputs(kernel(body)) == [[int(brought[t // 16 * 16 : t // 16 * 16 + 16].sum()) for t in T]]


@pytest.mark.parametrize("target", ["%r5", "%r5|%p3"])
def test_another_warp_executes_one_of_the_places_at_the_same_time(target: str) -> None:
    """Odd lanes of warp 0 are at one place, its even lanes and warp 1 at the other."""
    text = kernel(f"""and.b32 %r2, %t, 1; setp.eq.u32 %p1, %r2, 0; setp.ge.u32 %p2, %t, 32; or.pred %p1, %p1, %p2;
@%p2 bra even;
@%p1 bra even;
shfl.sync.bfly.b32 {target}, %t, 1, 31, -1;
bra.uni done;
even: mul.lo.u32 %r6, %t, 3;
shfl.sync.bfly.b32 {target}, %r6, 1, 31, -1;
done: st.global.u32 [%o], %r5;""")
    assert outputs(text) == [[int(t ^ 1) * (1 if t < 32 and t % 2 == 0 else 3) for t in T]]


def test_lanes_at_two_places_do_not_wait_for_lanes_that_exit_later() -> None:
    text = make_branches(
        "redux.sync.add.u32 %r5, 1, -1;",
        "@%p2 bra late;\nredux.sync.add.u32 %r5, 1, -1;\nbra.uni done;\n"
        "late: add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 100; @%p3 bra late;\nret;",
        "mov.u32 %r9, 0;",
    )
    late = (T % 2 == 0) & (T > 40)
    expected = np.where(late, 0, np.where(T < 32, 32, 32 - late.sum()))
    assert outputs(text) == [expected.tolist()]


def test_lanes_take_the_results_of_their_own_meeting() -> None:
    shape = Shape((64, 1, 1), 1)
    first, second = shape.select_index(np.arange(32)), shape.select_index(np.arange(32, 64))
    pending = [shape.index < 32, shape.index >= 32]
    pair, single = (np.arange(32), np.arange(32) % 2 == 0), np.arange(32) + 100
    machine = SimpleNamespace(meetings=[Meeting(first, pair, pending[0]), Meeting(second, single, pending[1])])
    run = wrap_warp_wide(lambda *_: pytest.fail("the meetings have the results"))
    np.testing.assert_array_equal(run(machine, shape.select_index(np.arange(40, 64))), np.arange(108, 132))
    values, parities = run(machine, first)
    np.testing.assert_array_equal(values, np.arange(32))
    np.testing.assert_array_equal(parities, np.arange(32) % 2 == 0)
    np.testing.assert_array_equal(run(machine, shape.select_index(np.arange(32, 40))), np.arange(100, 108))
    assert machine.meetings == []
