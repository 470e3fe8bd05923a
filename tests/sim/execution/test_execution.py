"""Divergence, loops, calls, barriers, and conditions that stop a run."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.kernels import assert_reported, kernel, results

STORE = "st.global.u32 [%o], %r0;"


def test_branches_part_and_meet() -> None:
    body = f"""and.b32 %r1, %t, 3;
setp.lt.u32 %p0, %r1, 2;
mov.u32 %r0, 10;
@%p0 bra $low;
add.u32 %r0, %r0, %r1;
bra $end;
$low: sub.u32 %r0, %r0, %r1;
$end: mul.lo.u32 %r0, %r0, 2;
{STORE}"""
    assert results(body)[:4] == [20, 18, 24, 26]


def test_loops_of_different_length() -> None:
    body = f"mov.u32 %r0, 0;\n$l: add.u32 %r0, %r0, 2;\nsetp.lt.u32 %p0, %r0, %t;\n@%p0 bra $l;\n{STORE}"
    assert results(body) == [max(2, (t + 1) // 2 * 2) for t in range(64)]


def test_groups_meet_behind_a_loop() -> None:
    body = f"""mov.u32 %r1, 0;
$l: add.u32 %r1, %r1, 1;
setp.lt.u32 %p0, %r1, %t;
@%p0 bra $l;
activemask.b32 %r0;
{STORE}"""
    assert set(results(body)) == {-1}


def test_spin_lock_lets_its_holder_run() -> None:
    module = ".global .u32 lock = 0;\n.global .u32 total = 0;"
    body = f"""$try: atom.global.cas.b32 %r1, [lock], 0, 1;
setp.ne.u32 %p0, %r1, 0;
@%p0 bra $try;
ld.volatile.global.u32 %r2, [total];
add.u32 %r2, %r2, %t;
st.volatile.global.u32 [total], %r2;
atom.global.exch.b32 %r3, [lock], 0;
bar.sync 0;
ld.global.u32 %r0, [total];
{STORE}"""
    assert set(results(body, 40, module=module)) == {sum(range(40))}


def test_a_flag_in_global_memory_crosses_ctas() -> None:
    text = kernel("""mov.u32 %r1, %ctaid.x;
ld.param.u64 %rd1, [out];
setp.eq.u32 %p0, %r1, 3;
@%p0 bra $set;
$wait: ld.acquire.gpu.global.u32 %r2, [%rd1];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $wait;
bra $end;
$set: st.release.gpu.global.u32 [%rd1], 7;
mov.u32 %r2, 0;
$end: mad.wide.u32 %rd2, %r1, 4, %rd1;
st.global.u32 [%rd2+4], %r2;""")  # fmt: skip
    out = np.zeros(5, np.uint32)
    sim.run(parse(text), grid=4, block=1, args=(out,), batch_lanes=1)
    assert out.tolist() == [7, 7, 7, 7, 0]


def test_recursion_keeps_registers_and_locals() -> None:
    module = """.func (.param .b32 result) fib(.param .b32 n)
{
.reg .b32 %a<6>; .reg .pred %q;
ld.param.u32 %a1, [n];
setp.lt.u32 %q, %a1, 2;
mov.u32 %a2, %a1;
@%q bra $done;
{ .param .b32 p; .param .b32 r; sub.u32 %a3, %a1, 1; st.param.b32 [p], %a3; call (r), fib, (p); ld.param.b32 %a2, [r]; }
{ .param .b32 p; .param .b32 r; sub.u32 %a3, %a1, 2; st.param.b32 [p], %a3; call (r), fib, (p); ld.param.b32 %a4, [r]; }
add.u32 %a2, %a2, %a4;
$done: st.param.b32 [result], %a2;
ret;
}"""
    body = f"""{{ .param .b32 p; .param .b32 r;
st.param.b32 [p], %t; call (r), fib, (p); ld.param.b32 %r0, [r]; }}
{STORE}"""
    assert results(body, 12, module=module) == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89]


def test_indirect_calls_and_register_parameters() -> None:
    module = """.func (.reg .u32 r) twice(.reg .u32 x) { add.u32 r, x, x; ret; }
.func (.reg .u32 r) square(.reg .u32 x) { mul.lo.u32 r, x, x; ret; }"""
    body = f"""mov.u64 %rd1, twice;
mov.u64 %rd2, square;
and.b32 %r1, %t, 1;
setp.eq.u32 %p0, %r1, 0;
selp.b64 %rd3, %rd1, %rd2, %p0;
$proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);
call (%r0), %rd3, (%t), $proto;
{STORE}"""
    assert results(body, 8, module=module) == [0, 1, 4, 9, 8, 25, 12, 49]


def test_brx_idx() -> None:
    body = f"""and.b32 %r1, %t, 3;
$ts: .branchtargets $a, $b, $c, $b;
brx.idx %r1, $ts;
$a: mov.u32 %r0, 1; bra $end;
$b: mov.u32 %r0, 2; bra $end;
$c: mov.u32 %r0, 3;
$end: {STORE}"""
    assert results(body, 8) == [1, 2, 3, 2, 1, 2, 3, 2]


def test_barriers_reduce() -> None:
    body = f"""setp.lt.u32 %p0, %t, 5;
