"""Cases from real kernels: correct idioms, and reports that name the line in the original source."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError
from pyptx.parser import parse
from tests.messages import raises
from tests.sim.kernels import HEAD

_AGGREGATED = (
    HEAD
    + """
.visible .entry k(.param .u64 out, .param .u32 from)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [from];
    mov.u32 %r2, %laneid;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra others;
    mov.u32 %r3, 77;
others:
    shfl.sync.idx.b32 %r3|%p2, %r3, %r1, 31, -1;
    add.u32 %r4, %r3, %r2;
    mad.wide.u32 %rd2, %r2, 4, %rd1;
    st.global.u32 [%rd2], %r4;
    ret;
}
"""
)


def test_a_broadcast_from_the_one_lane_that_has_the_value_reads_nothing_uninitialized() -> None:
    out = np.zeros(32, np.uint32)
    assert sim.run(parse(_AGGREGATED), block=32, args=[out, 0]).hazards == []
    assert out.tolist() == [77 + lane for lane in range(32)]


@pytest.mark.parametrize("source", [1, 31])
def test_a_value_taken_from_a_lane_that_has_none_is_uninitialized_where_it_is_used(source: int) -> None:
    with raises(PtxError) as excinfo:
        sim.run(parse(_AGGREGATED), block=32, args=[np.zeros(32, np.uint32), source])
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX0911"
    assert "%r3 (32 times)" in finding.message


_RACE = (
    HEAD
    + """
.shared .u32 cells[64];
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<6>; .reg .b64 %rd<3>;
    .loc 1 10 3
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, cells;
    add.u32 %r3, %r3, %r2;
    .loc 1 12 5
    .loc 2 7 1, function_name names, inlined_at 1 12 5
    .loc 3 9 1, function_name names, inlined_at 2 7 1
    st.shared.u32 [%r3], %r1;
    .loc 1 14 3
    xor.b32 %r2, %r2, 128;
    mov.u32 %r3, cells;
    add.u32 %r3, %r3, %r2;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%rd1], %r4;
    ret;
}
.file 1 "/home/me/exchange.cu"
.file 2 "/usr/include/cells.h"
.file 3 "/usr/include/store.hpp"
.section .debug_str
{
names:
    .b8 0
}
"""
)


def test_a_finding_names_the_lines_of_the_source_that_loc_gives() -> None:
    result = sim.run(parse(_RACE), block=64, args=[np.zeros(1, np.uint32)], on_hazard="report")
    race = next(finding for finding in result.hazards if finding.rule.code == "PTX0901")
    (note,) = (note for note in race.diagnostic().notes if "comes from" in note)
    assert note == (
        "it comes from /home/me/exchange.cu:14; the other place comes from /home/me/exchange.cu:12, by cells.h:7, "
        "store.hpp:9"
    )


def test_an_error_and_its_notes_name_the_lines_of_the_source() -> None:
    stuck_module = parse(_RACE.replace("xor.b32 %r2, %r2, 128;", "bar.sync 1, 96;"))
    with raises(sim.Hang) as excinfo:
        sim.run(stuck_module, block=64, args=[np.zeros(1, np.uint32)], check="none")
    (finding,) = excinfo.value.diagnostics
    assert finding.notes[0] == "it comes from /home/me/exchange.cu:14"
    assert any("`bar.sync` at <ptx>" in note and "(/home/me/exchange.cu:14)" in note for note in finding.details)
    assert all("exchange.cu" not in note for note in _hang_without_lines().notes)


def _hang_without_lines() -> Diagnostic:
    text = "\n".join(line for line in _RACE.splitlines() if ".loc" not in line)
    with raises(sim.Hang) as excinfo:
        sim.run(parse(text.replace("xor.b32 %r2, %r2, 128;", "bar.sync 1, 96;")), block=64,
                args=[np.zeros(1, np.uint32)], check="none")  # fmt: skip
    return excinfo.value.diagnostics[0]


_PAIR = (
    HEAD
    + """
.shared .align 8 .b64 bar;
.shared .align 16 .b32 mine[4];
.shared .align 16 .b32 theirs[4];
.visible .entry k(.param .u64 out) .reqntid 32 .explicitcluster
{
    .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r3, bar;
    shl.b32 %r4, %r1, 2;
    and.b32 %r4, %r4, 12;
    mov.u32 %r5, mine;
    add.u32 %r5, %r5, %r4;
    setp.ge.u32 %p3, %r1, 4;
    @!%p3 st.shared.u32 [%r5], %r1;
    @%p1 bra begun;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], BYTES;
