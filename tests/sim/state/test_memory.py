"""State spaces, address checks, atomics."""

from __future__ import annotations

import re

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.program.variables import LOCAL_WINDOW
from tests.messages import raises
from tests.sim.kernels import assert_reported, kernel, results

STORE = "st.global.u32 [%o], %r0;"


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("ld.global.u32 %r0, [%o+256];", "PTX1110", ("0 bytes after its end", "`out`", "thread (0, 0, 0)")),
        ("ld.global.u32 %r0, [%o+-4];", "PTX1110", ("4 bytes before its start",)),
        ("ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [%o];", "PTX1111", ("multiple of 16", "thread (1, 0, 0)")),
        ("mov.u64 %rd1, 0;\nld.global.u32 %r0, [%rd1];", "PTX1110", ("null pointer",)),
        ("mov.u32 %r1, 0x4000;\nst.shared.u32 [%r1], %r1;", "PTX1110", ("at 0x4000: shared memory",)),
        ("mov.u32 %r1, cell;\nst.shared.u32 [%r1+64], %r1;", "PTX1110", ("at `cell`+64 (0x",)),
        ("mov.u32 %r1, cell;\nst.shared.u32 [%r1+2], %r1;", "PTX1111", ("at `cell`+2 (0x", "not a multiple of 4")),
        ("mov.u64 %rd1, cell;\nld.global.u32 %r0, [%rd1+4];", "PTX1110", ("shared memory, where it is `cell`+4",)),
        ("mov.u64 %rd1, 0x300000010;\nld.shared.u32 %r0, [%rd1];", "PTX1110", ("another space (local)",)),
        ("mov.u64 %rd1, 0x100000000;\nld.shared.u32 %r0, [%rd1];", "PTX1110", ("another space (param)",)),
        ("ld.shared.u32 %r0, [%o];", "PTX1110", ("another space (global)",)),
        ("mov.u64 %rd1, 0x500000000;\nld.shared.u32 %r0, [%rd1];", "PTX1110", ("0x500000000: shared memory is",)),
        ("mov.u64 %rd1, table;\nst.u32 [%rd1], 1;", "PTX1113", ("read-only",)),
        ("ld.const.u32 %r0, [%o];", "PTX1112", ("constant",)),
        ("ld.local.u32 %r0, [%o];", "PTX1110", ("local memory",)),
    ],
)
def test_wrong_addresses(body: str, code: str, words: tuple[str, ...]) -> None:
    module = ".const .u32 table[4] = {1, 2, 3, 4};" if "table" in body else ".shared .u32 cell[16];"
    text = kernel(body + "\nld.shared.u32 %r9, [cell];" * ("cell" in module), module=module)
    assert_reported(text, code, *words, block=64, args=(np.zeros(64, np.int32),))


def test_nothing_is_written_back_on_an_error() -> None:
    out = np.zeros(64, np.int32)
    assert_reported(kernel("mov.u32 %r0, 9;\n" + STORE + "\nbar.sync 0;\ntrap;"), "PTX1120", block=64, args=(out,))
    assert not out.any()


def test_a_read_only_array_cannot_be_written() -> None:
    out = np.zeros(64, np.int32)
    out.flags.writeable = False
    assert_reported(kernel("mov.u32 %r0, 9;\n" + STORE), "PTX1113", "read-only", block=64, args=(out,))


def test_module_variables_hold_their_initializers() -> None:
    module = """.global .align 4 .b8 bytes[8] = {1, 2, 3, 4, 0xFF, 0, 0, 0x80};
.global .u32 grid[2][3] = {{1, 2}, {3, 4, 5}};
.const .f32 half = 0f3F000000;
.global .u64 where = generic(bytes);
.global .align 4 .u8 part[2] = {0xFF(0x1234), 0xFF00(0x1234)};"""
    body = f"""ld.global.u32 %r1, [bytes];
ld.global.s8 %r2, [bytes+4];
ld.global.u32 %r3, [grid+12];
ld.const.f32 %f1, [half];
cvt.rzi.s32.f32 %r4, 0f40000000;
ld.global.u64 %rd1, [where];
ld.u8 %r5, [%rd1+1];
ld.global.u8 %r6, [part+1];
add.s32 %r0, %r1, %r2; add.s32 %r0, %r0, %r3; add.s32 %r0, %r0, %r5; add.s32 %r0, %r0, %r6;
mov.b32 %r7, %f1; shr.u32 %r7, %r7, 24; add.s32 %r0, %r0, %r7;
{STORE}"""
    assert results(body, 1, module=module) == [0x04030201 - 1 + 3 + 2 + 0x12 + 0x3F]


