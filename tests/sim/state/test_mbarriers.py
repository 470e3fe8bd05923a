"""mbarrier objects: phases, states, bytes, remote arrivals, and errors."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.state.mbarriers import MBarriers, Misuse, extract_pending_count
from tests.messages import raises

SCHEDULES = ("eager", "lazy")


def kernel(body: str, regs: str = "", target: str = "sm_90") -> Any:
    """Return a module whose entry writes to `out`; `%t` is the thread, `%at` its word of out."""
    return parse(f""".version 8.6
.target {target}
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b32 %t, %r<8>; .reg .b64 %at, %s<4>; .reg .pred %p<4>; {regs}
.shared .align 8 .b64 bar[4]; .shared .align 16 .b32 box[64];
mov.u32 %t, %tid.x;
ld.param.u64 %at, [out];
mad.wide.u32 %at, %t, 4, %at;
{body}
}}
""")


def out(body: str, threads: int = 64, **launch: Any) -> list[int]:
    output = np.zeros(threads, np.uint32)
    sim.run(kernel(body), block=threads, args=[output], **launch)
    return output.tolist()


START = """
setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar], {count};
bar.sync 0;
"""


@pytest.mark.parametrize("convert", ["", "cvta.shared.u64 %s0, %s0;"], ids=["shared", "generic"])
def test_without_a_state_space_the_low_half_of_an_address_names_a_barrier(convert: str) -> None:
    body = f"""
mov.u64 %s0, bar; {convert}
setp.eq.u32 %p0, %t, 0;
@%p0 mbarrier.init.b64 [%s0], 64;
bar.sync 0;
mbarrier.arrive.b64 %s1, [%s0];
w: mbarrier.try_wait.b64 %p1, [%s0], %s1;
@!%p1 bra w;
st.global.u32 [%at], 7;
ret;
"""
    assert out(body) == [7] * 64


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_sees_what_was_stored_before_the_arrivals(schedule: str) -> None:
    body = (
        START.format(count=32)
        + """
setp.ge.u32 %p1, %t, 32;
@%p1 bra write;
w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra w;
shl.b32 %r0, %t, 2;
mov.u32 %r1, box;
add.u32 %r1, %r1, %r0;
ld.shared.u32 %r2, [%r1];
st.global.u32 [%at], %r2;
ret;
write:
sub.u32 %r0, %t, 32;
shl.b32 %r0, %r0, 2;
mov.u32 %r1, box;
add.u32 %r1, %r1, %r0;
st.shared.u32 [%r1], %t;
mbarrier.arrive.shared::cta.b64 _, [bar];
ret;
"""
    )
    assert out(body, schedule=schedule)[:32] == list(range(32, 64))


def test_parity_of_a_fresh_barrier_counts_as_passed_and_flips_with_each_phase() -> None:
    body = """
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;
selp.u32 %r0, 1, 0, %p1;
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
@%p1 or.b32 %r0, %r0, 2;
mbarrier.arrive.shared::cta.b64 %s0, [bar];
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0;
@%p1 or.b32 %r0, %r0, 4;
mbarrier.test_wait.shared::cta.b64 %p1, [bar], %s0;
@%p1 or.b32 %r0, %r0, 8;
mbarrier.arrive.shared::cta.b64 %s1, [bar];
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;
@%p1 or.b32 %r0, %r0, 16;
st.global.u32 [%at], %r0;
ret;
"""
    assert out(body, threads=1) == [0b11101]


@pytest.mark.parametrize("count", [64, 65, 200])
def test_a_kernel_may_have_many_mbarriers(count: int) -> None:
    barriers = MBarriers(8 * count, None)
    offsets = np.arange(0, 8 * count, 8)
    barriers.init(offsets, np.ones(count, np.int64), reports=True)
    rows = barriers.find_rows(offsets)
    barriers.report(rows[-1:])
    barriers.arrive(rows, np.ones(count, np.int64))
    assert (barriers.phase[rows] == 1).all()
    assert barriers.reported[rows].tolist() == [False] * (count - 1) + [True]


def test_minus_one_is_odd() -> None:
    body = """
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.shared::cta.b64 _, [bar];
mov.u32 %r1, -1;
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], %r1;
selp.u32 %r0, 1, 0, %p1;
mbarrier.arrive.shared::cta.b64 _, [bar];
mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], %r1;
@%p1 or.b32 %r0, %r0, 2;
st.global.u32 [%at], %r0;
ret;
"""
    assert out(body, threads=1) == [2]


def test_a_phase_waits_for_its_bytes_and_for_arrivals() -> None:
    body = """
