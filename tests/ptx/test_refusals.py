"""What wrappers refuse: each row states the code, the message and the help exactly, at the line of the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, ptx, reg, smem
from pyptx.ir.operands import text_of
from pyptx.types import f16, f32, pred, s32, u16, u32
from tests.dsl.tracing import assert_rejected, make_kernel, refusal
from tests.messages import raises

T: Any = ptx
"""The same functions, for arguments of wrong types."""


@ptx.func(params=(f32, f32), returns=())
def one_argument(x: Any) -> None:
    """Take fewer arguments than declared."""


@ptx.func
def untyped(x: Any) -> None:
    """Have no type for an argument."""


def make_part(number: int) -> Any:
    """Return a device function `part`."""

    @ptx.func(params=(), returns=())
    def part() -> None:
        ptx.bar.sync(number)

    return part


EXACT: list[tuple[Callable[[], Any], str, str, str | None]] = [
    (lambda: T.pipe(reg.scalar(u32))(reg.scalar(u32)), "PTX0818",
     "ptx.pipe(x) needs an instruction before the call: ptx.pipe(x).add.s32(dst, 1)", None),
    (lambda: T.inst[5], "PTX0818", "a modifier in brackets must be a type or a string, found 5 (int)", None),
    (lambda: T.inst.add[5], "PTX0818", "a modifier in brackets must be a type or a string, found 5 (int)", None),
    (lambda: ptx.pragma('a"b'), "PTX0818", 'expected text without quotes or line breaks, found \'a"b\'', None),
    (lambda: ptx.pragma("a\nb"), "PTX0818", "expected text without quotes or line breaks, found 'a\\nb'", None),
    (lambda: (ptx.file_(1, "a.cu"), ptx.file_(1, "b.cu")), "PTX0815", "file 1 is already 'a.cu'", "use another number"),
    (lambda: T.range_(1.5), "PTX0818", "`ptx.range_` takes integers and integer registers, found 1.5 (float)", None),
    (lambda: T.range_(0, True), "PTX0818",
     "`ptx.range_` takes integers and integer registers, found True (bool)", None),
    (lambda: T.range_(reg.scalar(u16)), "PTX0804",
     "`ptx.range_` counts in 32 or 64 bits, found `%rs0` of type .u16", None),
    (lambda: T.range_(reg.scalar(f32)), "PTX0804",
     "`ptx.range_` counts in 32 or 64 bits, found `%f0` of type .f32", None),
    (lambda: T.range_(reg.scalar(u32), reg.scalar(s32)), "PTX0804",
     "the bounds of `ptx.range_` differ in signedness: .u32 and .s32",
     "declare the bounds with the same signedness, or convert one"),
    (lambda: ptx.kloop(reg.scalar(u32), unroll=0, body=ptx.ret), "PTX0818",
     "`unroll` must be a positive integer, found 0 (int)", None),
    (lambda: ptx.kloop(reg.scalar(u32), unroll=True, body=ptx.ret), "PTX0818",
     "`unroll` must be a positive integer, found True (bool)", None),
    (lambda: one_argument(1), "PTX0821", "`one_argument` takes 1 argument, but `params` has 2 types", None),
    (lambda: untyped(1), "PTX0821", "`untyped`: no type for x",
     "annotate with types of pyptx.types, x: f32, or pass @ptx.func(params=(f32,), returns=(f32,))"),
    (lambda: ptx.addr(reg.scalar("u64"), 1 << 31), "PTX0805",
     "an address offset must fit in 32 signed bits, found 2147483648", "add it to a register first"),
    (lambda: ptx.addr(reg.scalar("u64"), -(1 << 31) - 1), "PTX0805",
     "an address offset must fit in 32 signed bits, found -2147483649", "add it to a register first"),
    (lambda: ptx.addr(reg.scalar("u64"), 1.5), "PTX0818",
     "an offset must be an integer or a register, found 1.5 (float)", None),
    (lambda: (make_part(1)(), make_part(2)()), "PTX0815",
     "two device functions are named `part`", "rename one of them"),
    (lambda: (ptx.var("shared", u32, "part"), make_part(1)()), "PTX0815",
     "the name `part` is already used in this module", "rename the function"),
    (lambda: ptx.const(f32, [1], space="shared"), "PTX0818",
     "a table must be in 'const' or 'global', found 'shared'", None),
    (lambda: ptx.const(f32, []), "PTX0818", "a table must have at least one value", None),
    (lambda: T.while_(reg.scalar(u32) == 1), "PTX0814",
     "`ptx.while_` takes a function: a comparison is evaluated only once, before the loop",
     "write ptx.while_(lambda: i < n)"),
    (lambda: ptx.mbarrier.array(smem.mbarrier(2), 0, 2)[2], "PTX0816",
     "the ring at `mbar_1` has barriers 0 to 1, found 2 (int)", None),
    (lambda: ptx.global_ptrs(1), "PTX0818",
     "`ptx.global_ptrs` takes the kernel's tensors or parameter names, found 1 (int)", None),
    (lambda: ptx.addr(1.5), "PTX0818",
     "the base of an address must be a register, a symbol or an allocation, found 1.5 (float)", None),
    (lambda: T.addr([1], 4), "PTX0818",
     "the base of an address must be a register, a symbol or an allocation, found [1] (list)", None),
    (lambda: ptx.op.index(1, 2), "PTX0806", "only a variable or register can be indexed, found 1 (int)", None),
    (lambda: ptx.op.mask("x", 2), "PTX0806", "a mask must be a number, found 'x' (str)", None),
    (lambda: T.printf(5), "PTX0818",
     "the format of `ptx.printf` must be a string, found 5 (int)", 'write ptx.printf("x=%f\\n", x)'),
    (lambda: ptx.named_barrier(1).arrive(), "PTX0818",
     "`arrive` needs the number of arriving threads", "ptx.named_barrier(1, count=128)"),
    (lambda: ptx.pipeline(0), "PTX0818", "expected the number of stages, found 0 (int)", None),
    (lambda: ptx.pipeline(True), "PTX0818", "expected the number of stages, found True (bool)", None),
    (lambda: ptx.mad(1, 2, 3), "PTX0818", "`ptx.mad(a, b, c)` needs a register", "compute constants in Python"),
    (lambda: ptx.mad(u32, 1), "PTX0818", "`ptx.mad` takes (dtype, dst, a, b, c) or (a, b, c), found 2 arguments", None),
    (lambda: T.setmaxnreg(1.5), "PTX0818", "`setmaxnreg` takes a number, found 1.5 (float)", None),
    (lambda: ptx.setmaxnreg(True), "PTX0818", "`setmaxnreg` takes a number, found True (bool)", None),
    (lambda: ptx.setp("lt", u32, reg.scalar(pred), 1, 2, pred=reg.scalar(pred), pred_negate=reg.scalar(pred)),
     "PTX0818",
     "`pred` and `pred_negate` cannot be combined", "combine the two predicates first"),
    (lambda: ptx.tma.load_3d(0, 0, coords=(1, 2)), "PTX0818",
     "`coords` must have 3 coordinates, found 2", "(0, row, column // 64)"),
    (lambda: ptx.tma.load_3d(0, 0, 1), "PTX0818",
     "a tensor copy needs the coordinates of its box", "pass row= and col=, or coords="),
    (lambda: ptx.tma.load_3d_multicast(0, 0, 1, 2, 3), "PTX0818",
     "a multicast needs a mask of the destination CTAs", "pass mask=0b11"),
    (lambda: reg.wgmma_frag(m=64, n=1, dtype=f16), "PTX0818",
     "64×1 values of .f16 do not fill whole registers of 128 threads", None),
    (lambda: reg.wgmma_frag(m=3, n=1, dtype=f32), "PTX0818",
     "3×1 values of .f32 do not fill whole registers of 128 threads", None),
    (lambda: (ptx.label("a"), ptx.raw("a: bar.sync 0;")), "PTX0813", "the kernel already has a label `a`", None),
    (lambda: ptx.raw("} .func f() {"), "PTX0819",
     "the text closes a brace that it does not open", "pass complete statements"),
    (lambda: (ptx.label("a"), ptx.label("a")), "PTX0813",
     "the kernel already has a label `a`", "choose a unique name for each label"),
    (lambda: (ptx.var("shared", u32, "x"), ptx.label("x")), "PTX0815",
     "the name `x` is already used in this kernel, so it cannot name a label", "rename one of them"),
    (lambda: (ptx.var("shared", u32, "x"), ptx.var("shared", u32, "x")), "PTX0815",
     "the name `x` is already used in this kernel, so it cannot name a variable", "rename one of them"),
]  # fmt: skip


@pytest.mark.parametrize(("use", "rule", "message", "help"), EXACT, ids=[message for *_, message, _ in EXACT])
def test_a_refusal_states_exactly(use: Callable[[], Any], rule: str, message: str, help: str | None) -> None:
    assert refusal(use) == (rule, message, help)


def test_an_operand_is_made_outside_a_kernel_too() -> None:
    kept: list[Any] = []

    def body() -> None:
        kept.append(reg.scalar(u32))

    make_kernel(body).ptx()
    assert text_of(ptx.op.vector(kept[0], "x", 3, ["%r1", "_"])) == "{%r0, x, 3, {%r1, _}}"
    with raises(PtxError, match=r"test_refusals\.py:\d+: error\[PTX0806\]: an operand cannot be \{1\} \(set\)"):
        ptx.op.operand({1})


def test_labels_and_branches_are_in_no_group_of_instructions() -> None:
    def label() -> None:
        with ptx.expr():
            ptx.label("a")  # here

    def branch() -> None:
        with ptx.expr():
            ptx.bra("a")  # here

    def exact() -> None:
        with ptx.loop("a"):
            ptx.break_()  # here

    tail = " inside `expr`: a group of instructions cannot contain control flow"
    assert assert_rejected(label, "PTX0810", "@intrinsic").message == f"the label `a`{tail}"
    assert assert_rejected(branch, "PTX0810", "@intrinsic").message == f"the branch to `a`{tail}"
    assert (
        assert_rejected(exact, "PTX0810", "ptx.loop(…, end=…)", exact=True).message == "the loop `a` has no end label"
    )


def test_what_a_helper_of_a_helper_emitted_is_no_condition_of_an_elif() -> None:
    def second(p: reg.Reg) -> None:
        with ptx.elif_(p):  # here
            ptx.bar.sync(2)

    def body() -> None:
        p = reg.scalar(pred, 1)
        with ptx.if_(p):
            ptx.bar.sync(0)
        ptx.bar.sync(1)
        second(p)

    with raises(PtxError, match=r"PTX0810\]: `ptx.elif_` must directly follow the `ptx.if_`"):
        make_kernel(body).ptx()


def test_a_wrong_result_is_reported_at_the_device_function() -> None:
    def nothing(x: Any) -> None:
        """Return fewer values than declared."""

    def integer(x: Any) -> Any:
        return reg.scalar(u32, 1, name="n")

    for function, rule, message, help in (
        (nothing, "PTX0818", "`nothing` returns 0 values, but declares 1",
         "annotate the return types: -> f32, or returns=(f32, u32)"),
        (integer, "PTX0203", "`b` is .f32, found `%n` of type .u32",
         "use a register of type .f32 or .b128 or .b32 or .b64"),
    ):  # fmt: skip
        made = ptx.func(params=(f32,), returns=(f32,))(function)

        def body() -> None:
            made(1)  # noqa: B023

        with raises(PtxError) as caught:
            make_kernel(body).ptx()
        (found,) = caught.value.diagnostics
        assert (found.code, found.message, found.help) == (rule, message, help)
        code = function.__code__
        assert (getattr(found.origin, "file", ""), found.line) == (code.co_filename, code.co_firstlineno)