INITIAL: dict[str, tuple[str, list[int]]] = {
    "a float of 32 bits": (".global .b32 g = 1.1;", [0x3F8CCCCD]),
    "a float of 64 bits": (".global .b64 g = 1.5;", [0, 0x3FF80000]),
    "the low bits of a double": (".global .align 4 .b16 g[2] = {1.1, 0d0000000000001234};", [0x1234999A]),
    "the low byte of a double": (".global .align 4 .b8 g[4] = {1.1, 1, 0d0000000000001234, 2};", [0x0234019A]),
    "vectors": (".global .v2 .u32 g[3] = {{1, 2}, {3, 4}};", [1, 2, 3, 4, 0, 0]),
    "a vector": (".global .v4 .u32 g = {1, 2, 3, 4};", [1, 2, 3, 4]),
    "nested": (".global .u32 g[2][2][3] = {{{1, 2}, {3}}, {{4, 5, 6}, {7}}};", [1, 2, 0, 3, 0, 0, 4, 5, 6, 7, 0, 0]),
    "expressions": (".global .u32 g[5] = {7-3, ~5, 1 ? 2 : 3, (6), 2 + 3};", [4, 0xFFFFFFFA, 2, 6, 5]),
}


@pytest.mark.parametrize("name", INITIAL)
def test_initial_values_are_as_ptxas_writes_them(name: str) -> None:
    module, words = INITIAL[name]
    machine = sim.Machine(parse(kernel("mov.u64 %rd1, g;", module=module)), args=[np.zeros(1, np.uint32)])
    found = machine.memory("g").view(np.uint32)
    assert found.tolist() == words


def test_initial_values_may_be_sums_of_addresses() -> None:
    module = """.global .u32 %x[4];
.global .u32 y[4];
.global .u64 g[8] = {%x, %x+4, y, y+-4, generic(y)+12, y+8, y+1+2, y};"""
    body = f"""mov.u64 %rd1, g; mad.wide.u32 %rd1, %t, 16, %rd1;
ld.global.v2.u64 {{%rd2, %rd3}}, [%rd1]; sub.s64 %rd3, %rd3, %rd2; cvt.u32.u64 %r0, %rd3;
{STORE}"""
    assert results(body, 3, module=module) == [4, -4, -4]


@pytest.mark.parametrize(
    ("module", "code", "words"),
    [
        (".global .u8 g[2] = {1, 2, 3};", "PTX1106", ("`g`", "more values than elements")),
        (".global .u64 g = {nowhere};", "PTX1106", ("`g`", "`nowhere` is not declared")),
        (".global .u32 g = {1/0};", "PTX1106", ("`g`", "without a value")),
        (f".global .b8 g[{2**62}];", "PTX1107", ("`g`", f"{2**62} bytes")),
    ],
)
def test_variables_that_cannot_be(module: str, code: str, words: tuple[str, ...]) -> None:
    assert_reported(kernel("mov.u64 %rd1, g;", module=module), code, *words, args=(np.zeros(1, "u4"),))


@pytest.mark.parametrize("value", ["1/0", "5 % 0"])
def test_a_constant_expression_without_a_value_is_no_number(value: str) -> None:
    assert_reported(kernel(f"mov.u64 %rd1, {value};"), "PTX1106", "divided by", args=(np.zeros(1, "u4"),))


def test_generic_addresses_reach_every_space_at_once() -> None:
    module = ".shared .u32 cell[64];\n.global .u32 there[64];"
    body = f""".local .align 4 .u32 own;
mov.u32 %r1, cell; mad.lo.u32 %r1, %t, 4, %r1; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd1, %rd1;
mov.u64 %rd2, there; mad.wide.u32 %rd2, %t, 4, %rd2; cvta.global.u64 %rd2, %rd2;
mov.u64 %rd3, own; cvta.local.u64 %rd3, %rd3;
rem.u32 %r2, %t, 3;
setp.eq.u32 %p0, %r2, 0; setp.eq.u32 %p1, %r2, 1;
selp.b64 %rd4, %rd1, %rd2, %p0;
selp.b64 %rd4, %rd3, %rd4, %p1;
st.u32 [%rd4], %t;
ld.u32 %r0, [%rd4];
isspacep.shared %p2, %rd4; isspacep.local %p3, %rd4; isspacep.global %p4, %rd4;
selp.u32 %r3, 1000, 0, %p2; selp.u32 %r4, 2000, 0, %p3; selp.u32 %r5, 3000, 0, %p4;
add.u32 %r0, %r0, %r3; add.u32 %r0, %r0, %r4; add.u32 %r0, %r0, %r5;
{STORE}"""
    kinds = (1000, 2000, 3000)
    assert results(body, module=module) == [t + kinds[t % 3] for t in range(64)]


