"""Registers: folding of copies into arrays, widening, predicates, names, elements of vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.dsl.values import encode_float
from pyptx.reg import NegPred, PipeRef
from pyptx.types import (
    PtxType,
    b16,
    b32,
    b64,
    bf16,
    bf16x2,
    e4m3,
    f16,
    f16x2,
    f32,
    f32x2,
    f64,
    pred,
    s16,
    s32,
    s64,
    tf32,
    u8,
    u16,
    u32,
    u64,
)
from tests.messages import raises

from .tracing import assert_accepted, code, make_kernel


def test_a_copy_into_an_array_becomes_the_destination_of_the_instruction_before() -> None:
    def body() -> None:
        r, x = reg.array(f32, 4, name="acc"), reg.scalar(f32, 2.0)
        r[0] = x * x
        r[-1] = x + 1
        y = x * 3
        r[1] = y
        ptx.st(f32, ptx.addr("out"), y, space="shared")
        r[2] = 4.0

    def store() -> None:
        ptx.var("shared", f32, "out")
        body()

    assert code(store)[1:] == [
        "mul.f32 %acc0, %f0, %f0;", "add.f32 %acc3, %f0, 0f3F800000;", "mul.f32 %f3, %f0, 0f40400000;",
        "mov.f32 %acc1, %f3;", "st.shared.f32 [out], %f3;", "mov.f32 %acc2, 0f40800000;",
    ]  # fmt: skip


def _in_place() -> None:
    """Change registers with every in-place operator."""
    n, b, s, f, p = (reg.alloc(dtype) for dtype in (u32, b32, s32, f32, pred))
    first = n, b, s, f, p
    n += 1
    n -= b
    n *= 3
    n //= n
    n %= 7
    b &= n
    b |= -2
    b ^= b
    s <<= n
    s >>= 1
    f /= 2.0
    f += f
    p &= n < 3
    assert all(current is before for current, before in zip((n, b, s, f, p), first, strict=True))


def test_numbers_and_negations_stand_on_either_side_of_an_operator() -> None:
    def body() -> None:
        n, s, h, f, p, q = (reg.alloc(dtype) for dtype in (u32, s32, u16, f32, pred, pred))
        _ = 7 - n, 7 // n, 7 % s, 7 << n, 1 << h, 1.0 / f
        _ = p & True, False | ~p, ~p ^ q, p ^ ~q, ~p ^ True
        assert (repr(~p), f"{~p}", n.view(u32) is n) == ("~Reg('%p0', pred)", "~Reg('%p0', pred)", True)
        assert ~p != "p"

    assert code(body) == [
        "sub.u32 %r2, 7, %r0;", "div.u32 %r3, 7, %r0;", "rem.s32 %r4, 7, %r1;", "shl.b32 %r5, 7, %r0;",
        "cvt.u32.u16 %r6, %rs0;", "shl.b16 %rs1, 1, %r6;", "div.rn.f32 %f1, 0f3F800000, %f0;",
        "and.pred %p2, %p0, 1;", "or.pred %p3, !%p0, 0;", "xor.pred %p4, !%p0, %p1;", "xor.pred %p5, %p0, !%p1;",
        "xor.pred %p6, !%p0, 1;",
    ]  # fmt: skip


def test_operators_in_place_write_the_register_itself() -> None:
    assert code(_in_place) == [
        "add.u32 %r0, %r0, 1;", "sub.u32 %r0, %r0, %r1;", "mul.lo.u32 %r0, %r0, 3;", "div.u32 %r0, %r0, %r0;",
        "rem.u32 %r0, %r0, 7;", "and.b32 %r1, %r1, %r0;", "or.b32 %r1, %r1, -2;", "xor.b32 %r1, %r1, %r1;",
        "shl.b32 %r2, %r2, %r0;", "shr.s32 %r2, %r2, 1;", "div.rn.f32 %f0, %f0, 0f40000000;",
        "add.f32 %f0, %f0, %f0;", "setp.lt.u32 %p1, %r0, 3;", "and.pred %p0, %p0, %p1;",
    ]  # fmt: skip


def test_an_exact_transcript_writes_the_same_operators_in_place() -> None:
    def body() -> None:
        x, wide, narrow = ptx.decl.reg(u32, "%x"), ptx.decl.reg(u64, "%w"), ptx.decl.reg(u32, "%n")
        x += 1
        wide += narrow

    lines = [line.strip() for line in make_kernel(body, exact=True).ptx().splitlines()]
    assert [line for line in lines if line.startswith(("add", "cvt"))] == [
        "add.u32 %x, %x, 1;", "cvt.u64.u32 %fresh_rd0, %n;", "add.u64 %w, %w, %fresh_rd0;",
    ]  # fmt: skip


def test_elements_and_views_change_in_place() -> None:
    def body() -> None:
        acc, x, register_list = reg.array(f32, 2, name="acc"), reg.scalar(u32), [reg.scalar(u32)]
        acc[1] += 1.0
        acc[-1] *= acc[0]
        register_list[0] += x
        x.s32 >>= 4
        y = x
        y += 2

    assert code(body) == [
        "add.f32 %acc1, %acc1, 0f3F800000;", "mul.f32 %acc1, %acc1, %acc0;", "add.u32 %r1, %r1, %r0;",
        "shr.s32 %r0, %r0, 4;", "add.u32 %r0, %r0, 2;",
    ]  # fmt: skip


def test_an_update_in_a_loop_of_the_gpu_reaches_the_next_round() -> None:
    @kernel(out_specs=[Tile(2, u32)], grid=(1,))
    def count(y: Any) -> None:
        (py,) = ptx.global_ptrs(y)
        total, acc = reg.scalar(u32, 0), reg.array(u32, 1)
        ptx.mov(u32, acc[0], 5)
        for _ in ptx.range_(0, 4):
            total += 3
            acc[0] += total
        ptx.st(u32, ptx.addr(py), total)
        ptx.st(u32, ptx.addr(py, 4), acc[0])

    assert list(count()) == [12, 35]


def test_a_copy_is_not_folded_past_a_guard_a_label_or_into_a_source() -> None:
    def body() -> None:
        r, x, p = reg.array(u32, 3, name="acc"), reg.scalar(u32, 1), reg.scalar(pred, 1)
        y = reg.scalar(u32)
        ptx.add(u32, y, x, 1, pred=p)
        r[0] = y
        z = x + 1
        ptx.label("here")
        r[1] = z
        w = reg.scalar(u32)
        ptx.inst.st.shared.u32(ptx.addr(reg.scalar(u32)), w)
        r[2] = w

    lines = code(body)
    assert [line for line in lines if line.startswith("mov.u32 %acc")] == [
        "mov.u32 %acc0, %r1;", "mov.u32 %acc1, %r2;", "mov.u32 %acc2, %r3;",
    ]  # fmt: skip


def test_a_copy_is_not_folded_if_a_negation_reads_the_value() -> None:
    def body() -> None:
        r, p, q = reg.array(pred, 3, name="acc"), reg.alloc(pred), reg.alloc(pred)
        y = p & q
        r[0] = y
        _ = p & ~y
        r[1] = p | q
        ptx.inst.mov.b64([reg.alloc(f32), None], reg.alloc(u64))
        r[2] = p

    assert code(body) == [
        "and.pred %p2, %p0, %p1;", "mov.pred %acc0, %p2;", "and.pred %p3, %p0, !%p2;", "or.pred %acc1, %p0, %p1;",
        "mov.b64 {%f0, _}, %rd0;", "mov.pred %acc2, %p0;",
    ]  # fmt: skip


READS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "an operand": lambda y, p, a: ptx.inst.st.shared.u32(ptx.addr(a), y),
    "an address": lambda y, p, a: ptx.inst.st.shared.u32(ptx.addr(y), 1),
    "coordinates": lambda y, p, a: ptx.cp.async_.bulk.tensor_1d.prefetch(reg.alloc(u64), (y,)),
    "a vector": lambda y, p, a: ptx.inst.st.shared.v2.u32(ptx.addr(a), [1, y]),
    "a guard": lambda y, p, a: ptx.inst.st.shared.u32(ptx.addr(a), 1, pred=p),
    "a pair": lambda y, p, a: ptx.inst.setp.eq.u32(PipeRef(p, reg.alloc(pred)), a, 2),
}


@pytest.mark.parametrize("name", READS)
def test_a_copy_is_not_folded_if_the_register_occurs_elsewhere(name: str) -> None:
    def body() -> None:
        numbers, predicates, x = reg.array(u32, 1, name="n"), reg.array(pred, 1, name="q"), reg.scalar(u32, 1)
        y = x + 1
        numbers[0] = y
        p = x == 1
        predicates[0] = p
        READS[name](y, p, x)

    is_predicate = name in ("a guard", "a pair")
    number = ["add.u32 %n0, %r0, 1;"] if is_predicate else ["add.u32 %r1, %r0, 1;", "mov.u32 %n0, %r1;"]
    predicate = ["setp.eq.u32 %p0, %r0, 1;", "mov.pred %q0, %p0;"] if is_predicate else ["setp.eq.u32 %q0, %r0, 1;"]
    assert code(body)[1:4] == [*number, *predicate]


def test_a_loaded_vector_is_folded_and_scopes_are_looked_into() -> None:
    from pyptx import intrinsic

    @intrinsic
    def double(x: reg.Reg) -> reg.Reg:
        return x + x

    def body() -> None:
        r, a = reg.array(f32, 2, name="acc"), reg.scalar(u64, 0)
        x, y = reg.scalar(f32), reg.scalar(f32)
        ptx.ld(f32, [x, y], a)
        r[0] = x
        r[1] = double(y)
        low = reg.scalar(f32)
        ptx.inst.mov.b64([low, None], a)
        r[0] = low

    assert code(body)[1:] == [
        "ld.global.v2.f32 {%acc0, %f1}, [%rd0];", "add.f32 %acc1, %f1, %f1;", "mov.b64 {%acc0, _}, %rd0;",
    ]  # fmt: skip


def test_the_narrower_integer_is_widened_by_its_own_sign() -> None:
    def body() -> None:
        h, w, d = reg.scalar(s16), reg.scalar(b32), reg.scalar(s64)
        _ = h + w, w + d, d - h, (d < w), w << h

    assert code(body) == [
        "cvt.s32.s16 %r1, %rs0;", "add.u32 %r2, %r1, %r0;", "cvt.u64.u32 %rd1, %r0;", "add.s64 %rd2, %rd1, %rd0;",
        "cvt.s64.s16 %rd3, %rs0;", "sub.s64 %rd4, %rd0, %rd3;", "cvt.u64.u32 %rd5, %r0;",
        "setp.lt.s64 %p0, %rd0, %rd5;", "cvt.s32.s16 %r3, %rs0;",
        "shl.b32 %r4, %r0, %r3;",
    ]  # fmt: skip


def test_predicates_combine_and_negate() -> None:
    def body() -> None:
        x = reg.scalar(u32)
        p, q = x == 1, x != 2
        _ = p & ~q, ~p | q, p ^ q
        assert isinstance(~p, NegPred)
        assert ~~p is p
        ptx.inst.bar.sync(0, pred=~(p & q))

    assert code(body)[2:] == [
        "and.pred %p2, %p0, !%p1;", "or.pred %p3, !%p0, %p1;", "xor.pred %p4, %p0, %p1;", "and.pred %p5, %p0, %p1;",
        "@!%p5 bar.sync 0;",
    ]  # fmt: skip


def test_registers_are_hashed_by_identity() -> None:
    @kernel
    def body() -> None:
        x, y = reg.scalar(u32), reg.scalar(u32)
        assert {x: 1, y: 2}[x] == 1
        assert len({x, y, x}) == 2
        pair, tile = reg.array(u32, 2), smem.alloc(u32, 2)
        assert (pair[1] in pair, x in pair, f"{pair}") == (True, False, "RegArray('%v_1_', 2, u32)")
        other: object = tile
        assert tile == other
        assert bool(tile)
        assert [tile, pair].index(pair) == 1
        assert len({~(x == 1), tile, tile}) == 2

    body.ptx()


def test_two_destinations_and_parts_of_registers() -> None:
    def body() -> None:
        d, p, x = reg.scalar(b32), reg.scalar(pred), reg.scalar(b32)
        ptx.inst.shfl.sync.idx.b32(PipeRef(d, p), x, 0, 31, -1)
        ptx.inst.shfl.sync.idx.b32(d, x, 0, 31, ptx.imm("0xffffffff"))
        ptx.setp("lt", u32, PipeRef(p, reg.scalar(pred)), x, 3)
        ptx.inst.mov.b64([d, None], reg.scalar(b64))
        ptx.inst.mov.b32(d, [reg.scalar(b16), reg.scalar(u16)])

    assert code(body) == [
        "shfl.sync.idx.b32 %r0|%p0, %r1, 0, 31, -1;", "shfl.sync.idx.b32 %r0, %r1, 0, 31, 0xffffffff;",
        "setp.lt.u32 %p0|%p1, %r1, 3;", "mov.b64 {%r0, _}, %rd0;", "mov.b32 %r0, {%rs0, %rs1};",
    ]  # fmt: skip


@pytest.mark.parametrize("dtype", [u8, u16, s32, u64, f16, bf16, tf32, f32, f64, pred])
def test_every_type_takes_an_initial_value_in_one_mov(dtype: PtxType) -> None:
    def body() -> None:
        reg.scalar(dtype, 1)
        reg.from_(reg.scalar(dtype), dtype)

    assert len(code(body)) == 2


def test_small_floats_keep_their_type_in_wider_registers() -> None:
    def body() -> None:
        x = reg.scalar(e4m3)
        ptx.st(e4m3, ptx.addr(reg.scalar(u64)), x)

    text = make_kernel(body).ptx()
    assert_accepted(text)
    assert ".reg .b16 %rs<1>;" in text
    assert "st.global.b8" in text


def test_accumulator_fragments_have_the_right_count() -> None:
    @kernel
    def body() -> None:
        assert reg.wgmma_frag(m=64, n=256, dtype=f32).count == 128
        half = reg.wgmma_frag(m=64, n=64, dtype=f16)
        assert (half.count, half.dtype.name) == (16, "f16x2")
        assert [r.name for r in reg.array(u32, 3, name="a").hw_order(reverse=True)] == ["%a2", "%a1", "%a0"]

    body.ptx()


@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        (bf16, 1.0, 0x3F80), (bf16, 1.00390625, 0x3F80), (bf16, 1.01171875, 0x3F82), (bf16, float("inf"), 0x7F80),
        (f16, 65504.0, 0x7BFF), (f16, 1, 0x3C00), (tf32, 1.0, 0x3F800000), (f32, -0.0, 0x80000000),
        (f64, 0.1, 0x3FB999999999999A),
    ],
)  # fmt: skip
def test_literals_round_to_nearest_even(dtype: PtxType, value: float, bits: int) -> None:
    assert encode_float(value, dtype) == bits


def test_a_nan_stays_one_in_every_format() -> None:
    assert encode_float(float("nan"), bf16) & 0x7F80 == 0x7F80
    assert encode_float(float("nan"), bf16) & 0x7F


def test_negative_zero_and_zero_are_two_numbers() -> None:
    def body() -> None:
        x = reg.scalar(f32)
        for zero in (0.0, -0.0, 0):
            ptx.inst.add.f32(x, x, zero)
            _ = x + zero

    assert [line.split()[-1] for line in code(body)] == ["0f00000000;"] * 2 + ["0f80000000;"] * 2 + ["0f00000000;"] * 2


def test_an_array_is_refused_where_its_count_is_wrong() -> None:
    @kernel
    def body() -> None:
        ptx.inst.ld.global_.v4.f32(reg.array(f32, 2), ptx.addr(reg.scalar(u64)))

    with raises(PtxError, match=r"reg\.array\(f32, 4\)"):
        body.ptx()


def test_equality_and_bits_take_constants_of_either_sign() -> None:
    def body() -> None:
        h, n, wide, s = reg.alloc(u16), reg.alloc(u32), reg.alloc(u64), reg.alloc(s32)
        _ = n == -1, n != -(1 << 31), s == 0xFFFFFFFF, h == -32768, wide != -1
        _ = n & -8, n | -1, s ^ 0xFFFFFFFF, wide & -(1 << 63), h | -1, -2 & n

    assert [line.split(", ")[-1] for line in code(body)] == [
        "-1;", "-2147483648;", "4294967295;", "-32768;", "-1;",
        "-8;", "-1;", "4294967295;", "-9223372036854775808;", "-1;", "-2;",
    ]  # fmt: skip


def test_a_constant_of_either_sign_stands_for_its_bits() -> None:
    @kernel(out_specs=[Tile(3, u32)], grid=(1,))
    def bits(y: Any) -> None:
        (py,) = ptx.global_ptrs(y)
        n, s = reg.scalar(u32, 0xFFFFFFFF), reg.scalar(s32, -1)
        ptx.st(u32, ptx.addr(py), ptx.selp(u32, 1, 0, n == -1))
        ptx.st(u32, ptx.addr(py, 4), ptx.selp(u32, 1, 0, s == 0xFFFFFFFF))
        ptx.st(u32, ptx.addr(py, 8), n & -8)

    assert list(bits()) == [1, 1, 0xFFFFFFF8]


@pytest.mark.parametrize("value", [-(1 << 31) - 1, 1 << 32])
@pytest.mark.parametrize("name", ["__eq__", "__and__", "__or__", "__add__"])
def test_a_constant_with_more_bits_than_its_type_is_refused(name: str, value: int) -> None:
    @kernel
    def body() -> None:
        getattr(reg.scalar(u32), name)(value)

    with raises(PtxError, match=r"PTX0805.*does not fit \.u32"):
        body.ptx()


SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "`<<` does not support .{}, only integers": lambda x, n: (x << 1, n),
    "`>>` does not support .{}, only integers": lambda x, n: x >> n,
    "`<<=` does not support .{}, only integers": lambda x, n: (x.__ilshift__(1), n),
    "`>>=` does not support .{}, only integers": lambda x, n: n.__irshift__(x),
    "`<<` takes registers and integers, found 1.0": lambda x, n: (n << 1.0, x),
    "`>>` takes registers and integers, found 1.0": lambda x, n: (1.0 >> n, x),
}


@pytest.mark.parametrize("words", SHIFTS)
@pytest.mark.parametrize("dtype", [f16, f32, f64])
def test_a_shift_of_or_by_a_float_is_refused(words: str, dtype: PtxType) -> None:
    @kernel
    def body() -> None:
        SHIFTS[words](reg.alloc(dtype), reg.alloc(u32))

    with raises(PtxError, match=rf"PTX0804\]: {words.format(dtype)}"):
        body.ptx()


def test_pairs_of_floats_take_one_number_or_two() -> None:
    def body() -> None:
        h, b = reg.scalar(f16x2, 1.5), reg.scalar(bf16x2, (1.0, 2))
        pair = (1, -0.0)
        _ = h * 0.5, pair + h, b + b
        reg.from_((1.0, 2.0), f32x2)

    assert code(body, arch="sm_100a") == [
        f"mov.b32 %r0, {0x3E003E00};", f"mov.b32 %r1, {0x40003F80};", f"mov.b32 %r2, {0x38003800};",
        "mul.f16x2 %r3, %r0, %r2;", f"mov.b32 %r4, {0x80003C00};", "add.f16x2 %r5, %r4, %r0;",
        "add.bf16x2 %r6, %r1, %r1;", f"mov.b64 %rd0, {0x400000003F800000};",
    ]  # fmt: skip


@pytest.mark.parametrize("value", [(1, 2, 3), ("a", 1), (70000.0, 1), (2049, 1)])
def test_a_wrong_pair_is_refused(value: Any) -> None:
    @kernel
    def body() -> None:
        reg.scalar(f16x2, value)

    with raises(PtxError, match="PTX0805"):
        body.ptx()