begun:
    fence.proxy.async;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    BODY
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra wait;
    ld.shared.u32 %r8, [%r9];
    @%p1 bra done;
    mad.wide.u32 %rd1, %r2, 4, %rd1;
    st.global.u32 [%rd1], %r8;
done:
    LAST
    ret;
}
"""
)
_COUNT = """
    mov.u32 %r9, mine;
    mov.u32 %r10, 3;
    mapa.shared::cluster.u32 %r6, %r9, 0;
    mapa.shared::cluster.u32 %r7, %r3, 0;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], %r10, [%r7];
    mapa.shared::cluster.u32 %r6, %r9, 1;
    mapa.shared::cluster.u32 %r7, %r3, 1;
    red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r6], %r10, [%r7];
"""


def make_pair(size: int, body: str, last: str = "") -> str:
    """Return a kernel of two CTAs whose barriers expect bytes, which the body copies to the address in %r9."""
    return _PAIR.replace("BYTES", str(size)).replace("BODY", body).replace("LAST", last)


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_reductions_that_meet_in_one_word_are_over_when_the_barrier_has_their_bytes(schedule: str) -> None:
    out = np.zeros(2, np.uint32)
    result = sim.run(parse(make_pair(256, _COUNT)), grid=2, block=32, cluster=2, args=[out], schedule=schedule)
    assert result.hazards == []
    assert out.tolist() == [192, 192]


def test_reductions_that_meet_in_one_word_are_in_flight_until_then() -> None:
    text = make_pair(256, _COUNT).replace("@!%p2 bra wait;", "").replace("mbarrier.try_wait", "// mbarrier.try_wait")
    result = sim.run(parse(text), grid=2, block=32, cluster=2, args=[np.zeros(2, np.uint32)], on_hazard="report",
                   schedule="lazy")  # fmt: skip
    assert "PTX0930" in {finding.rule.code for finding in result.hazards}


_SEND = """
    xor.b32 %r10, %r2, 1;
    mov.u32 %r8, mine;
    mov.u32 %r9, theirs;
    mapa.shared::cluster.u32 %r6, %r9, %r10;
    mapa.shared::cluster.u32 %r7, %r3, %r10;
    @!%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r8], 16, [%r7];
"""


def test_a_cta_that_exits_has_waited_for_the_copies_that_read_its_shared_memory() -> None:
    meeting = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"
    for last, codes in ((meeting, set[str]()), ("", {"PTX0983"})):
        result = sim.run(parse(make_pair(16, _SEND, last)), grid=2, block=32, cluster=2, args=[np.zeros(2, np.uint32)])
        assert {finding.rule.code for finding in result.hazards} == codes
    assert "cluster barrier" in (result.hazards[0].diagnostic().help or "")


_HALVES = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 4 .b32 where;
.visible .entry k(.param .u64 out) .reqntid 128
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    .reg .pred %p;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p, %r2, 0;
    @%p bra allocated;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 64;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
allocated:
    bar.sync 0;
    ld.shared.u32 %r3, [where];
    shl.b32 %r2, %r2, 21;
    add.u32 %r4, %r3, %r2;
    add.u32 %r4, %r4, 0x100000;
    tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r4], 32, {%r1};
    tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r5}, [%r4], 32;
    tcgen05.wait::ld.sync.aligned;
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    st.global.u32 [%rd1], %r5;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p bra done;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 64;
done:
    ret;
}
"""


def test_both_halves_of_a_warp_reach_the_same_sixteen_lanes_of_tensor_memory() -> None:
    out = np.zeros(128, np.uint32)
    assert sim.run(parse(_HALVES), block=128, args=[out]).hazards == []
    assert out.tolist() == list(range(128))


def test_columns_that_the_other_half_of_a_warp_has_not_stored_are_uninitialized() -> None:
    text = _HALVES.replace("{%r5}, [%r4], 32", "{%r5}, [%r4], 16")
    result = sim.run(parse(text), block=128, args=[np.zeros(128, np.uint32)], on_hazard="report")
    assert [finding.rule.code for finding in result.hazards] == ["PTX0912"]


