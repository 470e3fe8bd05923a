"""More bad input: values that registers do not accept, declarations, blocks that are never opened."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError, Tile, kernel, ptx, reg, smem
from pyptx.dsl.values import find_accepted_types
from pyptx.types import bf16, f16, f32, pred, s32, s64, u8, u32, u64
from tests.messages import raises

from .tracing import assert_rejected, code, refusal, text_of

WRONG_USE: Any = operator
ORDERS: list[tuple[Callable[[], Any], str]] = [
    (lambda: reg.scalar(u64) < reg.scalar(s32), "depends on the sign"),
    (lambda: reg.scalar(u64).max(reg.scalar(s32)), "depends on the sign"),
    (lambda: reg.scalar(u32) // 0, "by 0"),
    (lambda: WRONG_USE.pow(reg.scalar(u32), 2), "no power"),
    (lambda: f"{reg.scalar(u32):d}", "does not support the format 'd'"),
    (lambda: reg.scalar(u32, [1, 2]), "is one register"),  # pyright: ignore[reportArgumentType]
    (lambda: reg.array(f32, 4)[4], "use reg.array(f32, 5)"),
    (lambda: smem.mbarrier(2)[2], "use smem.mbarrier(3)"),
    (lambda: smem.alloc(f32, (4, 8))[1:2], "fewer indices"),
    (lambda: reg.scalar(u32) << 32, "shifting out all bits"),
]


WRONG: Any = len
MISTYPED: list[tuple[Callable[[], Any], str]] = [
    (lambda: reg.scalar(u32, name=WRONG), "a name must be a string"),
    (lambda: reg.array(u32, 2, name=WRONG), "a name must be a string"),
    (lambda: smem.mbarrier(1, name=WRONG), "a name must be a string"),
    (lambda: ptx.mul(u32, u32, 1, 2, mode=WRONG), "`mode` of `ptx.mul` must be a string"),
    (lambda: ptx.mbarrier.arrive(smem.mbarrier(1)[0], sem=WRONG), "`mbarrier` must be a string"),
    (lambda: ptx.setp(WRONG, u32, WRONG, 1, 2), "a comparison must be a string"),
    (lambda: ptx.mul(WRONG, u32, 1, 2), "expected a type of pyptx.types"),
    (lambda: ptx.sreg(WRONG), "special register must be a string"),
    (lambda: reg.wgmma_frag(m=64, n=WRONG, dtype=f32), "positive integers"),
    (lambda: ptx.param(u32, WRONG), "name of a parameter"),
    (lambda: ptx.pragma(WRONG), "takes a string"),
    (lambda: ptx.loc(1, WRONG), "nonnegative numbers"),
    (lambda: ptx.file_(WRONG, "a.cu"), "positive number"),
    (lambda: ptx.inst.ld.shared.u32(u32, ""), "is not declared here"),
]


@pytest.mark.parametrize(("use", "words"), MISTYPED, ids=[f"{i}" for i in range(len(MISTYPED))])
def test_values_of_another_kind_are_refused_at_their_line(use: Callable[[], Any], words: str) -> None:
    def body() -> None:
        use()

    with raises(PtxError) as excinfo:
        kernel(body).ptx()
    assert words in text_of(excinfo.value)
    assert str(excinfo.value).startswith(__file__)
    assert excinfo.value.diagnostics[0].help


@pytest.mark.parametrize(("use", "words"), ORDERS, ids=[words for _, words in ORDERS])
def test_more_that_python_cannot_do_with_registers(use: Callable[[], Any], words: str) -> None:
    def body() -> None:
        use()

    with raises(PtxError) as excinfo:
        kernel(body).ptx()
    assert words in text_of(excinfo.value)
    assert all(finding.help for finding in excinfo.value.diagnostics)


EXACT: list[tuple[Callable[[], Any], str, str, str | None]] = [
    (lambda: reg.scalar(u32) / 2, "PTX0804",
     "`/` does not support .u32, only .f32 and .f64", "use a // b, which truncates toward zero as PTX does"),
    (lambda: 1 / reg.scalar(s32), "PTX0804",
     "`/` does not support .s32, only .f32 and .f64", "use a // b, which truncates toward zero as PTX does"),
    (lambda: reg.scalar(f16) / reg.scalar(f16), "PTX0804",
     "`/` does not support .f16, only .f32 and .f64", "convert to f32 first"),
    (lambda: reg.scalar(u32) << reg.scalar(u64), "PTX0804",
     "`<<` takes a shift amount of at most 32 bits, found `%rd0` of type .u64",
     "convert it first: ptx.cvt(u32, u64, dst, src)"),
    (lambda: reg.scalar(pred) == reg.scalar(pred), "PTX0804",
     "`==` does not support predicates", "use p ^ q, which is true where they differ"),
    (lambda: ~reg.scalar(pred) == reg.scalar(pred), "PTX0804",
     "`==` does not support predicates", "use p ^ q, which is true where they differ"),
    (lambda: ~reg.scalar(pred) != ~reg.scalar(pred), "PTX0804",
     "`!=` does not support predicates", "use p ^ q, which is true where they differ"),
    (lambda: reg.scalar(pred) != ~reg.scalar(pred), "PTX0804",
     "`!=` does not support predicates", "use p ^ q, which is true where they differ"),
    (lambda: ~reg.scalar(pred) == 1, "PTX0804",
     "`~%p0` is a predicate and cannot be compared with a number",
     "predicates support & | ^ ~; ptx.if_ branches on one, ptx.selp converts one to a number"),
    (lambda: reg.scalar(u32) == ~reg.scalar(pred), "PTX0804",
     "`==` does not support predicates", "predicates support & | ^ ~; ptx.selp converts one to a number"),
    (lambda: reg.scalar(u32) + ~reg.scalar(pred), "PTX0804",
     "`+` does not support predicates", "predicates support & | ^ ~; ptx.selp converts one to a number"),
    (lambda: reg.scalar(u32) & ~reg.scalar(pred), "PTX0804",
     "`&` cannot combine a predicate and `%r0` of type .u32", "compare it first: x != 0"),
    (lambda: 1 in reg.array(f32, 2), "PTX0803",
     "`%v_1_` is a vector of 2 registers and does not support `in` with other values",
     "compare with each register: (x[0] == 1) | (x[1] == 1)"),
    (lambda: reg.array(f32, 0), "PTX0818", "expected a count of at least 1, found 0 (int)", None),
    (lambda: reg.array(f32, True), "PTX0818", "expected a count of at least 1, found True (bool)", None),
    (lambda: reg.scalar(pred, 2), "PTX0805", "a predicate must be True or False, found 2", None),
    (lambda: reg.scalar("b1"), "PTX0804", "no register can hold a value of type .b1", "use a type of 8 to 128 bits"),
    (lambda: reg.scalar("s2f6", 1.0), "PTX0805",
     "there are no literals of type .s2f6", "load the bits through a register of an integer type"),
    (lambda: smem.alloc(f32, 4, align=3), "PTX0818",
     "an alignment must be a power of two, found 3", "the alignment is in bytes: align=128"),
    (lambda: smem.alloc(f32, 4, align=0), "PTX0818",
     "an alignment must be a power of two, found 0", "the alignment is in bytes: align=128"),
    (lambda: smem.alloc(f32, (4, 0)), "PTX0818", "a shape must be positive integers, found (4, 0)", None),
    (lambda: smem.alloc(f32, 4, "256B"), "PTX0818", "a swizzle must be 32B, 64B, 128B or None, found '256B'", None),
    (lambda: smem.apply_swizzle(reg.scalar(u32), "64"), "PTX0818",
     "a swizzle must be 32B, 64B, 128B or None, found '64'", None),
    (lambda: (smem.base("mine"), smem.base("yours")), "PTX0815",
     "the dynamic shared memory of this kernel is named `mine`, found 'yours'",
     "a kernel has one such symbol: use its name, or omit the name"),
    (lambda: smem.alloc(f32, 4)[reg.scalar(f32)], "PTX0804",
     "an index must be an integer register, found `%f0` of type .f32", None),
    (lambda: smem.alloc(f32, 4) == 3, "PTX0804",
     "`smem_1` is shared memory and cannot be compared with a number",
     "smem.load(f32, smem_1[0]) reads an element; `+` moves the address by a number of bytes"),
    (lambda: smem.mbarrier(0), "PTX0818", "expected the number of barriers, found 0 (int)", None),
    (lambda: smem.mbarrier(True), "PTX0818", "expected the number of barriers, found True (bool)", None),
    (lambda: ptx.inst.bra(reg.scalar(u32)), "PTX0202", "`target` must be a label, found `%r0`, a register", None),
    (lambda: ptx.inst.setp.lt.u32(reg.scalar(u32), 1, 2), "PTX0203",
     "`p` is .pred, found `%r0` of type .u32", "use a register of type .pred"),
    (lambda: ptx.inst.setp.lt.u32(reg.PipeRef(reg.scalar(u32), reg.scalar(pred)), 1, 2), "PTX0203",
     "`p` is .pred, found `%r0` of type .u32", "use a register of type .pred"),
    (lambda: ptx.inst.ld.global_.v2.f32([reg.scalar(u32), reg.scalar(u32)], 0), "PTX0203",
     "`d` is .f32, found `%r0` of type .u32", "use a register of type .f32 or .b128 or .b32 or .b64"),
    (lambda: ptx.inst.ld.global_.v2.f32([reg.scalar(f32), reg.scalar(u32)], 0), "PTX0203",
     "`d` is .f32, found `%r0` of type .u32", "use a register of type .f32 or .b128 or .b32 or .b64"),
    (lambda: ptx.inst.st.global_.v2.u32(reg.scalar(u64), [reg.scalar(u32), 1.5]), "PTX0203",
     "`b` is .u32, found the number `1.5`", None),
    (lambda: ptx.inst.ld.global_.v2.f32(reg.array(u32, 2), 0), "PTX0203",
     "`d` is .f32, found `%v_1_0` of type .u32", "use a register of type .f32 or .b128 or .b32 or .b64"),
    (lambda: ptx.inst.ld.global_.f32(reg.scalar(f32), ~reg.scalar(pred)), "PTX0202",
     "`a` must be an address, found `!%p0`, a negated predicate", None),
    (lambda: ptx.inst.ld.global_.f32(reg.scalar(f32), reg.array(u32, 2)), "PTX0202",
     "`a` must be an address, found `{%v_1_0, %v_1_1}`, a vector",
     "name one register, or add a vector modifier (`.v2`, `.v4`) to the instruction"),
    (lambda: ptx.inst["tex.2d.v4.f32.f32"](reg.array(f32, 4), reg.scalar(u64)), "PTX0201",
     "expected the address `[a:.texref, {c x2}:.f32]`, found 1 part", None),
]  # fmt: skip


@pytest.mark.parametrize(("use", "rule", "message", "help"), EXACT, ids=[message for *_, message, _ in EXACT])
def test_a_refusal_states_exactly(use: Callable[[], Any], rule: str, message: str, help: str | None) -> None:
    assert refusal(use) == (rule, message, help)


class Half:
    """A number of another library that is not an integer."""

    def __float__(self) -> float:
        return 0.5


def test_floats_of_other_libraries_are_floats() -> None:
    def body() -> None:
        x = reg.scalar(f32, Half())  # pyright: ignore[reportArgumentType]
        _ = x * Half()
        ptx.inst.add.f32(x, x, Half())

    assert code(body) == [
        "mov.f32 %f0, 0f3F000000;", "mul.f32 %f1, %f0, 0f3F000000;", "add.f32 %f0, %f0, 0f3F000000;",
    ]  # fmt: skip


def test_a_narrower_unsigned_number_fits_a_signed_one() -> None:
    def body() -> None:
        _ = reg.scalar(s64) < reg.scalar(u32)

    assert code(body)[-2:] == ["cvt.u64.u32 %rd1, %r0;", "setp.lt.s64 %p0, %rd0, %rd1;"]


DECLARED: list[tuple[dict[str, Any], str]] = [
    ({"arch": "sm_99"}, "unknown arch"), ({"version": (8, 9)}, "no PTX"), ({"version": 8}, "no PTX"),
    ({"block": (0, 1, 1)}, "three positive integers"), ({"block": (2048, 1, 1)}, "2,048 threads"),
    ({"cluster": (32,)}, "32 CTAs"), ({"smem": -1}, "number of bytes"), ({"raw_params": [("u32",)]}, "(type, name)"),
    ({"raw_params": [("u33", "n")]}, "u33"), ({"reqntid": (0,)}, "three positive integers"),
    ({"raw_directives": [("foo", (1,))]}, "is not a kernel directive"), ({"in_specs": [5]}, "sequence of Tile"),
    ({"raw_directives": [(".param", (1,))]}, "is not a kernel directive"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "words"), DECLARED, ids=[str(options) for options, _ in DECLARED])
def test_what_a_kernel_is_given_is_checked_at_its_decorator(options: dict[str, Any], words: str) -> None:
    def body() -> None: ...

    with raises(PtxError) as excinfo:
        kernel(**options)(body)
    assert words in text_of(excinfo.value)
    assert str(excinfo.value).startswith(__file__)


def test_one_number_is_a_block_and_one_tile_a_list() -> None:
    @kernel(in_specs=Tile(4, f32), block=128)  # pyright: ignore[reportArgumentType]
    def body(x: Any) -> None: ...

    assert (body.block, body.in_specs) == ((128, 1, 1), (Tile(4, f32),))


UNOPENED: list[tuple[Callable[[], Any], str]] = [
    (lambda: ptx.if_(reg.scalar(u32) == 1), "ptx.if_"), (lambda: ptx.loop("a"), "ptx.loop"),
    (lambda: ptx.while_(lambda: reg.scalar(u32) == 1), "ptx.while_"), (lambda: ptx.scope(), "ptx.scope()"),
    (lambda: ptx.expr(), "expr"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), UNOPENED, ids=[text for _, text in UNOPENED])
def test_a_block_that_is_never_opened_is_reported(make: Callable[[], Any], text: str) -> None:
    def body() -> None:
        make()
        ptx.bar.sync(0)

    with pytest.raises(PtxError, match=rf"test_values\.py:\d+: error\[PTX0811\]: `{re.escape(text)}` is created here"):
        kernel(body).ptx()


def test_a_predicate_is_no_block() -> None:
    def body() -> None:
        condition: Any = reg.scalar(u32) == 1
        with condition:  # here
            ptx.bar.sync(0)

    assert_rejected(body, "PTX0803", "with ptx.if_(p):")


def test_a_kernel_calls_no_kernel() -> None:
    @kernel(grid=(1,))
    def inner() -> None: ...

    def body() -> None:
        inner()  # here

    assert_rejected(body, "PTX0810", "`inner`", "@ptx.func")


def test_a_long_function_with_many_blocks_takes_time_in_proportion() -> None:
    """Python copies the whole bytecode whenever it is read; each block reads it."""
    import time

    def seconds(count: int) -> float:
        namespace: dict[str, Any] = {"ptx": ptx}
        block = "    with ptx.if_(x == 0):\n        ptx.add(u32, x, x, 1)\n"
        exec(compile("def long(x, u32):\n" + block * count, "<long>", "exec"), namespace)

        def body() -> None:
            namespace["long"](reg.scalar(u32), u32)

        kernel_object = kernel(body)
        start = time.process_time()
        kernel_object.ptx()
        return time.process_time() - start

    seconds(100)
    assert seconds(4000) < 40 * max(seconds(400), 0.01)


def test_real_registers_of_eight_bits_are_named() -> None:
    def body() -> None:
        ptx.cvt(u8, bf16, reg.scalar(u8), reg.scalar(bf16), rounding="rni")  # here

    assert_rejected(body, "PTX0203", "in an 8-bit register", "through .u16")


ACCEPTED = {
    ("f32", False): "b32 f32",
    ("f32", True): "b128 b32 b64 f32",
    ("f64", False): "b64 f64",
    ("f16", False): "b16 b8 f16",
    ("bf16", True): "b128 b16 b32 b64 b8 bf16",
    ("u32", False): "b32 f16x2 s16x2 s32 s8x4 u16x2 u32 u8x4",
    ("s64", True): "b128 b64 s64 u64",
    ("bf16x2", False): "b32 bf16x2 s16x2 s32 s8x4 u16x2 u32 u8x4",
    ("tf32", False): "b32 s16x2 s32 s8x4 tf32 u16x2 u32 u8x4",
    ("e4m3x2", False): "b16 b8 e4m3x2 s16 s8 u16 u8",
    ("b16", False): (
        "b16 b8 bf16 e2m1x4 e2m3 e2m3x2 e3m2 e3m2x2 e4m3 e4m3x2 e5m2 e5m2x2 f16 s16 s2f6 s2f6x2 s8 u16 u8 ue4m3 ue8m0 "
        "ue8m0x2"
    ),
    ("b64", False): "b64 f32x2 f64 s64 u64",
    ("b128", True): "b128",
    ("pred", False): "pred",
    ("texref", False): "b64 s64 u64",
}
"""The types of the registers that an operand accepts; a widenable one takes wider registers, too."""


@pytest.mark.parametrize(("type_name", "widenable"), ACCEPTED)
def test_a_float_takes_its_own_registers_or_bits_and_an_integer_those_of_its_size(
    type_name: str, widenable: bool
) -> None:
    assert " ".join(sorted(find_accepted_types(type_name, widenable))) == ACCEPTED[type_name, widenable]
