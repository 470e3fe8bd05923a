"""The wrappers of one instruction, and `ptx.inst` itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, kernel, ptx, reg, smem
from pyptx.ir import operands
from pyptx.isa.computations import computations
from pyptx.types import b16, b32, b64, bf16, bf16x2, f16, f16x2, f32, f64, pred, s32, u8, u16, u32, u64
from tests.dsl.tracing import assert_rejected, code, make_kernel, text_of
from tests.messages import raises


class Operands:
    """Registers of each kind, created in the order that yields the names in the tests."""

    def __init__(self) -> None:
        self.r, self.f, self.rd, self.p, self.rs = (reg.alloc(t) for t in (b32, f32, b64, pred, b16))
        self.fd = reg.alloc(f64)


CASES: list[tuple[Callable[[Operands], Any], str]] = [
    (lambda x: ptx.add(u32, x.r, 1), "add.u32 %r1, %r0, 1;"),
    (lambda x: ptx.add(b32, x.r, 1, pred=x.p), "@%p0 add.u32 %r1, %r0, 1;"),
    (lambda x: ptx.sub(u32, b=x.r, a=5), "sub.u32 %r1, 5, %r0;"),
    (lambda x: ptx.sub(u32, x.r, b=x.r, a=5), "sub.u32 %r0, 5, %r0;"),
    (lambda x: ptx.add(f64, x.fd, x.fd, rounding="rm"), "add.rm.f64 %fd1, %fd0, %fd0;"),
    (lambda x: ptx.mul(u16, x.rs, x.rs, mode="wide"), "mul.wide.u16 %r1, %rs0, %rs0;"),
    (lambda x: ptx.mad(u32, x.r, 4, x.r), "mad.lo.u32 %r1, %r0, 4, %r0;"),
    (lambda x: ptx.min(f32, x.f, x.f, ftz=True), "min.ftz.f32 %f1, %f0, %f0;"),
    (lambda x: ptx.max(s32, x.r, x.r, 7), "max.s32 %r0, %r0, 7;"),
    (lambda x: ptx.neg(f32, x.f), "neg.f32 %f1, %f0;"),
    (lambda x: ptx.abs(f32, f32, x.f), "abs.f32 %f1, %f0;"),
    (lambda x: ptx.shl(s32, x.r, 3), "shl.b32 %r1, %r0, 3;"),
    (lambda x: ptx.and_(pred, x.p, ~x.p), "and.pred %p1, %p0, !%p0;"),
    (lambda x: ptx.popc(u64, x.rd), "popc.b64 %r1, %rd0;"),
    (lambda x: ptx.testp(f32, x.f, op="finite"), "testp.finite.f32 %p1, %f0;"),
    (lambda x: ptx.mov(u32, x.r, 5), "mov.u32 %r0, 5;"),
    (lambda x: ptx.mov(f32, x.f, 1, pred=x.p), "@%p0 mov.f32 %f0, 0f3F800000;"),
    (lambda x: ptx.mov(bf16, x.rs, 1.0, pred=~x.p), "@!%p0 mov.b16 %rs0, 16256;"),
    (lambda x: ptx.add(s32, x.r, x.r, -3), "add.s32 %r0, %r0, -3;"),
    (lambda x: ptx.sub(f64, x.fd, x.fd, 2.5), "sub.f64 %fd0, %fd0, 0d4004000000000000;"),
    (lambda x: ptx.mul(u32, x.r, x.r, 3), "mul.lo.u32 %r0, %r0, 3;"),
    (lambda x: ptx.mul(s32, x.rd, x.r, x.r, mode="wide"), "mul.wide.s32 %rd0, %r0, %r0;"),
    (lambda x: ptx.mul(f32, x.f, x.f, x.f), "mul.f32 %f0, %f0, %f0;"),
    (lambda x: ptx.mad(u32, x.r, x.r, 4, x.r), "mad.lo.u32 %r0, %r0, 4, %r0;"),
    (lambda x: ptx.mad(f32, x.f, x.f, x.f, 1.0), "fma.rn.f32 %f0, %f0, %f0, 0f3F800000;"),
    (lambda x: ptx.mad(x.r, 4, x.r), "mad.lo.u32 %r1, %r0, 4, %r0;"),
    (lambda x: ptx.mad(x.r, x.r, x.rd, mode="wide"), "mad.wide.u32 %rd1, %r0, %r0, %rd0;"),
    (lambda x: ptx.fma(f32, x.f, x.f, 2.0, x.f), "fma.rn.f32 %f0, %f0, 0f40000000, %f0;"),
    (lambda x: ptx.fma(f32, x.f, x.f, x.f, rounding="rz", sat=True), "fma.rz.sat.f32 %f1, %f0, %f0, %f0;"),
    (lambda x: ptx.div(u32, x.r, x.r, 7, pred=x.p), "@%p0 div.u32 %r0, %r0, 7;"),
    (lambda x: ptx.div(f32, x.f, 1.0, x.f), "div.rn.f32 %f0, 0f3F800000, %f0;"),
    (lambda x: ptx.div(f32, x.f, x.f, full=True, ftz=True), "div.full.ftz.f32 %f1, %f0, %f0;"),
    (lambda x: ptx.rcp(f64, x.fd, x.fd), "rcp.rn.f64 %fd0, %fd0;"),
    (lambda x: ptx.rcp(f32, x.f, approx=True), "rcp.approx.f32 %f1, %f0;"),
    (lambda x: ptx.sqrt(f32, x.f, x.f, approx=True), "sqrt.approx.f32 %f0, %f0;"),
    (lambda x: ptx.sqrt(f32, f32, x.f), "sqrt.rn.f32 %f1, %f0;"),
    (lambda x: ptx.rsqrt(f32, x.f), "rsqrt.approx.f32 %f1, %f0;"),
    (lambda x: ptx.ex2(f16, x.rs, x.rs), "ex2.approx.f16 %rs0, %rs0;"),
    (lambda x: ptx.lg2(f32, x.f, ftz=True), "lg2.approx.ftz.f32 %f1, %f0;"),
    (lambda x: ptx.sin(f32, x.f, x.f), "sin.approx.f32 %f0, %f0;"),
    (lambda x: ptx.cos(f32, x.f), "cos.approx.f32 %f1, %f0;"),
    (lambda x: ptx.tanh(f32, x.f, x.f, pred=~x.p), "@!%p0 tanh.approx.f32 %f0, %f0;"),
    (lambda x: ptx.mov(f16x2, x.r, (1.0, 2.0)), "mov.b32 %r0, 1073757184;"),
    (lambda x: ptx.shl(u32, x.r, x.r, 3), "shl.b32 %r0, %r0, 3;"),
    (lambda x: ptx.shr(s32, x.r, x.r, x.r), "shr.s32 %r0, %r0, %r0;"),
    (lambda x: ptx.and_(u32, x.r, x.r, 0xFFFFFFFF), "and.b32 %r0, %r0, 4294967295;"),
    (lambda x: ptx.or_(pred, x.p, x.p, ~x.p), "or.pred %p0, %p0, !%p0;"),
    (lambda x: ptx.xor_(u64, x.rd, x.rd, 1), "xor.b64 %rd0, %rd0, 1;"),
    (lambda x: ptx.not_(b16, x.rs, x.rs), "not.b16 %rs0, %rs0;"),
    (lambda x: ptx.setp("lt", s32, x.p, x.r, 0), "setp.lt.s32 %p0, %r0, 0;"),
    (lambda x: ptx.setp("ltu.ftz", f32, x.p, x.f, 0, pred_negate=x.p), "@!%p0 setp.ltu.ftz.f32 %p0, %f0, 0f00000000;"),
    (lambda x: ptx.selp(f32, x.f, 1.0, x.f, x.p), "selp.f32 %f0, 0f3F800000, %f0, %p0;"),
    (lambda x: ptx.cvt(f32, s32, x.f, x.r, rounding="rn"), "cvt.rn.f32.s32 %f0, %r0;"),
    (lambda x: ptx.cvt(u8, u32, x.rs, x.r, sat=True), "cvt.sat.u8.u32 %rs0, %r0;"),
    (lambda x: ptx.cvt(bf16x2, f32, x.r, [x.f, x.f], rounding="rn"), "cvt.rn.bf16x2.f32 %r0, %f0, %f0;"),
    (lambda x: ptx.ld(f32, x.f, x.rd), "ld.global.f32 %f0, [%rd0];"),
    (lambda x: ptx.ld(u32, x.r, ptx.addr(x.rd, 8), cache="nc"), "ld.global.nc.u32 %r0, [%rd0+8];"),
    (lambda x: ptx.ld(f32, [x.f, x.f], x.rd, space=""), "ld.v2.f32 {%f0, %f0}, [%rd0];"),
    (lambda x: ptx.ld(bf16, x.rs, x.r, space="shared"), "ld.shared.b16 %rs0, [%r0];"),
    (lambda x: ptx.st(f32, x.rd, reg.array(f32, 4, name="v")), "st.global.v4.f32 [%rd0], {%v0, %v1, %v2, %v3};"),
    (lambda x: ptx.st(u32, x.r, 7, space="shared::cluster"), "st.shared::cluster.u32 [%r0], 7;"),
    (lambda x: ptx.elect_sync(x.r, x.p, 0xFFFFFFFF), "elect.sync %r0|%p0, 4294967295;"),
    (lambda x: smem.store(u32, x.r, 1), "st.shared.u32 [%r0], 1;"),
    (lambda x: smem.load(f16, x.r), "ld.shared.b16 %rs1, [%r0];"),
    (lambda x: ptx.special.laneid(), "mov.u32 %r1, %laneid;"),
    (lambda x: ptx.special.clusterid.z(), "mov.u32 %r1, %clusterid.z;"),
    (lambda x: ptx.sreg("clock64"), "mov.u64 %rd1, %clock64;"),
    (lambda x: ptx.ctaid_y(), "mov.u32 %r1, %ctaid.y;"),
    (lambda x: ptx.inst.ld.global_[f32](x.f, x.rd), "ld.global.f32 %f0, [%rd0];"),
    (lambda x: ptx.inst["add.s32"](x.r, x.r, True), "add.s32 %r0, %r0, 1;"),
    (lambda x: ptx.inst.and_.b32(x.r, x.r, ptx.imm("0x10")), "and.b32 %r0, %r0, 0x10;"),
    (lambda x: ptx.inst.cp.async_.wait_all(), "cp.async.wait_all;"),
    (lambda x: ptx.inst.mov.u32(x.r, "%tid.y"), "mov.u32 %r0, %tid.y;"),
    (lambda x: ptx.inst.vadd.u32.u32.u32(x.r, ptx.sel(x.r, "b1"), x.r), "vadd.u32.u32.u32 %r0, %r0.b1, %r0;"),
    (
        lambda x: ptx.inst.cp.async_.bulk.prefetch.tensor._2d.L2.global_(ptx.addr(x.rd, [x.r, 4])),
        "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd0, {%r0, 4}];",
    ),
    (lambda x: ptx.named_barrier(1, count=64).arrive(pred=x.p), "@%p0 bar.arrive 1, 64;"),
    (lambda x: ptx.setp("lt", b32, x.p, x.r, 1, pred_negate=x.p), "@!%p0 setp.lt.u32 %p0, %r0, 1;"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), CASES, ids=[expected for _, expected in CASES])
def test_a_wrapper_emits_exactly_its_instruction(call: Callable[[Operands], Any], expected: str) -> None:
    def body() -> None:
        call(Operands())

    assert code(body) == [expected]


def test_inst_returns_its_destination_and_pipe_passes_it_on() -> None:
    def body() -> None:
        x, y, z = reg.alloc(u32), reg.alloc(u32), reg.alloc(u32)
        assert ptx.inst.add.u32(x, y, z) is x
        assert ptx.inst.bar.sync(0) is None
        assert ptx.pipe(x).add.u32(y, 1).shl.b32(z, 2, pred=reg.alloc(pred)).reg is z

    assert code(body) == ["add.u32 %r0, %r1, %r2;", "bar.sync 0;", "add.u32 %r1, %r0, 1;", "@%p0 shl.b32 %r2, %r1, 2;"]


def test_the_chain_is_the_same_object_each_time() -> None:
    assert ptx.inst.add.u32 is ptx.inst.add.u32
    assert repr(ptx.inst.cp.async_.bulk) == "ptx.inst.cp.async.bulk"


DESCRIBED: list[tuple[Callable[[], object], str]] = [
    (lambda: ptx.inst, "ptx.inst"), (lambda: ptx.pipe(reg.scalar(u32)).add, "ptx.pipe(Reg('%r0', u32))"),
    (lambda: ptx.atom.add, "ptx.atom.add"), (lambda: ptx.red.max, "ptx.red.max"),
    (lambda: ptx.special.tid, "ptx.special.tid"),
    (lambda: ptx.cp.async_.bulk.tensor_2d, "ptx.cp.async_.bulk.tensor_2d"),
    (lambda: ptx.func(test_the_chain_is_the_same_object_each_time),
     "<device function test_the_chain_is_the_same_object_each_time>"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), DESCRIBED, ids=[expected for _, expected in DESCRIBED])
def test_an_object_of_the_interface_describes_itself(make: Callable[[], object], expected: str) -> None:
    def body() -> None:
        assert repr(make()) == expected

    kernel(body).ptx()


def test_an_address_is_a_base_with_an_index_or_coordinates() -> None:
    def body() -> None:
        x, bars, index = ptx.var("shared", u32, "x"), smem.mbarrier(2, name="bars"), reg.alloc(u32)
        for base in (x, bars[1], bars[index], ptx.mbarrier.array("bars", 8, 1)[0]):
            ptx.ld(u32, index, ptx.addr(base, index), space="shared")
        ptx.ld(u32, index, ptx.addr(bars[1], 4), space="shared")
        ptx.inst.cp.async_.bulk.prefetch.tensor._1d.L2.global_(ptx.addr(reg.alloc(u64), [index]))
        at = ptx.addr("tex", "samp", [index, 1])
        assert operands.text_of(at) == "[tex, samp, {%r0, 1}]"

    assert code(body) == [
        "mov.u32 %r1, bars;", "mad.lo.u32 %r2, %r0, 8, %r1;",
        "mov.b64 %rd0, x;", "cvt.u64.u32 %rd1, %r0;", "add.u64 %rd2, %rd0, %rd1;", "ld.shared.u32 %r0, [%rd2];",
        "mov.b64 %rd3, bars+8;", "cvt.u64.u32 %rd4, %r0;", "add.u64 %rd5, %rd3, %rd4;", "ld.shared.u32 %r0, [%rd5];",
        "add.u32 %r3, %r2, %r0;", "ld.shared.u32 %r0, [%r3];",
        "mov.b64 %rd6, bars+8;", "cvt.u64.u32 %rd7, %r0;", "add.u64 %rd8, %rd6, %rd7;", "ld.shared.u32 %r0, [%rd8];",
        "ld.shared.u32 %r0, [bars+12];",
        "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd9, {%r0}];",
    ]  # fmt: skip


def test_variables_of_every_space() -> None:
    def body() -> None:
        x = reg.alloc(u32)
        for space in ("shared", "local"):
            ptx.ld(u32, x, ptx.addr(ptx.var(space, u32, f"my_{space}", size=4, align=16), 4), space=space)
        ptx.var("shared", u16, "dynamic", align=16, linking="extern")
        ptx.var("global", u32, "counter", linking="visible")
        ptx.inst.atom.global_.add.u32(x, ptx.addr("counter"), 1)

    text = make_kernel(body).ptx()
    assert code(body)
    assert ".extern .shared .align 16 .u16 dynamic[];" in text.split(".visible .entry")[0]
    assert ".local .align 16 .u32 my_local[4];" in text


def test_elements_of_shared_memory_are_loaded_and_stored() -> None:
    def body() -> None:
        tile = smem.alloc(f16, (4, 2, 8), name="t")
        i, j = reg.alloc(u32), reg.alloc(u64)
        x = tile[1, 0, 3]
        tile[i, 1, j] = x
        part = tile[2]
        _ = part[1, i]
        line = smem.alloc(u32, 8, name="line")
        line[i] = 5
        ptx.ld(u32, i, line[3], space="shared")
        assert line[3].address().dtype == u32

    assert code(body) == [
        "ld.shared.b16 %rs0, [t+38];", "mov.u32 %r1, t+16;", "mad.lo.u32 %r2, %r0, 32, %r1;", "cvt.u32.u64 %r3, %rd0;",
        "mad.lo.u32 %r4, %r3, 2, %r2;", "st.shared.b16 [%r4], %rs0;", "mov.u32 %r5, t+80;",
        "mad.lo.u32 %r6, %r0, 2, %r5;", "ld.shared.b16 %rs1, [%r6];", "mov.u32 %r7, line;",
        "mad.lo.u32 %r8, %r0, 4, %r7;", "st.shared.u32 [%r8], 5;", "ld.shared.u32 %r0, [line+12];",
        "mov.u32 %r9, line+12;",
    ]  # fmt: skip


@pytest.mark.parametrize(("swizzle", "mask"), [("32B", 0x80), ("64B", 0x180), ("128B", 0x380)])
def test_swizzles_xor_the_row_into_the_column(swizzle: str, mask: int) -> None:
    def body() -> None:
        offset = reg.alloc(u32)
        assert smem.apply_swizzle(offset, None) is offset
        smem.apply_swizzle(offset, swizzle)

    assert code(body) == [f"and.b32 %r1, %r0, {mask};", "shr.u32 %r2, %r1, 3;", "xor.b32 %r3, %r0, %r2;"]


def test_a_number_is_an_absolute_address() -> None:
    def body() -> None:
        ptx.inst.ld.local.u32(reg.alloc(u32), 16)

    assert code(body) == ["ld.local.u32 %r0, [16];"]


def test_a_wrapper_is_there_for_each_computation() -> None:
    names = {name for name in ptx.__all__ if name.rstrip("_") in computations()}
    assert {name.rstrip("_") for name in names} == set(computations())
    assert all(str(inspect.signature(getattr(ptx, name))).startswith("(") for name in names)


def test_arguments_that_an_instruction_does_not_have() -> None:
    loose_ptx: Any = ptx

    def add_with_unknown() -> None:
        loose_ptx.add(u32, reg.alloc(u32), 1, saturate=True)  # here

    def add_twice() -> None:
        loose_ptx.add(u32, reg.alloc(u32), 1, a=1)  # here

    def missing() -> None:
        loose_ptx.add(u32, reg.alloc(u32))  # here

    def missing_before_a_third() -> None:
        loose_ptx.min(u32, c=reg.alloc(u32))  # here

    def no_word() -> None:
        loose_ptx.add(f32, reg.alloc(f32), 1, rounding=1)  # here

    def wrong_type() -> None:
        ptx.abs(u32, reg.alloc(u32))  # here

    assert_rejected(add_with_unknown, "PTX0818", "no operand `saturate`", "dst, a, b", "rounding, ftz, sat")
    assert_rejected(add_twice, "PTX0818", "no operand `a`")
    assert_rejected(missing, "PTX0201", "takes 3 operands")
    assert_rejected(missing_before_a_third, "PTX0201", "takes 3 operands")
    assert_rejected(no_word, "PTX0818", "`rounding` of `ptx.add` must be a string", "use one of 'rn', 'rz', 'rm', 'rp'")
    assert_rejected(wrong_type, "PTX0102", ".s32")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("syncthreads", "ptx.bar.sync(0)"),
        ("prmt", "ptx.inst.prmt"),
        ("exp", "ptx.ex2"),
        ("shfl", "ptx.inst.shfl"),
        ("smem", "import smem"),
        ("reg", "import reg"),
        ("shared", "smem.alloc"),
        ("syncwarp", "ptx.bar.warp_sync()"),
        ("threadIdx", "ptx.special.tid"),
        ("blockIdx", "ptx.special.ctaid"),
        ("blockDim", "ptx.special.ntid"),
        ("gridDim", "ptx.special.nctaid"),
        ("for_", "ptx.range_"),
        ("exp2", "ptx.ex2"),
        ("log2", "ptx.lg2"),
        ("where", "ptx.selp"),
    ],
)
def test_a_name_that_ptx_does_not_have_names_what_it_has(name: str, instead: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(instead)):
        getattr(ptx, name)
    assert not hasattr(ptx, "nothing")


MISTAKES: list[tuple[Callable[[Operands], Any], str, tuple[str, ...]]] = [
    (lambda x: ptx.sin(f32, x.rd), "PTX0203", ("found `%rd0`",)),
    (
        lambda x: ptx.rcp(f32, x.f, approx=True, rounding="rn"),
        "PTX0102",
        ("`.approx` cannot follow `rcp.rn`: expected",),
    ),
    (lambda x: ptx.ex2(bf16, x.rs), "PTX0102", ("`.bf16` cannot follow `ex2`: expected `.approx`",)),
    (lambda x: ptx.div("fp32", x.f, x.f), "PTX0818", ("no scalar type 'fp32'",)),
]


@pytest.mark.parametrize("index", range(len(MISTAKES)))
def test_a_wrong_computation_is_reported_at_its_line(index: int) -> None:
    call, rule, words = MISTAKES[index]

    def body() -> None:
        call(Operands())

    with raises(PtxError) as excinfo:
        make_kernel(body).ptx()
    finding = excinfo.value.diagnostics[0]
    assert (finding.code, getattr(finding.origin, "file", "")) == (rule, __file__)
    assert all(word in text_of(excinfo.value) for word in words)


NAMED: tuple[Callable[[Operands, Any], Any], ...] = (
    lambda x, t: ptx.mov(t(f32), x.f, 1),
    lambda x, t: ptx.bitcast(t(u32), x.f),
    lambda x, t: ptx.add(t(s32), x.r, x.r, 1),
    lambda x, t: ptx.mul(t(s32), x.r, x.r, mode="wide"),
    lambda x, t: ptx.mad(t(u32), x.r, x.r, 2, x.r),
    lambda x, t: ptx.shl(t(u32), x.r, x.r, 1),
    lambda x, t: ptx.not_(t(u32), x.r),
    lambda x, t: ptx.setp("lt", t(u32), x.p, x.r, 1),
    lambda x, t: ptx.selp(t(u32), x.r, 1, x.p),
    lambda x, t: ptx.cvt(t(f32), t(s32), x.r, rounding="rn"),
    lambda x, t: ptx.ex2(t(f32), x.f),
    lambda x, t: ptx.ld(t(f32), x.rd),
    lambda x, t: ptx.ld(t(f32), x.rd, vec=2),
    lambda x, t: ptx.st(t(f32), x.rd, x.f),
    lambda x, t: ptx.param(t(u32), "n"),
    lambda x, t: ptx.var("shared", t(f32), "v"),
    lambda x, t: ptx.const(t(f32), [1.0]),
    lambda x, t: ptx.atom.add(t(f32), x.f, x.rd, x.f),
    lambda x, t: ptx.atom.cas(t(b32), x.r, x.rd, x.r, x.r),
    lambda x, t: ptx.red.add(t(f32), x.rd, x.f),
    lambda x, t: ptx.multimem.st(t(f32), x.rd, x.f, sem="relaxed", scope="gpu"),
    lambda x, t: ptx.multimem.ld_reduce("add", t(f32), x.f, x.rd, sem="relaxed", scope="gpu"),
    lambda x, t: ptx.st_async(t(b32), x.r, x.r, x.r),
    lambda x, t: ptx.red_async("add", t(u32), x.r, x.r, x.r),
    lambda x, t: ptx.cp.async_.bulk.reduce_to_global("add", t(f32), x.rd, x.r, 16),
    lambda x, t: ptx.ldmatrix(dst=[b32], src=x.r, layout="x1", dtype=t(b16)),
    lambda x, t: ptx.mma.sync(
        shape=(16, 8, 16), dtype_d=t(f32), dtype_a=t(bf16), dtype_b=t(bf16), dtype_c=t(f32),
        d=[x.f] * 4, a=[x.r] * 4, b=[x.r] * 2, c=[x.f] * 4,
    ),
    lambda x, t: ptx.wgmma.mma_async(
        shape=(64, 8, 16), dtype_d=t(f32), dtype_a=t(f16), dtype_b=t(f16), d=reg.array(f32, 4), a=x.rd, b=x.rd
    ),
    lambda x, t: ptx.wgmma.auto_descriptor(x.r, dtype=t(f16), shape=(64, 64), major="K"),
    lambda x, t: smem.alloc(t(f32), 4),
    lambda x, t: reg.array(t(f32), 4),
    lambda x, t: reg.scalar(t(bf16), 1.0),
)  # fmt: skip


@pytest.mark.parametrize("index", range(len(NAMED)))
def test_a_type_is_given_itself_or_by_its_name(index: int) -> None:
    def text(spell: Callable[[Any], Any]) -> list[str]:
        def body() -> None:
            NAMED[index](Operands(), spell)

        lines = (
            make_kernel(body, arch="sm_90a", version=(8, 6), raw_params=[("u32", "n")], block=128).ptx().splitlines()
        )
        return [line for line in lines if not line.strip().startswith("//")]

    assert text(lambda dtype: dtype) == text(lambda dtype: dtype.name) == text(lambda dtype: f".{dtype.name}")


def test_descriptors_of_instructions_take_both_spellings_of_a_type() -> None:
    describe = ptx.tcgen05.make_instr_desc_f16bf16_f32
    assert describe(ab_dtype=f16) == describe(ab_dtype="f16") != describe(ab_dtype="bf16")


def test_a_name_that_is_no_type_is_refused() -> None:
    def body() -> None:
        x = reg.alloc(u32)
        ptx.add("u31", x, x, 1)  # here

    assert_rejected(body, "PTX0818", "u31", "pyptx.types")