bar.red.popc.u32 %r1, 0, %p0;
bar.red.or.pred %p1, 1, %p0;
bar.red.and.pred %p2, 1, %p0;
selp.u32 %r2, 100, 0, %p1;
selp.u32 %r3, 1000, 0, %p2;
add.u32 %r0, %r1, %r2;
add.u32 %r0, %r0, %r3;
{STORE}"""
    assert set(results(body)) == {105}


def test_named_barriers_hand_over() -> None:
    module = ".shared .u32 cell;"
    body = f"""setp.ge.u32 %p0, %t, 32;
@%p0 bra $consume;
mov.u32 %r1, 42;
st.shared.u32 [cell], %r1;
bar.arrive 1, 64;
bra $end;
$consume: bar.sync 1, 64;
ld.shared.u32 %r0, [cell];
{STORE}
$end:"""
    assert results(body, module=module)[32:] == [42] * 32


def test_warp_barriers_at_different_places_meet() -> None:
    body = f"""setp.lt.u32 %p0, %t, 16;
mov.u32 %r0, 1;
@%p0 bra $low;
bar.warp.sync 0xffffffff;
bra $end;
$low: bar.warp.sync 0xffffffff;
$end: {STORE}"""
    assert set(results(body, 32)) == {1}


def test_shuffles_wait_for_their_members() -> None:
    body = f"""mov.u32 %r1, 0;
$l: add.u32 %r1, %r1, 1;
setp.lt.u32 %p0, %r1, %t;
@%p0 bra $l;
shfl.sync.idx.b32 %r0, %r1, 31, 31, 0xffffffff;
{STORE}"""
    assert set(results(body, 32)) == {31}


def test_guarded_exit_and_barrier_of_the_others() -> None:
    body = f"setp.ge.u32 %p0, %t, 10;\n@%p0 exit;\nbar.sync 0;\nmov.u32 %r0, 5;\n{STORE}"
    assert results(body) == [5] * 10 + [0] * 54


def test_clusters_exchange_through_shared_memory() -> None:
    text = kernel("""mov.u32 %r1, %cluster_ctarank;
st.shared.u32 [cell], %r1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
xor.b32 %r2, %r1, 1;
mov.u32 %r3, cell;
mapa.shared::cluster.u32 %r3, %r3, %r2;
ld.shared::cluster.u32 %r0, [%r3];
mov.u32 %r4, %ctaid.x;
ld.param.u64 %rd1, [out];
mad.wide.u32 %rd1, %r4, 4, %rd1;
st.global.u32 [%rd1], %r0;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;""", module=".shared .u32 cell;")  # fmt: skip
    out = np.zeros(4, np.uint32)
    sim.run(parse(text), grid=4, block=32, cluster=2, args=(out,))
    assert out.tolist() == [1, 0, 1, 0]


def test_printf() -> None:
    module = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 text[14] = {37, 100, 58, 32, 37, 46, 50, 102, 32, 37, 115, 10, 0, 0};
.global .align 1 .b8 word[3] = {104, 105, 0};"""
    body = """.local .align 8 .b8 pack[24];
mov.u64 %rd1, pack; cvta.local.u64 %rd2, %rd1;
st.local.u32 [pack], %t;
mov.b64 %rd3, 0d3FF8000000000000; st.local.b64 [pack+8], %rd3;
mov.u64 %rd4, word; cvta.global.u64 %rd4, %rd4; st.local.u64 [pack+16], %rd4;
mov.u64 %rd5, text; cvta.global.u64 %rd5, %rd5;
{ .param .b64 f; .param .b64 a; .param .b32 r;
st.param.b64 [f], %rd5; st.param.b64 [a], %rd2; call.uni (r), vprintf, (f, a); }"""
    out = np.zeros(2, np.int32)
    output = sim.run(parse(kernel(body, module=module)), block=2, args=(out,)).printed
    assert output == "0: 1.50 hi\n1: 1.50 hi\n"


HEAD_OF_HEAP = """.extern .func (.param .b64 address) malloc (.param .b64 size);
.extern .func free (.param .b64 address);"""
ALLOCATE = "call.uni (%rd1), malloc, (%rd0);\n"


def test_each_thread_allocates_its_own_memory() -> None:
    """Thread t asks for 8 t bytes: no bytes, no memory."""
    body = f"""mul.wide.u32 %rd0, %t, 8;
{ALLOCATE}setp.eq.u64 %p0, %rd1, 0;
mov.u32 %r0, 99;
@%p0 bra $end;
st.u32 [%rd1], %t;
bar.warp.sync 0xe;
ld.u32 %r0, [%rd1];
$end: call.uni free, (%rd1);
{STORE}"""
    out = np.zeros(4, np.int32)
    sim.run(parse(kernel(body, module=HEAD_OF_HEAP)), block=4, args=(out,))
    assert out.tolist() == [99, 1, 2, 3]