@pytest.mark.parametrize("step", [1 << 32, (1 << 32) - 4])
@pytest.mark.parametrize("start", [0, LOCAL_WINDOW + (1 << 32)])
@pytest.mark.parametrize("access", ["ld.u32 %r0, [%rd2];", "st.u32 [%rd2], %t;", "atom.add.u32 %r0, [%rd2], 1;"])
def test_generic_addresses_in_windows_without_memory_are_reported(access: str, start: int, step: int) -> None:
    """Each thread accesses another 4 GiB."""
    body = f"""xor.b32 %r1, %t, 1;
cvt.u64.u32 %rd2, %r1;
mad.lo.u64 %rd2, %rd2, {step}, {start};
{access}"""
    assert_reported(kernel(body), "PTX1110", "accesses 4 bytes at", args=(np.zeros(32, "u4"),), block=32)


def test_instructions_of_shared_memory_take_the_low_half_of_generic_addresses() -> None:
    body = f"""mov.u32 %r1, cell; mad.lo.u32 %r1, %t, 4, %r1; cvt.u64.u32 %rd1, %r1; cvta.shared.u64 %rd2, %rd1;
st.shared.u32 [%rd2], %t; ld.shared.u32 %r0, [%rd1];
{STORE}"""
    assert results(body, module=".shared .u32 cell[64];") == list(range(64))


def test_dynamic_shared_memory_follows_static() -> None:
    module = ".shared .u32 fixed[4];\n.extern .shared .align 16 .b8 more[];"
    body = f"""mov.u32 %r1, more; mad.lo.u32 %r1, %t, 4, %r1;
st.shared.u32 [%r1], %t; st.shared.u32 [fixed], 0; bar.sync 0;
xor.b32 %r2, %t, 63; mov.u32 %r3, more; mad.lo.u32 %r3, %r2, 4, %r3;
ld.shared.u32 %r0, [%r3];
ld.shared.u32 %r4, [fixed]; add.u32 %r0, %r0, %r4;
{STORE}"""
    assert results(body, module=module, shared=256) == list(range(63, -1, -1))
    text = kernel(body, module=module)
    assert_reported(text, "PTX1110", "shared memory", block=64, args=(np.zeros(64, np.int32),), shared=128)


def test_vectors_and_widening() -> None:
    data = np.arange(256, dtype=np.uint8)
    text = kernel("""ld.param.u64 %rd1, [x]; mad.wide.u32 %rd1, %t, 4, %rd1;
ld.global.v4.s8 {%h1, %h2, %h3, %h4}, [%rd1];
cvt.s32.s16 %r1, %h1; cvt.s32.s16 %r2, %h2; cvt.s32.s16 %r3, %h3; cvt.s32.s16 %r4, %h4;
add.s32 %r0, %r1, %r2; add.s32 %r0, %r0, %r3; add.s32 %r0, %r0, %r4;
st.global.u32 [%o], %r0;""", params=".param .u64 out, .param .u64 x")  # fmt: skip
    out = np.zeros(64, np.int32)
    sim.run(parse(text), block=64, args=(out, data))
    np.testing.assert_array_equal(out, data.view(np.int8).reshape(-1, 4).astype(np.int32).sum(1))


def test_structures_by_value() -> None:
    array = np.arange(4, dtype=np.int32)
    text = kernel("""ld.param.u64 %rd1, [s+8]; ld.param.u32 %r1, [s];
ld.global.u32 %r2, [%rd1+12]; add.u32 %r0, %r1, %r2;
mov.b64 %rd2, s; cvta.param.u64 %rd2, %rd2; ld.u32 %r3, [%rd2]; add.u32 %r0, %r0, %r3;
st.global.u32 [%o], %r0;""", params=".param .u64 out, .param .align 8 .b8 s[16]")  # fmt: skip
    out = np.zeros(1, np.int32)
    sim.run(parse(text), block=1, args=(out, sim.Struct(16, [(0, np.int32(40)), (8, array)])))
    assert out.tolist() == [83]