_PACKED = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b16 %h<8>; .reg .b32 %r<12>; .reg .b64 %rd<8>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    setp.lt.u32 %p1, %r1, 8;
    BODY
    st.global.u32 [%rd1], %r2;
    ret;
}
"""
)
_HANDED_ON = {
    "a half of a packed register": "mov.b64 %rd2, {%r9, %r1}; mov.b64 {_, %r2}, %rd2;",
    "both halves, one after the other": "mov.b64 %rd2, {%r1, %r9}; mov.b64 {%r2, %r3}, %rd2;",
    "bytes that are chosen": "prmt.b32 %r3, %r1, %r9, 0x7610; prmt.b32 %r2, %r3, 0, 0x5410;",
    "quarters": "cvt.u16.u32 %h1, %r1; mov.b64 %rd2, {%h1, %h2, %h1, %h3}; mov.b64 {%h4, _, %h5, _}, %rd2;"
                "mov.b32 %r2, {%h4, %h5};",
    "the value that a predicate chooses": "setp.ge.u32 %p2, %r1, 0; selp.b32 %r2, %r1, %r9, %p2;",
    "copies of a part": "mov.b64 %rd2, {%r1, %r9}; mov.b64 %rd3, %rd2; cvt.u32.u32 %r4, %r1; mov.b64 {%r2, _}, %rd3;",
}  # fmt: skip
_USED = {
    "the other half": ("mov.b64 %rd2, {%r9, %r1}; mov.b64 {%r2, _}, %rd2;", "%r2"),
    "the whole of it": ("mov.b64 %rd2, {%r9, %r1}; cvt.u32.u64 %r2, %rd2;", "%rd2"),
    "other bytes": ("prmt.b32 %r3, %r1, %r9, 0x7610; prmt.b32 %r2, %r3, %r1, 0x5432;", "%r2"),
    "the other value": ("selp.b32 %r2, %r1, %r9, %p1;", "%r2"),
    "a register that chooses the bytes": ("prmt.b32 %r2, %r1, %r1, %r9;", "%r9"),
}


@pytest.mark.parametrize("body", _HANDED_ON.values(), ids=_HANDED_ON)
def test_what_is_packed_with_undefined_values_and_unpacked_again_is_defined(body: str) -> None:
    out = np.zeros(32, np.uint32)
    assert sim.run(parse(_PACKED.replace("BODY", body)), block=32, args=[out]).hazards == []
    if "h4" not in body:
        assert out.tolist() == list(range(32))


@pytest.mark.parametrize(("body", "name"), _USED.values(), ids=_USED)
def test_bytes_that_nobody_defined_are_found_where_they_are_used(body: str, name: str) -> None:
    with raises(PtxError) as excinfo:
        sim.run(parse(_PACKED.replace("BODY", body)), block=32, args=[np.zeros(32, np.uint32)])
    (finding,) = excinfo.value.diagnostics
    assert finding.code == "PTX0911"
    assert f": {name}" in finding.message


_PADDED = """.version 8.8
.target sm_100a
.address_size 64
.shared .align 4 .b32 where;
.shared .align 8 .b64 done;
.shared .align 1024 .b8 box[1024];
.visible .entry k() .reqntid 32
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p<3>;
    mov.u32 %r1, %tid.x;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [where], 32;
    tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
    setp.ne.u32 %p1, %r1, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [done], 1;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r3, box;
    add.u32 %r3, %r3, %r2;
    mov.u64 %rd1, 0;
    st.shared.WIDE [%r3], VALUE;
    st.shared.WIDE [%r3+512], VALUE;
    fence.proxy.async;
    bar.warp.sync -1;
    ld.shared.u32 %r4, [where];
    mov.u32 %r3, box;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd2, %r3;
    or.b64 %rd2, %rd2, 0x400000080000;
    or.b64 %rd2, %rd2, 0x1000000000;
    @!%p1 tcgen05.cp.cta_group::1.4x256b.b8x16.FORMAT [%r4], %rd2;
    @!%p1 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [done];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [done], 0;
    @!%p2 bra wait;
    tcgen05.fence::after_thread_sync;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 32;
    ret;
}
"""


@pytest.mark.parametrize(("source", "wide", "value", "codes"), [
    ("b4x16_p64", "u64", "%rd1", []), ("b4x16_p64", "u32", "0", ["PTX0910"]), ("b6x16_p32", "u64", "%rd1", ["PTX0910"]),
])  # fmt: skip
def test_padding_of_small_numbers_is_not_read(source: str, wide: str, value: str, codes: list[str]) -> None:
    text = _PADDED.replace("WIDE", wide).replace("VALUE", value).replace("FORMAT", source)
    findings = sim.run(parse(text), block=32, on_hazard="report").hazards
    assert [finding.rule.code for finding in findings] == codes


_LOOP = (
    HEAD
    + """
