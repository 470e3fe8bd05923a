"""Device functions, tables, printf, assertions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pyptx import PtxError, combine, kernel, ptx, reg, smem
from pyptx.emitter import emit
from pyptx.types import bf16, f32, pred, s32, u8, u32, u64
from tests.dsl.tracing import assert_accepted, assert_rejected, make_kernel
from tests.messages import raises


def scale_body(x: reg.Reg, n: reg.Reg) -> reg.Reg:
    y = reg.scalar(f32, 1.0)
    with ptx.if_(n == 0):
        ptx.mul(f32, y, x, 2.0)
    return y


# What a user writes as `def scale(x: f32, n: u32) -> f32:` under @ptx.func.
scale_body.__annotations__.update({"x": f32, "n": u32, "return": f32})
scale_body.__name__ = "scale"
scale = ptx.func(scale_body)


def test_a_device_function_is_defined_once_and_called() -> None:
    def body() -> None:
        x = reg.scalar(f32, 3.0)
        y = scale(x, 0)
        ptx.st(f32, ptx.addr(reg.scalar(u64, 64)), scale(y, reg.scalar(u32, 1)))

    kernel_object = make_kernel(body)
    text = kernel_object.ptx()
    assert_accepted(text)
    assert text.count(".func (.param .f32 scale_result0) scale(") == 1
    assert text.count("call.uni (result0), scale, (arg0, arg1);") == 2
    assert text.index(".func") < text.index(".visible .entry")
    assert kernel_object.check() == []
    assert kernel_object.cubin().data


@ptx.func(params=(u32,), returns=(u32,))
def factorial(n: reg.Reg) -> reg.Reg:
    out = reg.scalar(u32, 1)
    with ptx.if_(n > 1):
        ptx.mov(u32, out, n * factorial(n - 1))
    return out


def test_a_function_may_call_itself() -> None:
    def body() -> None:
        ptx.st(u32, ptx.addr(reg.scalar(u64, 64)), factorial(reg.scalar(u32, 5)))

    kernel_object = make_kernel(body)
    assert_accepted(kernel_object.ptx())
    assert kernel_object.ptx().count(".func") == 1


def test_a_call_of_a_function_without_parameters_has_no_lists() -> None:
    @ptx.func(params=(), returns=())
    def meet() -> None:
        ptx.bar.sync(0)

    def body() -> None:
        meet()

    text = make_kernel(body).ptx()
    assert_accepted(text)
    assert "call.uni meet;" in text


def test_wrong_calls_of_a_device_function() -> None:
    def call_with_few() -> None:
        scale(reg.scalar(f32, 1.0))

    def call_with_integer() -> None:
        scale(reg.scalar(u32, 1), 2)

    with raises(PtxError, match="takes 2 arguments, found 1"):
        make_kernel(call_with_few).ptx()
    with raises(PtxError, match="PTX0203"):
        make_kernel(call_with_integer).ptx()
    with raises(PtxError, match="PTX0801"):
        scale(1, 2)


def test_tables_are_module_constants() -> None:
    def body() -> None:
        name = ptx.const(f32, [1.0, 0.5, -2], name="weights")
        table = ptx.const(s32, [-1, 7], space="global")
        small = ptx.const(bf16, [1.0])
        x, y = reg.scalar(f32), reg.scalar(s32)
        ptx.ld(f32, x, ptx.addr(name, 4), space="const")
        ptx.ld(s32, y, ptx.addr(table, 4))
        ptx.ld(bf16, reg.scalar(bf16), ptx.addr(small), space="const")

    text = make_kernel(body).ptx()
    assert_accepted(text)
    assert ".const .f32 weights[3] = {0f3F800000, 0f3F000000, 0fC0000000};" in text
    assert ".global .s32 table_1[2] = {-1, 7};" in text


def test_printf_passes_what_c_would() -> None:
    def body() -> None:
        i, x, b = reg.scalar(s32, -1), reg.scalar(f32, 1.5), reg.scalar(u8, 3)
        ptx.printf("i=%d x=%f b=%u p=%d n=%d\n", i, x, b, i < 0, 7)
        ptx.printf("plain\n")
        ptx.printf("plain\n")

    kernel_object = make_kernel(body)
    text = kernel_object.ptx()
    assert_accepted(text)
    assert kernel_object.cubin().data
    assert text.count(".global .align 1 .b8 $text") == 2
    assert "cvt.f64.f32" in text
    assert ".extern .func (.param .b32 vprintf_result0) vprintf" in text


PRINTED: list[tuple[str, Callable[[Any, Any, Any], tuple[Any, ...]], tuple[str, ...]]] = [
    ("%d %f\n", lambda i, x, w: (i,), ("`%f`", "no argument", "needs 2, found 1")),
    ("%d\n", lambda i, x, w: (i, x), ("argument 2", "`%f0` of type .f32", "no conversion", "needs 1")),
    ("100%%\n", lambda i, x, w: (i,), ("argument 1", "no conversion", "needs 0")),
    ("%d %5.2d\n", lambda i, x, w: (i, x), ("`%5.2d`", "prints 32 bits", "argument 2", ".f32", "use %f")),
    ("%f\n", lambda i, x, w: (i,), ("`%f`", "floating-point", "argument 1", ".s32", "use %d")),
    ("%d\n", lambda i, x, w: (w,), ("`%d`", "prints 32 bits", ".u64", "use %llu")),
    ("%lld\n", lambda i, x, w: (i,), ("`%lld`", "prints 64 bits", ".s32", "use %d")),
    ("%*d\n", lambda i, x, w: (x, i), ("`%*d`", "argument 1", ".f32")),
    ("%d\n", lambda i, x, w: (1 << 32,), ("`%d`", "4294967296", "use %lld")),
    ("%d\n", lambda i, x, w: (1.5,), ("`%d`", "1.5", "use %f")),
    ("%d\n", lambda i, x, w: ("text",), ("`%d`", "'text'", "use %s")),
    ("%s\n", lambda i, x, w: (i,), ("`%s`", "prints a string", ".s32")),
    ("%d\n", lambda i, x, w: (None,), ("`%d`", "None")),
    ("%y\n", lambda i, x, w: (i,), ("`%y`", "no conversion", "%%")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "make", "words"), PRINTED, ids=[f"{words}" for _, _, words in PRINTED])
def test_printf_refuses_what_its_format_does_not_print(text: str, make: Any, words: tuple[str, ...]) -> None:
    def body() -> None:
        i, x, w = reg.scalar(s32, -1), reg.scalar(f32, 1.5), reg.scalar(u64, 3)
        ptx.printf(text, *make(i, x, w))  # here

    assert_rejected(body, "PTX0818", *words)


def test_printf_prints_what_its_format_says(capsys: pytest.CaptureFixture[str]) -> None:
    @kernel(grid=(1,))
    def body() -> None:
        x, w = reg.scalar(f32, 1.5), reg.scalar(u64, 3)
        ptx.printf("%s %f %lld %llu %*d %c %u%%\n", "text", 2, 4, w, 5, 6, 65, np.int32(-1))
        ptx.printf("%.1f\n", x)

    body()
    assert capsys.readouterr().out == "text 2.000000 4 3     6 A 4294967295%\n1.5\n"


def test_assertions_name_the_python_line() -> None:
    @kernel
    def body() -> None:
        x = reg.scalar(u32, 3)
        check = ptx.assert_
        check(x == 3, "x is three")
        ptx.trap(pred=x == 4)

    text = body.ptx()
    assert_accepted(text)
    assert body.cubin().data
    line = body.__wrapped__.__code__.co_firstlineno + 4  # pyright: ignore[reportFunctionMemberAccess, reportUnknownMemberType, reportUnknownVariableType, reportAttributeAccessIssue]
    assert f"st.param.b32 [arg2], {line};" in text
    assert ", ".join(map(str, b"x is three")) in text
    assert ".noreturn" in text


def test_several_kernels_share_one_module() -> None:
    @kernel
    def first() -> None:
        scale(reg.scalar(f32, 1.0), 1)
        ptx.printf("same\n")
        smem.alloc(f32, (128, 128))[1].address()

    @kernel
    def second(*, n: int) -> None:
        scale(reg.scalar(f32, 1.0), n)
        ptx.printf("same\n")
        ptx.elect_sync(reg.scalar(u32), reg.scalar(pred), -1)
        smem.alloc(f32, (128, 128), align=1024)[1].address()

    text = emit(combine(first, (second, {"n": 3})))
    assert_accepted(text)
    assert [text.count(word) for word in (".visible .entry", "scale(", ".b8 $text", ".extern .shared")] == [2, 1, 1, 1]
    with raises(PtxError, match="different names"):
        combine(first, first)


def test_a_device_function_is_part_of_the_key() -> None:
    factor = 2.0

    @ptx.func(params=(f32,), returns=(f32,))
    def times(x: reg.Reg) -> reg.Reg:
        return x * factor

    @kernel
    def body() -> None:
        times(reg.scalar(f32, 1.0))

    assert "0f40000000" in body.ptx()
    factor = 4.0
    assert "0f40800000" in body.ptx()


def test_annotations_give_the_types_that_the_decorator_does_not() -> None:
    def double(x: Any) -> Any:
        return x + x

    double.__annotations__ = {"x": f32}
    assert ptx.func(returns=(f32,))(double).resolve_signature() == ((f32,), (f32,))
    double.__annotations__ = {"return": f32}
    assert ptx.func(params=(f32,))(double).resolve_signature() == ((f32,), (f32,))