def test_a_pointer_leads_to_a_table_in_device_memory() -> None:
    first, second = np.array([3], np.int32), np.array([5, 7], np.int32)
    text = kernel("""ld.param.u64 %rd1, [table]; ld.global.u64 %rd2, [%rd1]; ld.global.u32 %r1, [%rd2];
ld.global.u64 %rd2, [%rd1+8]; ld.global.u32 %r2, [%rd2+4]; ld.global.u32 %r3, [%rd1+16];
ld.global.u64 %rd2, [%rd1+24]; ld.global.u64 %rd2, [%rd2]; ld.global.u32 %r4, [%rd2];
mad.lo.u32 %r0, %r1, %r2, %r3; add.u32 %r0, %r0, %r4; st.global.u32 [%rd2], %r0;
st.global.u32 [%o], %r0;""", params=".param .u64 out, .param .u64 table")  # fmt: skip
    out = np.zeros(1, np.int32)
    structure = sim.Struct(8, [(0, np.int32(100))])
    sim.run(parse(text), block=1, args=(out, sim.Pointer([first, second, structure, sim.Pointer([first])])))
    assert out.tolist() == first.tolist() == [124]


def test_one_pointer_is_placed_once() -> None:
    table = sim.Pointer([np.zeros(1, np.int32)])
    text = kernel(
        "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; sub.u64 %rd1, %rd1, %rd2; st.global.u64 [%o], %rd1;",
        params=".param .u64 out, .param .u64 a, .param .u64 b",
    )
    out = np.ones(1, np.int64)
    sim.run(parse(text), block=1, args=(out, table, table))
    assert out.tolist() == [0]


@pytest.mark.parametrize(
    ("op", "operand", "last", "expected"),
    [
        ("add.u32", "1", 64, list(range(64))),
        ("inc.u32", "9", 4, [t % 10 for t in range(64)]),
        ("exch.b32", "%t", 63, [0, *range(63)]),
        ("max.s32", "%t", 63, [0, *range(63)]),
        ("or.b32", "%t", 63, [0, *np.bitwise_or.accumulate(np.arange(63)).tolist()]),
        ("dec.u32", "5", 2, [0, 5, 4, 3, 2, 1] * 10 + [0, 5, 4, 3]),
    ],
)
def test_lanes_at_one_address_take_turns(op: str, operand: str, last: int, expected: list[int]) -> None:
    module = ".global .u32 cell = 0;"
    body = f"atom.global.{op} %r0, [cell], {operand};\n{STORE}"
    assert results(body, module=module) == expected
    after = f"red.global.{op} [cell], {operand};\nbar.sync 0;\nld.global.u32 %r0, [cell];\n{STORE}"
    if op not in ("exch.b32",):
        assert set(results(after, module=module)) == {last}


@pytest.mark.parametrize(("space", "bits"), [("shared", 2), ("global", 0)])
def test_only_global_sums_flush_subnormal_numbers(space: str, bits: int) -> None:
    body = f"mov.b32 %f1, 1;\nst.{space}.f32 [cell], %f1;\natom.{space}.add.f32 %f2, [cell], %f1;\n"
    code = f"{body}ld.{space}.u32 %r0, [cell];\n{STORE}"
    assert results(code, 1, module=f".{space} .f32 cell;") == [bits]


def test_floating_atomics_on_shared_memory() -> None:
    module = ".shared .f32 cell;"
    body = f"""cvt.rn.f32.u32 %f1, %t;
setp.eq.u32 %p0, %t, 0;
mov.f32 %f2, 0f00000000;
@%p0 st.shared.f32 [cell], %f2;
bar.sync 0;
atom.shared.add.f32 %f3, [cell], %f1;
bar.sync 0;
ld.shared.f32 %f4, [cell];
cvt.rzi.s32.f32 %r0, %f4;
{STORE}"""
    assert set(results(body, module=module)) == {sum(range(64))}