mbarrier.init.shared::cta.b64 [bar], 1;
mbarrier.arrive.expect_tx.shared::cta.b64 %s0, [bar], 48;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 32;
mbarrier.test_wait.shared::cta.b64 %p1, [bar], %s0;
selp.u32 %r0, 1, 0, %p1;
mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;
mbarrier.test_wait.shared::cta.b64 %p1, [bar], %s0;
@%p1 or.b32 %r0, %r0, 2;
st.global.u32 [%at], %r0;
ret;
"""
    assert out(body, threads=1) == [2]


def test_states_count_arrivals_and_drops_leave_later_phases() -> None:
    body = """
mbarrier.init.shared::cta.b64 [bar], 3;
mbarrier.arrive.noComplete.shared::cta.b64 %s0, [bar], 2;
mbarrier.pending_count.b64 %r0, %s0;
mbarrier.arrive_drop.shared::cta.b64 %s1, [bar];
mbarrier.arrive.shared::cta.b64 %s2, [bar], 2;
mbarrier.test_wait.shared::cta.b64 %p1, [bar], %s2;
@%p1 add.u32 %r0, %r0, 100;
st.global.u32 [%at], %r0;
ret;
"""
    assert out(body, threads=1) == [103]


def test_other_ctas_of_a_cluster_arrive_through_mapa() -> None:
    body = (
        START.format(count=2)
        + """
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r0, bar;
mapa.shared::cluster.u32 %r1, %r0, 0;
@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
mov.u32 %r2, %cluster_ctarank;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra done;
w: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar], 0;
@!%p2 bra w;
st.global.u32 [%at], 7;
done:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
"""
    )
    assert out(body, threads=32, grid=2, cluster=2) == [7] * 32


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [bar];", "mbarrier operation on an object that is not a live mbarrier"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.inval.shared::cta.b64 [bar];"
         " mbarrier.arrive.shared::cta.b64 _, [bar];", "mbarrier operation on an object that is not a live mbarrier"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.shared::cta.b64 _, [bar], 2;", "2 arrivals"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; mbarrier.arrive.shared::cta.b64 _, [%at];", "not|outside|shared"),
        ("mov.b32 %r1, 0; mbarrier.init.shared::cta.b64 [bar], %r1;", f"a count of 0; it must be 1 to {2**20 - 1}"),
        (f"mov.b32 %r1, {2**20}; mbarrier.init.shared::cta.b64 [bar], %r1;", f"a count of {2**20}; it must be"),
        ("mbarrier.init.shared::cta.b64 [bar], 1; w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;"
         " @!%p2 bra w;", "1 of 1 arrivals missing"),
    ],
)  # fmt: skip
def test_misuse_is_an_error_at_the_instruction(body: str, messages: str) -> None:
    with raises(PtxError, match=messages):
        out(body + " ret;", threads=1)


def test_a_hang_says_what_the_barrier_waits_for() -> None:
    body = "mbarrier.init.shared::cta.b64 [bar], 3; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 64;"
    body += " w: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0; @!%p2 bra w; ret;"
    with raises(PtxError, match="2 of 3 arrivals missing, 0 bytes arrived, 64 expected"):
        out(body, threads=1)


@pytest.mark.parametrize("count", [1, 2])
def test_lanes_that_leave_an_mbarrier_together_end_a_phase_and_enter_the_next(count: int) -> None:
    """One arrival is missing: the first of three lanes ends the phase, and each lowers the count of later phases."""
    body = (
        START.format(count=4 * count)
        + f"""
setp.lt.u32 %p1, %t, 3; setp.eq.u32 %p2, %t, 40; mov.u32 %r3, 99;
@%p0 mbarrier.arrive.shared::cta.b64 %s0, [bar], {3 * count};
bar.sync 0;
@%p1 mbarrier.arrive_drop.shared::cta.b64 %s1, [bar], {count};
@%p1 mbarrier.pending_count.b64 %r3, %s1;
bar.sync 0;
@!%p2 bra store;
mbarrier.arrive.shared::cta.b64 %s1, [bar], {count}; mbarrier.pending_count.b64 %r3, %s1;
mbarrier.arrive.shared::cta.b64 %s1, [bar], {count}; mbarrier.pending_count.b64 %r4, %s1;
mad.lo.u32 %r3, %r4, 10, %r3;
mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar], 0; @%p3 add.u32 %r3, %r3, 100;
store: st.global.u32 [%at], %r3;
"""
    )
    assert out(body) == [count, 3 * count, 2 * count, *[99] * 37, 100 + 11 * count, *[99] * 23]


def test_arrivals_that_end_a_phase_leave_the_rest_to_the_next_one() -> None:
    """Three lanes arrive, of which the first ends the phase of four arrivals; two more end the next one."""
    body = (
        START.format(count=4)
        + """