@pytest.mark.parametrize(("kept", "count"), [("", 4), ("call.uni free, (%rd1);", 32)])
def test_the_heap_is_as_large_as_cudas(kept: str, count: int) -> None:
    """Threads, one after another, ask for 2 MiB each; the heap has 8."""
    body = f"""mov.u64 %rd0, 0x200000;
mov.u32 %r1, 0;
mov.u32 %r0, 0;
$next: setp.ne.u32 %p0, %r1, %t;
@%p0 bra $skip;
{ALLOCATE}setp.ne.u64 %p1, %rd1, 0;
selp.u32 %r0, 1, 0, %p1;
{kept}
$skip: add.u32 %r1, %r1, 1;
bar.warp.sync -1;
setp.lt.u32 %p0, %r1, 32;
@%p0 bra $next;
{STORE}"""
    out = np.zeros(32, np.int32)
    sim.run(parse(kernel(body, module=HEAD_OF_HEAP)), block=32, args=(out,))
    assert out.tolist() == [1] * count + [0] * (32 - count)


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ("st.u64 [%rd1+8], 1;", "PTX1110", "allocation 1 of malloc"),
        ("call.uni free, (%rd1);\nst.u64 [%rd1], 1;", "PTX1110", "allocation 1 of malloc"),
        ("call.uni free, (%rd1);\ncall.uni free, (%rd1);", "PTX1132", "which was already freed"),
        ("add.u64 %rd1, %rd1, 4;\ncall.uni free, (%rd1);", "PTX1132", "`malloc` did not return"),
    ],
)
def test_misuse_of_the_heap(body: str, code: str, word: str) -> None:
    text = kernel(f"mov.u64 %rd0, 8;\n{ALLOCATE}{body}", module=HEAD_OF_HEAP)
    assert_reported(text, code, word, block=1, args=(np.zeros(1, np.int32),))


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        ("trap;", "PTX1120", "thread (0, 0, 0)"),
        ("$l: bra $l;", "PTX1122", "max_steps"),
        ("bar.sync 0, 64;", "PTX0990", "bar.sync"),
        ("mov.u64 %rd1, 64;\n$q: .callprototype _ ();\ncall %rd1, $q;", "PTX1123", "0x40"),
        ("tcgen05.fence::before_thread_sync;", "PTX1106", "tcgen05"),
    ],
)
def test_what_stops_a_run(body: str, code: str, word: str) -> None:
    assert_reported(kernel(body), code, word, block=32, args=(np.zeros(32, np.int32),), max_steps=2000)


def test_a_barrier_of_some_warps_needs_only_these() -> None:
    body = f"""setp.ge.u32 %p0, %t, 64;
@%p0 bra $third;
bar.sync 1, 64;
bar.sync 2, 96;
bra $end;
$third: bar.sync 2, 96;
$end: mov.u32 %r0, 3;
{STORE}"""
    assert set(results(body, 96)) == {3}


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("add.u32 %r0, %t, 16;\nbar.sync %r0;", "PTX0970", "a CTA has barriers 0 to 15"),
        ("bar.sync 1/0;", "PTX1106", "divided by"),
    ],
)
def test_barriers_that_no_cta_has(body: str, code: str, words: str) -> None:
    assert_reported(kernel(body), code, words, block=1, args=(np.zeros(1, "u4"),), check="none")


def test_barriers_and_masks_may_be_constant_expressions() -> None:
    """Warps 0 and 1 meet at barrier 3 without warps 2 and 3, which meet at another."""
    body = """mov.u32 %r1, cells; mad.lo.u32 %r1, %t, 4, %r1; st.shared.u32 [%r1], %t; setp.ge.u32 %p0, %t, 64;
@%p0 bra others;
bar.sync 1+2, 32*2;
bra both;
others: bar.warp.sync 2-3;
bar.sync 16/4, 64;
both: xor.b32 %r2, %t, 32; mov.u32 %r1, cells; mad.lo.u32 %r1, %r2, 4, %r1; ld.shared.u32 %r0, [%r1];
shfl.sync.bfly.b32 %r0, %r0, 1, 31, ~0;"""
    found = results(f"{body}\n{STORE}", 128, module=".shared .u32 cells[128];", check="all")
    assert found == [t ^ 33 for t in range(128)]
    waits = body.replace("bar.sync 16/4, 64;", "bar.sync 5-1, 32*3;")
    assert_reported(kernel(waits, module=".shared .u32 cells[128];"), "PTX0990", "barrier 4 of CTA 0", "2 of 3 warps",
             block=128, args=(np.zeros(128, np.int32),))  # fmt: skip


@pytest.mark.parametrize("barrier", ["bar.sync 1+1;", "bar.sync 1+1, 32+32;", "bar.warp.sync 0xffff0000+0xffff;"])
def test_operands_of_barriers_are_constant_expressions(barrier: str) -> None:
    assert results(f"mov.u32 %r0, %t;\n{barrier}\n{STORE}") == list(range(64))


def test_a_branch_leaves_its_scope() -> None:
    body = "mov.u32 %r0, 5; setp.lt.u32 %p0, %t, 9;\n{ { @%p0 bra past; add.u32 %r0, %r0, 1; } }\npast:"
    assert results(f"{body}\n{STORE}") == [5] * 9 + [6] * 55
