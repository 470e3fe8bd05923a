"""Literals of the small floating-point formats; `tests/test_numbers.py` compares their bits."""

from __future__ import annotations

from pyptx import PtxError, ptx, reg
from pyptx.types import e4m3, e5m2, u32, ue8m0
from tests.messages import raises

from .tracing import assert_rejected, code, refusal


def test_a_register_of_eight_bits_takes_a_number() -> None:
    def body() -> None:
        reg.scalar(e4m3, 1.5)
        reg.scalar(e5m2, -2)
        reg.scalar(ue8m0, 0.25)
        reg.scalar(e5m2, float("inf"))

    assert code(body) == ["mov.b16 %rs0, 60;", "mov.b16 %rs1, 192;", "mov.b16 %rs2, 125;", "mov.b16 %rs3, 124;"]


def test_what_a_format_does_not_have_is_refused() -> None:
    def large() -> None:
        reg.scalar(e4m3, 500.0)  # here

    def huge() -> None:
        reg.scalar(e4m3, 10**400)  # here

    def no_power() -> None:
        reg.scalar(ue8m0, 3)  # here

    def inexact() -> None:
        ptx.mov(e4m3, reg.scalar(e4m3), 17)  # here

    assert_rejected(large, "PTX0805", "-448 to 448")
    assert_rejected(no_power, "PTX0805", "powers of two")
    assert_rejected(huge, "PTX0805", "-448 to 448")
    with raises(PtxError):
        code(inexact)


def test_infinity_where_no_float_fits_is_refused_as_a_literal() -> None:
    code_and_words = refusal(lambda: ptx.inst.add.u32(reg.scalar(u32), reg.scalar(u32), float("-inf")))
    assert code_and_words == ("PTX0203", "`b` is .u32, found the number `0dFFF0000000000000`", None)
