"""Tensor memory and operands of products passed between instructions: the manual's examples and CUTLASS are clean, and
missing synchronization is named."""

from __future__ import annotations

import pytest

from pyptx.diagnostics import PtxError, Severity
from tests.messages import raises
from tests.sim.kernels import by_schedule, codes, kernel

ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [{}], 64;\n"
FREE = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;\n"
MOVE = """shr.u32 %r2, %t, 5; shl.b32 %r2, %r2, 21; add.u32 %r2, %r2, %r1;
tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%t}; tcgen05.wait::st.sync.aligned;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2]; tcgen05.wait::ld.sync.aligned;
"""
SPACE = ".shared .align 128 .b8 box[128]; .shared .b32 where; .shared .b64 bar;"


def tensor(body: str) -> str:
    head = "setp.lt.u32 %p1, %t, 32; setp.eq.u32 %p2, %t, 0; ld.param.u64 %o, [out];\n"
    return kernel(head + body, module=SPACE).replace("sm_90a", "sm_100a")


def add_allocation(body: str, variable: str = "where") -> str:
    return tensor(
        f"@!%p1 bra there;\n{ALLOC.format(variable)}there: bar.sync 0;\nld.shared.u32 %r1, [{variable}];\n{body}"
    )


def test_the_warp_that_allocates_may_read_the_address_at_once() -> None:
    text = tensor(ALLOC.format("where") + "ld.shared.u32 %r1, [where];\n" + MOVE + FREE)
    assert codes(by_schedule(text, block=32)) == {()}


def test_other_warps_need_a_barrier_to_read_the_address() -> None:
    text = add_allocation("bar.sync 0;\n@!%p1 bra end;\n" + FREE + "end:").replace("there: bar.sync 0;", "there:")
    assert all("PTX0901" in codes_of_run for codes_of_run in codes(by_schedule(text, block=128)))


@pytest.mark.parametrize("is_stored", [True, False])
def test_tensor_memory_that_was_never_written_is_uninitialized(is_stored: bool) -> None:
    move = MOVE if is_stored else MOVE.replace("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%t};", "")
    all_codes = codes(
        by_schedule(tensor(ALLOC.format("where") + "ld.shared.u32 %r1, [where];\n" + move + FREE), block=32)
    )
    assert all_codes == {() if is_stored else ("PTX0912",)}


A_IN_TENSOR_MEMORY = """@%p2 mbarrier.init.shared::cta.b64 [bar], 1;
shl.b32 %r4, %t, 1; mov.u32 %r5, b; add.u32 %r4, %r4, %r5; mov.u32 %r2, 0; cvt.u16.u32 %h1, %r2;
st.shared.b16 [%r4], %h1; fence.proxy.async.shared::cta;
shr.u32 %r2, %t, 5; shl.b32 %r2, %r2, 21; add.u32 %r2, %r2, %r1; add.u32 %r3, %r2, 32;
tcgen05.st.sync.aligned.32x32b.x8.b32 [%r3], {{%t, %t, %t, %t, %t, %t, %t, %t}};
tcgen05.wait::st.sync.aligned;
tcgen05.fence::before_thread_sync; bar.sync 0; tcgen05.fence::after_thread_sync;
mov.u32 %r5, b; shr.u32 %r5, %r5, 4; cvt.u64.u32 %rd1, %r5; or.b64 %rd1, %rd1, 0x401000080000;
add.u32 %r3, %r1, 32; mov.u32 %r6, 0x08020010; setp.ne.u32 %p3, %t, %t;
@%p2 tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r3], %rd1, %r6, %p3;
@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra w;
bar.sync 0; @!%p1 bra end;
"""


def test_what_is_missing_before_a_product_reads_a_in_tensor_memory_is_found() -> None:
    whole = add_allocation(A_IN_TENSOR_MEMORY.format() + FREE + "end:").replace(
        SPACE, f"{SPACE} .shared .align 128 .b8 b[256];"
    )
    assert codes(by_schedule(whole, words=128, block=128)) == {()}
    for line, code in (
        ("tcgen05.wait::st.sync.aligned;\n", "PTX0939"),
        ("tcgen05.fence::before_thread_sync;", "PTX0937"),
    ):
        assert line in whole
        assert all(
            code in codes_of_run for codes_of_run in codes(by_schedule(whole.replace(line, ""), words=128, block=128))
        ), line


COPY = """bar.sync 0;
@%p2 mbarrier.init.shared::cta.b64 [bar], 1;
@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 128;
@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [box], [%o], 128, [bar];
bar.sync 0;
w: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra w;
@!%p1 bra end;
"""


def test_a_copy_over_the_address_that_all_have_read_is_a_warning() -> None:
    by_order = by_schedule(add_allocation(COPY + FREE + "end:", "box"), block=64)
    assert codes(by_order) == {("PTX0923",)}
    assert {finding.severity for findings in by_order.values() for finding in findings} == {Severity.WARNING}


def test_a_copy_over_the_address_that_nobody_has_read_is_an_error() -> None:
    text = add_allocation(COPY + "mov.u32 %r1, 0;\n" + FREE + "end:", "box").replace("ld.shared.u32 %r1, [box];\n", "")
    assert codes(by_schedule(text, block=64)) == {("PTX0921",)}