POINTED = [
    "ld.global.u32 %r1, [%rd1];", "ld.u32 %r1, [%rd1];", "st.global.u32 [%rd1], %r1;", "st.u32 [%rd1], %r1;",
    "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];", "atom.global.add.u32 %r1, [%rd1], 1;", "red.add.u32 [%rd1], 1;",
    "ld.const.u32 %r1, [%rd1];",
    "mov.u32 %r1, box; cp.async.ca.shared.global [%r1], [%rd1], 16; cp.async.wait_all;",
    "mov.u32 %r1, box; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;",
    "mov.u32 %r1, box; cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd1, {%t}], [%r1];",
    "ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%rd1];",
    "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r2, %r3, %r4};",
]  # fmt: skip


@pytest.mark.parametrize("pointer", [0, 1 << 44])
@pytest.mark.parametrize("instruction", POINTED)
def test_an_address_in_a_launch_without_arrays_is_out_of_bounds(instruction: str, pointer: int) -> None:
    body = f".shared .align 128 .b8 box[256];\nld.param.u64 %rd1, [p];\n{instruction}"
    assert_reported(kernel(body, params=".param .u64 p"), "PTX1110", block=32, args=[pointer], check="none")


@pytest.mark.parametrize(("pointer", "words"), [(0xFFFC, "a null pointer"), (0x10000, "no argument is an array")])
def test_a_launch_without_arrays_says_so(pointer: int, words: str) -> None:
    text = kernel("ld.param.u64 %rd1, [p];\nld.u32 %r1, [%rd1];", params=".param .u64 p")
    assert_reported(text, "PTX1110", words, args=[pointer])


@pytest.mark.parametrize(
    ("pointer", "words", "help"),
    [(0, "a null pointer", "pass an array"), (4096, "a number passed as a pointer", "pass an array"),
     (0x7F_0000_1000, "the nearest allocation is", "compare the index")],
)  # fmt: skip
def test_a_wrong_pointer_has_a_remedy(pointer: int, words: str, help: str) -> None:
    text = kernel("ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [%rd1];", params=".param .u64 p, .param .u64 a")
    error = assert_reported(text, "PTX1110", words, args=[pointer, np.zeros(1, np.uint32)])
    assert (error.diagnostics[0].help or "").startswith(help)


@pytest.mark.parametrize(
    "access",
    [
        "mbarrier.arrive.shared::cta.b64 _, [%r4];", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r4], 16;",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r4], 16;", "ld.shared.u32 %r5, [%r4];",
        "atom.shared::cta.add.u32 %r5, [%r4], 1;",
    ],
)  # fmt: skip
def test_a_peers_address_lies_outside_the_window_of_the_own_cta(access: str) -> None:
    body = (
        "mbarrier.init.shared::cta.b64 [bar], 4; mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1;\n"
        "mov.u32 %r2, bar; mapa.shared::cluster.u32 %r4, %r2, %r1;\nbarrier.cluster.arrive; barrier.cluster.wait;\n"
        f"{access}\nbarrier.cluster.arrive; barrier.cluster.wait;"
    )
    text = kernel(body, module=".shared .b64 bar;")
    out = np.zeros(1, np.uint32)
    assert_reported(
        text, "PTX1110", "shared memory of rank 1", "`.shared::cluster` reaches it", grid=2, cluster=2, args=[out]
    )


_PEER = """mov.u32 %r1, %cluster_ctarank; xor.b32 %r1, %r1, 1; mov.u32 %r2, box;
mapa.shared::cluster.u32 %r4, %r2, %r1; mad.lo.u32 %r4, %t, 4, %r4;
{}
ld.shared::cluster.u32 %r5, [%r4];
barrier.cluster.arrive; barrier.cluster.wait;"""


@pytest.mark.parametrize(
    ("change", "address", "thread"),
    [
        ("", "0x11000410", 4), ("sub.u32 %r4, %r4, 4;", "0x110003fc", 0), ("add.u32 %r4, %r4, 8;", "0x11000410", 2),
        ("and.b32 %r4, %r4, -17; setp.gt.u32 %p1, %t, 2; @%p1 add.u32 %r4, %r4, 0x1000000;", "0x1200040c", 3),
        ("and.b32 %r4, %r4, -17; setp.eq.u32 %p1, %t, 5; @%p1 sub.u32 %r4, %r4, 0x2000000;", "0xf000404", 5),
    ],
    ids=["above", "below", "above by two", "rank", "window"],
)  # fmt: skip
def test_the_first_thread_outside_the_shared_memory_of_a_cluster_is_named(
    change: str, address: str, thread: int
) -> None:
    """The CTA of rank 0 comes first; the shared memory of rank 1 begins at 0x11000400."""
    text = kernel(_PEER.format(change), module=".shared .align 16 .b8 box[16];")
    assert_reported(
        text, "PTX1110", f"accesses 4 bytes at {address}: shared memory is 0x400 … 0x40f (16 bytes)",
        f"CTA 0, thread ({thread}, 0, 0), one of 16 here", grid=2, block=8, cluster=2, args=[np.zeros(8, np.uint32)],
    )  # fmt: skip


