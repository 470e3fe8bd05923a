"""Literals of the small floating-point formats, against `ml_dtypes`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import PtxError, ptx, reg
from pyptx.dsl import small_floats
from pyptx.types import e4m3, e5m2, ue8m0

from .tracing import code, refused

DTYPES: dict[str, Any] = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn,
    "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn,
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_every_number_has_its_own_bits_and_those_between_round_to_even(name: str) -> None:
    kind = small_floats.FORMATS[name]
    width = 1 + kind.exponent + kind.mantissa
    every = np.arange(1 << width, dtype=np.uint8).view(DTYPES[name]).astype(np.float64)
    finite = sorted({float(x) for x in every if math.isfinite(x)})
    between = [(a + b) / 2 for a, b in pairwise(finite)]
    for value in [*finite, -0.0, *between, *(x * 1.001 for x in between)]:
        bits = small_floats.bits_of(value, name)
        assert bits == int(np.array(value, np.float64).astype(DTYPES[name]).view(np.uint8)), value
        assert bits is not None
    assert small_floats.bounds(name) == (finite[0], finite[-1])
    assert small_floats.bits_of(finite[-1] * 1.5, name) is None


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

    def no_power() -> None:
        reg.scalar(ue8m0, 3)  # here

    def inexact() -> None:
        ptx.mov(e4m3, reg.scalar(e4m3), 17)  # here

    refused(large, "PTX0805", "-448 to 448")
    refused(no_power, "PTX0805", "powers of two")
    with pytest.raises(PtxError):
        code(inexact)