def test_a_barrier_before_dealloc_is_enough() -> None:
    text = add_allocation(MOVE + "bar.sync 0;\n@!%p1 bra end;\n" + FREE + "end:")
    assert codes(by_schedule(text, words=128, block=128)) == {()}


@pytest.mark.parametrize(
    ("left_out", "code", "says"),
    [
        ("tcgen05.wait::ld.sync.aligned;", "PTX0938", "`tcgen05.wait::ld.sync.aligned` before the arrive"),
        ("bar.sync 0;\n@!%p1", "PTX0938", "put a barrier between `tcgen05.wait::ld` of that warp and this"),
    ],
)
def test_what_is_missing_before_dealloc_is_named(left_out: str, code: str, says: str) -> None:
    text = add_allocation(MOVE + "bar.sync 0;\n@!%p1 bra end;\n" + FREE + "end:")
    text = text.replace(left_out, "@!%p1" if "@" in left_out else "")
    for findings in by_schedule(text, words=128, block=128).values():
        helps = [finding.diagnostic().help or "" for finding in findings if finding.rule.code == code]
        assert all(says in help for help in helps)
        assert helps or {finding.rule.code for finding in findings} <= {"PTX0939", "PTX0947"}


@pytest.mark.parametrize("counts", [("", ", 64"), (", 64", ""), (", 64", ", 64")])
def test_a_count_of_the_whole_cta_is_no_count(counts: tuple[str, str]) -> None:
    body = "@%p1 bra low;\nbar.sync 0{}; bra.uni end;\nlow: bar.sync 0{};\nend:"
    assert codes(by_schedule(tensor(body.format(*counts)), block=64)) == {()}


def test_a_count_of_less_than_the_cta_is_another_count() -> None:
    text = tensor("setp.lt.u32 %p3, %t, 64; @%p3 bra low;\nbar.sync 0; bra.uni end;\nlow: bar.sync 0, 96;\nend:")
    with raises(PtxError, match="PTX0970"):
        by_schedule(text, words=128, block=128, on_hazard="raise")


TWO_SLOTS = """mov.u32 %r2, slots; add.u32 %r2, %r2, {}; shr.u32 %r2, %r2, 4; cvt.u64.u32 %rd1, %r2;
or.b64 %rd1, %rd1, 0x1000080000; add.u64 %rd2, %rd1, 128; setp.eq.u32 %p2, %t, 0; ld.param.u64 %o, [out];
@%p2 mbarrier.init.shared::cta.b64 [full], 1; @%p2 mbarrier.init.shared::cta.b64 [full+8], 1;
bar.sync 0;
@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 2304;
@%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slots], [%o], 2304, [full];
@%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full+8], 2304;
@%p2 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [slots+2304], [%o], 2304, [full+8];
w0: mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0; @!%p3 bra w0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%f0, %f1, %f2, %f3}}, %rd1, %rd2, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
w1: mbarrier.try_wait.parity.shared::cta.b64 %p3, [full+8], 0; @!%p3 bra w1;"""


@pytest.mark.parametrize("slot", [0, 1])
def test_a_product_of_a_slot_that_was_not_waited_for_mentions_the_bytes_that_nobody_reads(slot: int) -> None:
    text = kernel(TWO_SLOTS.format(2304 * slot), module=".shared .align 128 .b8 slots[4608]; .shared .b64 full[2];")
    for findings in by_schedule(text, words=1024, block=128).values():
        assert [finding.rule.code for finding in findings] == ["PTX0930"] * slot
        assert all("2304 bytes that `cp.async.bulk." in note for finding in findings for note in finding.notes)
        assert all("copied to `slots` were never read" in note for finding in findings for note in finding.notes)
        assert all(finding.notes for finding in findings)


ONE_COPY = "tcgen05.cp.cta_group::1.128x256b [%r1], %rd1;"
COPY_THEN = """@%p2 mbarrier.init.shared::cta.b64 [bar], 1;
mov.u32 %r5, b; shl.b32 %r4, %t, 5; add.u32 %r4, %r4, %r5;
st.shared.v4.b32 [%r4], {{%t, %t, %t, %t}}; st.shared.v4.b32 [%r4+16], {{%t, %t, %t, %t}};
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r5, %r5, 4; cvt.u64.u32 %rd1, %r5; or.b64 %rd1, %rd1, 0x401000080000;
@%p2 {copy}
@%p2 {next}
@%p2 tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [bar];
w: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra w;
bar.sync 0; @!%p1 bra end;
"""


@pytest.mark.parametrize(
    ("next_operation", "findings"), [(ONE_COPY, ()), ("tcgen05.shift.cta_group::1.down [%r1];", ("PTX0935",))]
)
def test_a_copy_is_in_order_with_copies_but_not_with_shifts(next_operation: str, findings: tuple[str, ...]) -> None:
    text = add_allocation(COPY_THEN.format(copy=ONE_COPY, next=next_operation) + FREE + "end:")
    text = text.replace(SPACE, f"{SPACE} .shared .align 128 .b8 b[4096];")
    assert codes(by_schedule(text, words=128, block=128)) == {findings}