setp.lt.u32 %p1, %t, 3; setp.ge.u32 %p2, %t, 62;
@%p0 mbarrier.arrive.shared::cta.b64 %s0, [bar], 3;
bar.sync 0;
@%p1 mbarrier.arrive.shared::cta.b64 %s1, [bar];
bar.sync 0;
@%p2 mbarrier.arrive.shared::cta.b64 %s1, [bar];
bar.sync 0;
@%p0 mbarrier.arrive.shared::cta.b64 %s1, [bar], 4;
st.global.u32 [%at], %t;
"""
    )
    made = np.zeros(64, np.uint32)
    found = sim.run(kernel(body), block=64, args=[made], on_hazard="report").hazards
    assert {finding.rule.code for finding in found} == {"PTX0957"}


def test_a_lane_may_arrive_with_a_count_of_0() -> None:
    """Of four lanes, the second ends the phase of two arrivals. Each state is a phase and a pending count."""
    body = (
        START.format(count=2)
        + """
setp.lt.u32 %p1, %t, 4; setp.lt.u32 %p2, %t, 2; selp.u32 %r0, 1, 0, %p2; mov.u64 %s0, 0;
@%p1 mbarrier.arrive.shared::cta.b64 %s0, [bar], %r0;
mbarrier.pending_count.b64 %r1, %s0;
shr.u64 %s1, %s0, 20; cvt.u32.u64 %r2, %s1; mad.lo.u32 %r1, %r2, 10, %r1;
st.global.u32 [%at], %r1;
"""
    )
    assert out(body, threads=32) == [2, 1, 12, 12, *[0] * 28]


@pytest.mark.parametrize("address", ["%at", "%s1"])
def test_an_mbarrier_outside_shared_memory_is_refused(address: str) -> None:
    """Even lanes name one in shared memory with %s1, odd lanes global memory."""
    body = (
        START.format(count=64)
        + f"""
and.b32 %r1, %t, 1; setp.ne.u32 %p1, %r1, 0; mov.u64 %s1, bar; cvta.shared.u64 %s1, %s1;
and.b64 %at, %at, -8; @%p1 mov.u64 %s1, %at;
mbarrier.arrive.b64 _, [{address}];
"""
    )
    with raises(PtxError) as caught:
        out(body)
    [found] = caught.value.diagnostics
    assert (found.code, found.line) == ("PTX1112", 18)
    assert found.message.startswith("`mbarrier.arrive.b64` at 0x")
    assert found.message.endswith(": expected an mbarrier in shared memory")
    assert found.notes == ("in `k`, CTA 0, thread (0, 0, 0), one of 64 here",)


@dataclass(slots=True)
class Model:
    """An mbarrier that lanes use one after the other."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    def arrive(self, count: int, drop: bool) -> int | None:
        """Return the state before an arrival, None if the phase waits for fewer."""
        if count > self.pending or (drop and count >= self.expected):
            return None
        state = self.phase << 20 | self.pending
        self.pending -= count
        self.expected -= count * drop
        self.complete()
        return state

    def complete(self) -> None:
        if self.pending == self.tx == 0:
            self.phase, self.pending = self.phase + 1, self.expected