.shared .align 1024 .b8 tile[4096];
.visible .entry k() .reqntid 128
{
    .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 5;
    mov.u32 %r3, tile;
    add.u32 %r2, %r2, %r3;
    mov.b32 %r4, 0;
    st.shared.v4.b32 [%r2], {%r4, %r4, %r4, %r4};
    st.shared.v4.b32 [%r2+16], {%r4, %r4, %r4, %r4};
    fence.proxy.async;
    bar.sync 0;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd1, %r3;
    or.b64 %rd1, %rd1, 0x1000080000;
    mov.u32 %r5, 0;
    setp.ne.u32 %p2, %r5, 0;
again:
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd1, %rd1, %p2, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    add.u32 %r5, %r5, 1;
    elect.sync %r6|%p1, -1;
    @%p1 add.u32 %r4, %r4, 1;
    setp.lt.u32 %p3, %r5, 6;
    @%p3 bra again;
    ret;
}
"""
)


@pytest.mark.parametrize("seed", range(8))
def test_warps_of_a_warpgroup_may_be_a_round_of_a_loop_behind(seed: int) -> None:
    assert sim.run(parse(_LOOP), block=128, schedule="random", seed=seed).hazards == []


_CLEARED = (
    HEAD
    + """
.shared .u32 cells[64];
.visible .entry k() .reqntid 96
{
    .reg .b32 %r<8>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 63;
    shl.b32 %r2, %r2, 2;
    mov.u32 %r3, cells;
    add.u32 %r2, %r2, %r3;
    setp.ge.u32 %p1, %r1, 64;
    @!%p1 st.shared.u32 [%r2], 7;
    bar.sync 0;
    setp.ge.u32 %p1, %r1, 32;
    selp.u32 %r4, 1, 0, %p1;
    mov.u32 %r5, 0;
round:
    setp.eq.u32 %p2, %r5, %r4;
    @%p2 st.shared.u32 [%r2], VALUE;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 2;
    @%p3 bra round;
    ret;
}
"""
)


@pytest.mark.parametrize(("value", "codes"), [("0", []), ("%r5", ["PTX0901"])])
def test_warps_that_repeat_a_store_do_no_harm_while_others_store_elsewhere(value: str, codes: list[str]) -> None:
    findings = sim.run(parse(_CLEARED.replace("VALUE", value)), block=96, on_hazard="report").hazards
    assert [finding.rule.code for finding in findings] == codes


_LEAVING = (
    HEAD
    + """
.shared .align 8 .b64 bar;
.visible .entry k() .reqntid 64 .explicitcluster
{
    .reg .b32 %r<8>; .reg .pred %p<6>;
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, bar;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra others;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
    @!%p3 bra wait;
    ret;
others:
    xor.b32 %r4, %r2, 1;
    mapa.shared::cluster.u32 %r5, %r3, %r4;
    setp.eq.u32 %p4, %r1, 32;
    @%p4 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
    mov.u32 %r6, 0;
again:
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p5, %r6, 700;
    @%p5 bra again;
    ret;
}
"""
)


_ARRIVE = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];"
_EXPECT = """mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r5], 16;
    @%p4 mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%r5], 16;"""


@pytest.mark.parametrize("arrival", [_ARRIVE, _EXPECT])
def test_arrivals_at_several_barriers_are_known_with_what_they_hand_on(arrival: str) -> None:
    text = (
        _LEAVING.replace("[%r3], 1;", "[%r3], 2;")
        .replace("others:", "others:\nand.b32 %r6, %r1, 1;")
        .replace("xor.b32 %r4, %r2, 1;", "mov.u32 %r4, %r6;")
        .replace("setp.eq.u32 %p4, %r1, 32;", "setp.lt.u32 %p4, %r1, 34;")
        .replace(_ARRIVE, arrival)
    )
    assert sim.run(parse(text), grid=2, block=64, cluster=2).hazards == []


@pytest.mark.parametrize(("waits", "codes"), [(True, set[str]()), (False, {"PTX0981"})])
def test_what_any_warp_has_waited_for_is_over_when_the_last_warp_of_the_cta_exits(waits: bool, codes: set[str]) -> None:
    text = _LEAVING if waits else _LEAVING.replace("mbarrier.try_wait", "// mbarrier.try_wait").replace(
        "@!%p3 bra wait;", "")  # fmt: skip
    codes_so_far: set[str] = set()
    for schedule, seed in (("eager", 0), ("random", 1), ("random", 2), ("adversarial", 1)):
        result = sim.run(parse(text), grid=2, block=64, cluster=2, on_hazard="report", schedule=schedule, seed=seed)
        codes_so_far |= {finding.rule.code for finding in result.hazards if finding.severity == "error"}
    assert codes_so_far == codes


_LEADER = (
    HEAD
    + """