def test_each_thread_reads_the_cta_that_its_address_names() -> None:
    body = """mov.u32 %r0, %ctaid.x; mad.lo.u32 %r1, %r0, 100, %t; mov.u32 %r2, box; mad.lo.u32 %r3, %t, 4, %r2;
st.shared.u32 [%r3], %r1; barrier.cluster.arrive; barrier.cluster.wait;
and.b32 %r4, %t, 1; mapa.shared::cluster.u32 %r5, %r3, %r4; ld.shared::cluster.u32 %r6, [%r5];
mad.lo.u32 %r7, %r0, 8, %t; ld.param.u64 %o, [out]; mad.wide.u32 %o, %r7, 4, %o; st.global.u32 [%o], %r6;
barrier.cluster.arrive; barrier.cluster.wait;"""
    out = np.zeros((6, 8), np.uint32)
    sim.run(parse(kernel(body, module=".shared .align 16 .b32 box[8];")), grid=6, block=8, cluster=2, args=[out])
    ctas, threads = np.divmod(np.arange(48), 8)
    np.testing.assert_array_equal(out.ravel(), (ctas // 2 * 2 + threads % 2) * 100 + threads)


_GENERIC = "cvta.{0}.u64 %rd1, %rd1;"
_PARAMETER = "mov.u64 %rd1, out; cvta.param.u64 %rd1, %rd1;"
_NEAREST = "the nearest allocation is `cell`, 16 bytes at 0x7f00000000:"


@pytest.mark.parametrize(
    ("code", "instruction", "size", "text", "thread", "lanes"),
    [
        ("PTX1110", "ld.global.u32 %r1, [cell+16];", 4, f"0x7f00000010: {_NEAREST} 0 bytes after its end", 0, 32),
        ("PTX1110", "ld.global.u64 %rd1, [cell+12];", 8, f"0x7f0000000c: {_NEAREST} the access crosses its end", 0, 32),
        ("PTX1110", "@%p0 ld.global.u32 %r1, [cell+-4];", 4, f"0x7efffffffc: {_NEAREST} 4 bytes before its start",
         4, 28),
        ("PTX1111", "ld.global.u64 %rd1, [cell+4];", 8, "0x7f00000004: not a multiple of 8", 0, 32),
        ("PTX1111", "@%p0 ld.shared.u32 %r1, [box+2];", 4, "`box`+2 (0x402): not a multiple of 4", 4, 28),
        ("PTX1111", "st.shared.v2.u32 [box+4], {%t, %t};", 8, "`box`+4 (0x404): not a multiple of 8", 0, 32),
        ("PTX1110", f"mov.u64 %rd1, box; {_GENERIC.format('shared')} ld.global.u32 %r1, [%rd1];", 4,
         "0x200000400: a generic address of shared memory", 0, 32),
        ("PTX1110", f".local .u32 own; mov.u64 %rd1, own; {_GENERIC.format('local')} @%p0 st.global.u32 [%rd1], %t;", 4,
         "0x300000000: a generic address of local memory", 4, 28),
        ("PTX1110", f"{_PARAMETER} ld.global.u32 %r1, [%rd1];", 4, "0x100000000: a generic address of param memory",
         0, 32),
        ("PTX1110", "ld.param.u32 %r1, [n+4];", 4, "0xc: the kernel has 12 bytes of parameters", 0, 32),
        ("PTX1110", "@%p0 ld.param.u32 %r1, [out+-4];", 4, "-0x4: the kernel has 12 bytes of parameters", 4, 28),
        ("PTX1110", f"{_PARAMETER} mad.wide.u32 %rd1, %t, 4, %rd1; ld.u32 %r1, [%rd1];", 4,
         "0xc: the kernel has 12 bytes of parameters", 3, 32),
        ("PTX1110", f"{_PARAMETER} sub.u32 %r2, 31, %t; mad.wide.u32 %rd1, %r2, 4, %rd1; @%p0 ld.u32 %r1, [%rd1];", 4,
         "0x6c: the kernel has 12 bytes of parameters", 4, 28),
        ("PTX1113", f"{_PARAMETER} st.u32 [%rd1], %t;", 4, "0x100000000: `parameters` is read-only", 0, 32),
    ],
)  # fmt: skip
def test_a_message_names_the_address_the_space_and_the_thread(
    code: str, instruction: str, size: int, text: str, thread: int, lanes: int
) -> None:
    module = ".global .align 8 .u32 cell[4]; .shared .align 8 .u32 box[4];"
    error = assert_reported(
        kernel(
            f"setp.gt.u32 %p0, %t, 3;\n{instruction}", module=module, params=".param .u64 out, .param .u32 n"
        ), code, block=32, args=[np.zeros(32, np.uint32), 1], check="none",
    )  # fmt: skip
    [found] = error.diagnostics
    opcode = re.findall(r"(?:ld|st)\.[\w.]+", instruction)[-1]
    assert found.message == f"`{opcode}` accesses {size} bytes at {text}"
    assert found.notes == (f"in `k`, CTA 0, thread ({thread}, 0, 0), one of {lanes} here",)
    assert found.line == 12


_REACH_PAST_THE_END = """mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y;
setp.eq.u32 %p0, %t, 1; setp.eq.and.u32 %p0, %r1, 2, %p0; setp.eq.and.u32 %p0, %r2, 1, %p0;
setp.eq.and.u32 %p0, %r3, 1, %p0; setp.eq.and.u32 %p0, %r4, 2, %p0; @%p0 ld.global.u32 %r1, [cell+4];"""


@pytest.mark.parametrize(
    ("label", "function", "text"),
    [
        ("", "k", "`k`"), ("k", "k", "`k`"), ("warm-up", "k", "`k` of `warm-up`"), ("", "work", "`work` of `k`"),
        ("work", "work", "`work`"), ("warm-up", "work", "`work` of `warm-up`"),
    ],
)  # fmt: skip
def test_a_message_names_the_function_the_grid_and_the_thread(label: str, function: str, text: str) -> None:
    module = ".global .u32 cell;"
    registers = ".reg .b32 %r<5>, %t; .reg .pred %p0; mov.u32 %t, %tid.x;"
    if function == "work":
        module += f".func work {{ {registers} {_REACH_PAST_THE_END} ret; }}"
    program = parse(kernel(_REACH_PAST_THE_END if function == "k" else "call work;", module=module))
    launch = sim.Launch(program, grid=(2, 3), block=(4, 3, 2), args=[np.zeros(4, np.uint32)], label=label)
    with raises(PtxError) as caught:
        sim.stream([launch])
    assert caught.value.diagnostics[0].notes == (f"in {text}, CTA (1, 2, 0), thread (1, 2, 1), one of 1 here",)


@pytest.mark.parametrize("space", ["", ".global"])
def test_lanes_of_one_instruction_reach_different_arrays(space: str) -> None:
    text = kernel(
        f"""ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;
selp.b64 %rd3, %rd1, %rd2, %p1; mad.wide.u32 %rd3, %t, 4, %rd3; ld{space}.u32 %r2, [%rd3];
add.u32 %r3, %r2, 1000; st{space}.u32 [%rd3], %r3; st.global.u32 [%o], %r2;""",
        params=".param .u64 out, .param .u64 a, .param .u64 b",
    )
    out, a, b = np.zeros(32, "u4"), np.arange(32, dtype="u4"), np.arange(100, 132, dtype="u4")
    sim.run(parse(text), block=32, args=[out, a, b])
    odd = np.arange(32) % 2 != 0
    np.testing.assert_array_equal(out, np.arange(32) + 100 * odd)
    np.testing.assert_array_equal(a, np.arange(32) + 1000 * ~odd)
    np.testing.assert_array_equal(b, np.arange(100, 132) + 1000 * odd)


def test_a_variable_needs_no_state_space() -> None:
    body = "atom.max.u32 %r1, [value+4], 5; ld.u32 %r0, [value]; st.global.u32 [%o], %r0;"
    assert results(body, 32, module=".global .u32 value[2] = {3, 8};") == [3] * 32