@pytest.mark.parametrize("seed", range(4))
def test_lanes_arrive_at_several_objects_as_one_after_the_other(seed: int) -> None:
    chance, barriers = random.Random(seed), MBarriers(64, None)
    barriers.begin(None)
    offsets, counts = np.array([40, 8, 24]), np.array([9, 30, 1])
    barriers.init(offsets, counts)
    models = [Model(int(count), int(count)) for count in counts]
    for _ in range(300):
        targets, before = [chance.randrange(3) for _ in range(chance.randint(1, 5))], deepcopy(models)
        rows = barriers.find_rows(offsets[targets])
        if chance.random() < 0.3:
            amounts = [-models[target].tx or chance.choice((0, 16, 32)) for target in targets]
            for target, amount in zip(targets, amounts, strict=True):
                models[target].tx += amount
            for target in set(targets):
                models[target].complete()
            barriers.transfer(rows, np.array(amounts))
        else:
            drop = chance.random() < 0.05
            arrivals = [chance.choice((0, 1, 1, 1, 2)) for _ in targets]
            states = [models[target].arrive(count, drop) for target, count in zip(targets, arrivals, strict=True)]
            if None in states:
                models = before
                continue
            assert barriers.arrive(rows, np.array(arrivals), drop).tolist() == states
        rows = barriers.find_rows(offsets)
        arrays = barriers.expected, barriers.pending, barriers.tx, barriers.phase
        found = [Model(*(int(array[row]) for array in arrays)) for row in rows]
        assert found == models
        advanced = [
            int(row) for row, old, new in zip(rows, before, models, strict=True) for _ in range(old.phase, new.phase)
        ]
        assert sorted(int(row) for part in barriers.completions for row in part) == sorted(advanced)
        barriers.completions = []
        tokens = np.array([model.phase << 20 | chance.randrange(9) for model in models], np.uint64)
        assert barriers.test_phases(rows, tokens, False, False).tolist() == [False] * 3
        assert barriers.test_phases(rows, tokens - np.uint64(1 << 20), False, False).tolist() == [True] * 3
        for parity in (0, 1):
            passed = barriers.test_phases(rows, np.full(3, parity, np.uint64), True, False)
            assert passed.tolist() == [model.phase % 2 != parity for model in models]
    assert min(model.phase for model in models) > 1


def find_misuse(action: Callable[..., Any], *arguments: Any) -> tuple[int, str]:
    """Return the lane and the text of an error."""
    with pytest.raises(Misuse) as caught:
        action(*arguments)
    return caught.value.lane, caught.value.why


def test_counts_and_bytes_have_limits() -> None:
    barriers, most = MBarriers(64, None), (1 << 20) - 1
    barriers.begin(None)
    both = np.array([0, 8])
    for reports, limit in ((False, most), (True, 511)):
        barriers.init(both, np.array([1, limit]), reports)
        for wrong in (0, limit + 1):
            text = f"a count of {wrong}; it must be 1 to {limit}"
            assert find_misuse(barriers.init, both, np.array([1, wrong]), reports) == (1, text)
    barriers.init(both, np.array([3, 4]))
    assert find_misuse(barriers.find_rows, np.array([8, 0, 16, 24])) == (2, "no mbarrier was initialized there")
    rows = barriers.find_rows(both)
    text = "a copy reports on its bytes, but the mbarrier was not initialized with `.layout::v1`"
    assert find_misuse(barriers.report, rows) == (0, text)
    for lane, amount in ((0, 1), (1, -1)):
        barriers.init(both, np.array([3, 4]))
        amounts = np.where(np.arange(2) == lane, amount, 0)
        barriers.transfer(rows, amounts * most)
        text = f"a tx-count of {amount * (most + 1)}; it must be at most {most}"
        assert find_misuse(barriers.transfer, rows, amounts) == (lane, text)
    text = f"5 arrivals, but the current phase waits for only 4 and {-most - 1} bytes"
    assert find_misuse(barriers.arrive, rows, np.array([1, 5])) == (1, text)
    barriers.init(both, np.array([3, 4]))
    states = barriers.arrive(rows[[1, 0, 1]], np.array([1, 2, 2]))
    assert extract_pending_count(states).tolist() == [4, 3, 3]
    text = "2 arrivals, but the current phase waits for only 1"
    assert find_misuse(barriers.arrive, rows, np.array([2, 1])) == (0, text)


def test_live_objects_are_listed_by_their_offsets() -> None:
    barriers = MBarriers(64, None)
    barriers.begin(None)
    barriers.init(np.array([40, 8, 24, 0]), np.array([1, 2, 3, 4]))
    assert barriers.expected[barriers.find_live(0, 64)].tolist() == [4, 2, 3, 1]
    assert barriers.expected[barriers.find_live(8, 40)].tolist() == [2, 3]
    barriers.inval(np.array([24]))
    assert barriers.expected[barriers.find_live(8, 41)].tolist() == [2, 1]
    assert (barriers.find_row(24), barriers.find_row(16)) == (-1, -1)
    assert barriers.find_row(40) == int(barriers.find_rows(np.array([40]))[0])
    barriers.begin(None)
    assert barriers.find_live(0, 64).tolist() == []
    assert [barriers.find_row(offset) for offset in (0, 8, 40)] == [-1, -1, -1]