.shared .b32 cell;
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 out) .reqntid 32 .explicitcluster
{
    .reg .b32 %r<12>; .reg .b64 %rd<6>; .reg .pred %p<6>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r3, bar;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 st.shared.u32 [cell], %r2;
    @%p1 mbarrier.init.shared::cta.b64 [%r3], 2;
    fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    and.b32 %r4, %r3, 0xFEFFFFFF;
    @%p1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
    mov.u32 %r5, cell;
    and.b32 %r5, %r5, -16777224;
    ld.shared::cluster.u32 %r6, [%r5+CELL];
    mov.u64 %rd2, cell;
    cvta.shared.u64 %rd2, %rd2;
    ld.u32 %r7, [%rd2];
    ld.shared.u32 %r8, [cell];
    isspacep.shared::cta %p2, %rd2;
    selp.u32 %r9, 1, 0, %p2;
    getctarank.u64 %r10, %rd2;
    mapa.u64 %rd3, %rd2, %r2;
    ld.u32 %r11, [%rd3];
    mad.lo.u32 %r7, %r7, 10, %r6;
    mad.lo.u32 %r7, %r8, 100, %r7;
    mad.lo.u32 %r7, %r9, 1000, %r7;
    mad.lo.u32 %r7, %r10, 10000, %r7;
    mad.lo.u32 %r7, %r11, 100000, %r7;
    and.b32 %r9, %r2, 1;
    setp.ne.u32 %p4, %r9, 0;
    @%p4 bra on;
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3], 0;
    @!%p3 bra wait;
on:
    mad.wide.u32 %rd1, %r2, 4, %rd1;
    @%p1 st.global.u32 [%rd1], %r7;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
"""
)


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_the_lowest_bit_of_the_rank_masked_off_an_address_leads_to_the_first_cta_of_the_pair(schedule: str) -> None:
    out = np.zeros(4, np.uint32)
    text = _LEADER.replace("+CELL", "")
    assert sim.run(parse(text), grid=4, block=32, cluster=4, args=[out], schedule=schedule).hazards == []
    assert out.tolist() == [(rank & 2) + 10 * rank + 100 * rank + 1000 + 110000 * rank for rank in range(4)]


_STORE = """
    mov.u32 %r9, theirs;
    xor.b32 %r10, %r2, 1;
    mapa.shared::cluster.u32 %r6, %r9, DATA;
    mapa.shared::cluster.u32 %r7, %r3, %r10;
    st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r6], %r1, [%r7];
"""
_TOGETHER = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"


def wrong_ctas(body: str, size: int) -> list[str]:
    """Return the messages and remedies for asynchronous operations that name the wrong CTA."""
    module = parse(make_pair(size, body, _TOGETHER))
    result = sim.run(module, grid=2, block=32, cluster=2, args=[np.zeros(2, np.uint32)], on_hazard="report")
    findings = [finding for finding in result.hazards if finding.rule.code == "PTX0944"]
    assert all(finding.place.origin for finding in findings)
    return [f"{finding.count} × {finding.what}: {finding.help}" for finding in findings]


@pytest.mark.parametrize("name", ["st.async.shared", "red.async.relaxed.cluster.shared"])
def test_asynchronous_stores_tell_a_barrier_of_the_cta_that_they_store_to(name: str) -> None:
    body = _STORE.replace("st.async.shared", name).replace("%r6, %r9", "%r6, %r5")
    if name.startswith("red"):
        body = body.replace("bytes.u32", "bytes.add.u32")
    assert wrong_ctas(body.replace("DATA", "%r10"), 128) == []
    (message,) = wrong_ctas(body.replace("DATA", "%r2"), 128)
    assert message.startswith("64 × the data goes to CTA 1, the mbarrier is in CTA 0: map both addresses")


def test_a_bulk_copy_from_shared_memory_goes_to_another_cta() -> None:
    assert wrong_ctas(_SEND, 16) == []
    to_itself = _SEND.replace("xor.b32 %r10, %r2, 1;", "mov.u32 %r10, %r2;")
    (message,) = wrong_ctas(to_itself, 16)
    assert message.startswith("2 × the copy stays in CTA 0: use the address in another CTA")
    reduction = to_itself.replace("cp.async", "cp.reduce.async").replace(
        "complete_tx::bytes", "complete_tx::bytes.add.u32"
    )
    assert wrong_ctas(reduction, 16) == []  # The manual states this only for copies.
