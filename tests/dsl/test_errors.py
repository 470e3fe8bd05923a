"""Bad input: each error is at the user's line and states what was expected and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.types import b32, bf16, f16, f32, f64, pred, s32, u8, u16, u32, u64
from tests.messages import raises

from .tracing import assert_rejected, code, make_kernel, refusal, text_of


def test_nothing_works_outside_a_kernel() -> None:
    for use in (lambda: reg.scalar(u32), lambda: ptx.ret(), lambda: smem.alloc(f32, 4), lambda: ptx.inst.bar.sync(0)):
        with raises(PtxError, match=r"test_errors\.py:\d+: error\[PTX0801\]"):
            use()


def test_a_register_of_another_kernel_is_refused() -> None:
    registers: list[Any] = []

    @kernel
    def owner() -> None:
        registers.append(reg.scalar(u32, 1))

    owner.ptx()

    def operand() -> None:
        ptx.inst.add.u32(reg.scalar(u32), registers[0], 1)  # here

    def operator() -> None:
        _ = registers[0] + 1  # here

    def guard() -> None:
        ptx.ret(pred=registers[1])  # here

    def address() -> None:
        ptx.addr(registers[0])  # here

    def write_freely() -> None:
        ptx.inst.addx.u32(registers[0], unchecked=True)  # here  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]

    assert_rejected(operand, "PTX0802", "`owner`")
    assert_rejected(write_freely, "PTX0802", "`owner`")
    assert_rejected(operator, "PTX0802", "`owner`")
    assert_rejected(address, "PTX0802", "`owner`")

    @kernel
    def second() -> None:
        registers.append(reg.scalar(pred, 1))

    second.ptx()
    assert_rejected(guard, "PTX0802", "`second`")


def test_registers_of_another_kernel_are_refused_in_every_place() -> None:
    kept: list[Any] = []

    @kernel
    def other() -> None:
        kept.extend([reg.array(f32, 4, name="acc"), reg.scalar(u32), reg.scalar(pred), reg.scalar(u64)])

    other.ptx()
    acc, number, flag, pointer = kept
    uses: list[Callable[[], Any]] = [
        lambda: ptx.ld(f32, acc, reg.scalar(u64)), lambda: ptx.st(f32, reg.scalar(u64), acc[1]),
        lambda: ptx.selp(u32, 1, 0, ~flag), lambda: ptx.selp(u32, 1, 0, flag), lambda: ~flag & True,
        lambda: number == 1, lambda: number & reg.scalar(u32), lambda: reg.scalar(u32) < number,
        lambda: reg.array(f32, 4, name="acc").__setitem__(0, acc[0]), lambda: ptx.sel(number, "b0"),
        lambda: ptx.addr(pointer, 4), lambda: ptx.addr(pointer, [1, 2]), lambda: ptx.addr(pointer, reg.scalar(u64)),
        lambda: ptx.ld(u32, pointer), lambda: ptx.mbarrier.array(number, 0, 2), lambda: number.view(s32) + 1,
    ]  # fmt: skip
    for use in uses:
        rule, message, help = refusal(use)
        assert (rule, help) == ("PTX0802", "pass values between kernels through memory or parameters")
        assert re.fullmatch(r"`%(acc\d|r0|p0|rd0)` belongs to the kernel `other`, not this one", message)


def test_a_register_of_a_closed_block_is_refused() -> None:
    def body() -> None:
        with ptx.scope():
            inner = reg.scalar(u32, 1)
        _ = inner + 1  # here

    assert_rejected(body, "PTX0802", "closed")


def test_an_instruction_of_another_target_is_refused() -> None:
    def body() -> None:
        ptx.inst.wgmma.fence.sync.aligned()  # here

    assert_rejected(body, "PTX0302", "sm_90a", "arch='sm_80'", arch="sm_80")


ONE_CALL: list[tuple[Callable[[reg.Reg], object], str, tuple[str, ...]]] = [
        (lambda x: ptx.inst["addd.u32"](x, x, 1), "PTX0101", ("did you mean `add`?",)),
        (lambda x: ptx.inst.add["rn.u32"](x, x, 1), "PTX0102", (".rn",)),
        (lambda x: ptx.inst.mul["u32"](x, x, 1), "PTX0102", (".lo",)),
        (lambda x: ptx.inst.add.u32(x, x), "PTX0201", ("takes 3 operands, found 2", "add.u32 d")),
        (lambda x: ptx.inst.add.f32(x, x, x), "PTX0203", (".u32", ".f32")),
        (lambda x: ptx.inst.add.u64(x, x, 1), "PTX0203", (".u32", "u64")),
        (lambda x: ptx.inst.add.u32(x, x, 1.5), "PTX0203", ("1.5",)),
        (lambda x: ptx.inst.add.u32(x, x, 1 << 32), "PTX0204", ("4294967296",)),
        (lambda x: ptx.inst.bar.sync(16), "PTX0204", ("0 to 15",)),
        (lambda x: ptx.inst.add.u32(x, x, "nothing"), "PTX0401", ("nothing",)),
        (lambda x: ptx.inst.add.u32(x, x, object()), "PTX0806", ("object",)),
        (lambda x: ptx.inst.ld.global_.v2.u32([x], ptx.addr(reg.scalar(u64))), "PTX0201", ("2 elements",)),
        (lambda x: ptx.inst.ld.shared.u32(x, reg.scalar(f32)), "PTX0203", ("address",)),
        (lambda x: ptx.inst.bar.sync(0, pred=x), "PTX0206", ("predicate", "!= 0")),
        (lambda x: ptx.inst.add.u32(x, x, (x,)), "PTX0202", ("a list makes a vector",)),
    (lambda x: ptx.label("two words"), "PTX0815", ("'two_words'",)),
    (lambda x: ptx.sreg("%tidd.x"), "PTX0401", ("%tid",)),
        (lambda x: ptx.sreg("tid"), "PTX0401", ("%tid.x",)),
        (lambda x: x + reg.scalar(f32), "PTX0804", ("ptx.cvt(u32, f32",)),
        (lambda x: x < reg.scalar(s32), "PTX0804", ("sign",)),
        (lambda x: x + None, "PTX0804", ("NoneType",)),
        (lambda x: x + 1.5, "PTX0805", ("1.5",)),
        (lambda x: x + -1, "PTX0805", ("0 to 4294967295", "0xffffffff")),
        (lambda x: x << 32, "PTX0805", ("0 to 31",)),
        (lambda x: reg.scalar(f32, 1) // 2, "PTX0804", ("a / b",)),
        (lambda x: reg.scalar(f32, 1) & 1, "PTX0804", ("b32",)),
        (lambda x: reg.scalar(u8, 1) + 1, "PTX0804", ("u32",)),
        (lambda x: reg.scalar(pred, 1) + 1, "PTX0804", ("predicate",)),
        (lambda x: reg.scalar(pred, 1) & x, "PTX0804", ("!= 0",)),
        (lambda x: reg.scalar(u32, 1.5), "PTX0805", ("write 2",)),
        (lambda x: reg.scalar(u16, 70000), "PTX0805", ("65535",)),
        (lambda x: reg.scalar(f32, (1 << 24) + 1), "PTX0805", ("exactly",)),
        (lambda x: reg.array(u32, 4)[4], "PTX0816", ("0 to 3",)),
        (lambda x: reg.array(u32, 4)[cast("int", x)], "PTX0803", ("integer",)),
        (lambda x: smem.mbarrier(2)[2], "PTX0816", ("0 to 1",)),
        (lambda x: smem.alloc(f32, (4, 4))[4], "PTX0816", ("0 to 3",)),
        (lambda x: smem.alloc(f32, (4, 4))[1, 2, 3], "PTX0816", ("2 dimensions",)),
        (lambda x: smem.alloc(f32, 1 << 20), "PTX0817", ("232,448",)),
        (lambda x: smem.alloc(f32, 0), "PTX0818", ("positive",)),
        (lambda x: smem.alloc(f32, 4, swizzle="256B"), "PTX0818", ("128B",)),
        (lambda x: ptx.range_(0, 4, 0), "PTX0818", ("0",)),
        (lambda x: ptx.range_(x, -1, -1), "PTX0818", ("signed",)),
        (lambda x: ptx.if_(cast("reg.Reg", True)).__enter__(), "PTX0804", ("Python",)),
        (lambda x: ptx.if_(x).__enter__(), "PTX0206", ("predicate",)),
        (lambda x: ptx.var("shared", u32, "two words"), "PTX0815", ("two words",)),
        (lambda x: ptx.var("nowhere", u32, "x"), "PTX0818", (".shared",)),
        (lambda x: ptx.param(u32, "missing"), "PTX0401", ("missing",)),
        (lambda x: ptx.addr(x, 1.5), "PTX0818", ("1.5",)),
        (lambda x: ptx.raw("}"), "PTX0819", ()),
        (lambda x: ptx.raw("add.u32 %r0, %r0"), "PTX0819", ("`;`",)),
        (lambda x: ptx.imm("abc"), "PTX0818", ("abc",)),
        (lambda x: reg.scalar("u31"), "PTX0818", ("pyptx.types",)),
    ]  # fmt: skip


@pytest.mark.parametrize(("call", "rule", "words"), ONE_CALL)
def test_a_mistake_in_one_call_names_its_remedy(
    call: Callable[[reg.Reg], object], rule: str, words: tuple[str, ...]
) -> None:
    @kernel
    def body() -> None:
        call(reg.scalar(u32, 1))

    with raises(PtxError) as excinfo:
        body.ptx()
    finding = excinfo.value.diagnostics[0]
    assert finding.code == rule, excinfo.value
    assert finding.origin is not None
    assert finding.origin.file == __file__
    assert all(word in text_of(excinfo.value) for word in words), excinfo.value


def test_the_error_of_a_helper_names_the_helper_and_keeps_its_callers() -> None:
    def helper(x: Any) -> None:
        ptx.inst.add.f32(x, x, x)

    def body() -> None:
        helper(reg.scalar(u32, 1))

    with raises(PtxError) as excinfo:
        make_kernel(body).ptx()
    origin: Any = excinfo.value.diagnostics[0].origin
    assert (origin.code, origin.caller.code, origin.caller.caller) == (helper.__code__, body.__code__, None)


def test_names_never_meet_generated_or_special_ones() -> None:
    def body() -> None:
        for name in ("r0", "r", "tid", "x", "x", "v_1_0"):
            reg.scalar(u32, 1, name=name)
        reg.array(f32, 2, name="x")
        reg.array(f32, 2)
        smem.alloc(u32, 4, name="add")
        ptx.st(u32, "add", reg.scalar(u32, 2), space="shared")

    text = make_kernel(body).ptx()
    declarations = re.findall(r"(%[\w$]+)(?:<\d+>)?;", "\n".join(x for x in text.splitlines() if ".reg" in x))
    assert len(declarations) == len(set(declarations))
    assert "%tid;" not in text
    assert code(body)[-1] == "st.shared.u32 [add], %r0;"


def test_arguments_of_a_kernel_are_listed() -> None:
    @kernel(in_specs=(Tile("M", "N", f32),))
    def body(a: Any, *, depth: int, unroll: int = 2) -> None: ...

    with raises(PtxError, match=r"missing: N, depth; unknown: K"):
        body.ptx(M=4, K=8)
    with raises(PtxError, match="integers of at least 0, found M=-1"):
        body.ptx(M=-1, N=4, depth=1)
    assert body.template_params["unroll"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arch": "sm_1"}, "unknown arch"),
        ({"version": (42, 0)}, "there is no PTX"),
        ({"block": (1, 2, 3, 4)}, "three"),
        ({"raw_params": [("u99", "n")]}, "u99"),
        ({"raw_params": [("u32", "a b")]}, "raw parameter"),
        ({"in_specs": (Tile(4, f32),)}, "takes 0 tensors"),
    ],
)
def test_a_wrong_declaration_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    def body() -> None: ...

    with raises(PtxError, match=message):
        kernel(**options)(body)


def test_reserved_words_are_no_parameters() -> None:
    def body(*, seed: int = 1) -> None: ...

    with raises(PtxError, match="reserved: seed"):
        kernel(body)


def test_a_dimension_is_no_template_parameter() -> None:
    def body(x: Any, *, n: int = 1) -> None: ...

    with raises(PtxError, match="both dimensions and template parameters: n"):
        kernel(in_specs=(Tile("n", f32),))(body)


def test_parameters_and_the_kernel_have_names() -> None:
    def body(*tensors: Any) -> None: ...
    def options(**values: Any) -> None: ...

    for function in (body, options):
        with raises(PtxError, match="takes \\*args or \\*\\*kwargs"):
            kernel(function)
    with raises(PtxError, match="a kernel name must be valid in PTX, found '<lambda>'"):
        kernel(lambda: None)


def test_a_kernel_keeps_its_latest_256_traces() -> None:
    def body(x: Any) -> None:
        ptx.inst.mov.u32(reg.scalar(u32), x.shape[0])
        ptx.ret()

    traced = kernel(in_specs=(Tile("n", f32),))(body)
    first = traced.module(n=1)
    for n in range(2, 257):
        traced.module(n=n)
    assert traced.module(n=1) is first
    traced.module(n=257)
    assert traced.module(n=1) is not first


def test_half_precision_needs_its_target() -> None:
    def body() -> None:
        a = reg.scalar(bf16, 1.0)
        _ = a + a  # here

    assert_rejected(body, "PTX0302", "sm_90", arch="sm_80")
    assert code(body)[-1] == "add.bf16 %rs1, %rs0, %rs0;"


def test_bits_and_types_that_do_not_mix() -> None:
    def body() -> None:
        x, f, d, h = reg.scalar(b32, -1), reg.scalar(f32, 1), reg.scalar(f64, 2.5), reg.scalar(f16, 0.5)
        _ = x >> 1, f + 1, d * 2.0, h * 1.5, f != 2, -f, -x, ~x, abs(f), f / 3

    assert code(body) == [
        "mov.b32 %r0, -1;", "mov.f32 %f0, 0f3F800000;", "mov.f64 %fd0, 0d4004000000000000;", "mov.b16 %rs0, 14336;",
        "shr.u32 %r1, %r0, 1;", "add.f32 %f1, %f0, 0f3F800000;", "mul.f64 %fd1, %fd0, 0d4000000000000000;",
        "mov.b16 %rs1, 15872;", "mul.f16 %rs2, %rs0, %rs1;", "setp.neu.f32 %p0, %f0, 0f40000000;", "neg.f32 %f2, %f0;",
        "neg.s32 %r2, %r0;", "not.b32 %r3, %r0;", "abs.f32 %f3, %f0;", "div.rn.f32 %f4, %f0, 0f40400000;",
    ]  # fmt: skip


def test_shared_memory_of_another_kernel_is_refused() -> None:
    allocations: list[Any] = []

    @kernel
    def owner() -> None:
        allocations.extend([smem.alloc(f32, (4, 4)), smem.mbarrier(2)])
        allocations.append(allocations[1][0])

        allocations.extend([ptx.mbarrier.array(allocations[1], 0, 2), allocations[0] + 4])

    owner.ptx()
    for use in (
        lambda: smem.load(f32, allocations[0]), lambda: allocations[0][0], lambda: allocations[0].address(),
        lambda: allocations[1][0], lambda: smem.load(u64, allocations[2]), lambda: allocations[0][reg.scalar(u32), 0],
        lambda: allocations[0] + 4, lambda: allocations[4] + 4, lambda: allocations[0] + reg.scalar(u32),
        lambda: ptx.mbarrier.array(allocations[0], 0, 1), lambda: ptx.mbarrier.init(allocations[1], 1),
        lambda: allocations[1].address(), lambda: ptx.mbarrier.array(allocations[1], 0, 2),
        lambda: ptx.inst.mov.u32(reg.scalar(u32), allocations[1]),
        lambda: ptx.inst.mov.u32(reg.scalar(u32), allocations[2]), lambda: ptx.mbarrier.array(allocations[2], 0, 2),
        lambda: allocations[3][0], lambda: allocations[3].at(reg.scalar(u32)),
    ):  # fmt: skip

        def body() -> None:
            smem.alloc(f32, (4, 4))
            smem.mbarrier(2)
            use()  # noqa: B023

        with raises(PtxError, match=r"PTX0802\]: `(smem|mbar)_1` is shared memory of the kernel `owner`"):
            make_kernel(body).ptx()


def test_a_tensor_of_another_kernel_is_refused() -> None:
    kept: list[Any] = []

    @kernel(in_specs=(Tile(64, f32),))
    def other(x: Any) -> None:
        kept.append(x)

    other.ptx()
    for use in (
        lambda: kept[0].tma_desc(), lambda: ptx.global_ptrs(kept[0]),
        lambda: ptx.inst.mov.u64(reg.scalar(u64), kept[0]), lambda: ptx.addr(kept[0]),
    ):  # fmt: skip

        @kernel(in_specs=(Tile(64, f32),))
        def body(x: Any) -> None:
            use()  # noqa: B023

        with raises(PtxError, match=r"PTX0802\]: the tensor `x` belongs to another kernel[\s\S]*of this kernel"):
            body.ptx()


def test_an_operand_that_a_newer_target_takes_says_so() -> None:
    def body() -> None:
        ptx.mbarrier.arrive(smem.mbarrier(1)[0], count=2)  # here

    assert_rejected(body, "PTX0302", "with 3 operands", "sm_90 and newer", arch="sm_80")


def test_a_tensor_where_an_address_belongs_names_the_pointer() -> None:
    @kernel(in_specs=(Tile(64, f32),))
    def load(x: Any) -> None:
        ptx.ld(f32, reg.scalar(f32), x)

    @kernel(in_specs=(Tile(64, f32),))
    def copy(x: Any) -> None:
        ptx.cp.async_.cg(smem.alloc(f32, 64), x, 16)

    for body in (load, copy):
        with raises(PtxError, match=r"PTX0205\][\s\S]*\(p,\) = ptx\.global_ptrs\(x\)[\s\S]*x\.tma_desc\(\)"):
            body.ptx()


def test_a_float_register_is_not_read_as_an_integer() -> None:
    def write_float() -> None:
        x = reg.scalar(f32, 1.0)
        _ = x.view(u32) + 1  # here

    def halves() -> None:
        x = reg.scalar(f32, 1.0)
        _ = x.f16x2  # here

    def through_bits() -> None:
        x = reg.scalar(f64, 1.0)
        _ = x.b64.s64  # here

    def narrow() -> None:
        x = reg.scalar(f64, 1.0)
        _ = x.b32  # here

    assert_rejected(
        write_float, "PTX0804", "`%f0` is declared as .f32 and cannot be read as .u32", "ptx.mov(b32, x).view(u32)"
    )
    assert_rejected(halves, "PTX0804", "ptx.mov(b32, x).view(f16x2)")
    assert_rejected(through_bits, "PTX0804", "ptx.mov(b64, x).view(s64)")
    assert_rejected(narrow, "PTX0804", "x.view(b64) reads its bits")

    def right() -> None:
        x, n = reg.scalar(f32), reg.scalar(u32)
        _ = x.b32 & 1
        _ = ptx.mov(b32, x).view(u32) + 1
        _ = n.f32.u32 + 1

    assert code(right) == ["and.b32 %r1, %f0, 1;", "mov.b32 %r2, %f0;", "add.u32 %r3, %r2, 1;", "add.u32 %r4, %r0, 1;"]


def test_a_value_error_of_the_kernel_itself_is_not_replaced() -> None:
    def body() -> None:
        raise ValueError("mine") from KeyError()

    with pytest.raises(ValueError, match="mine"):
        make_kernel(body).ptx()
