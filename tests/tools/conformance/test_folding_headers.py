"""Queries of NVIDIA's headers: the calls for each spelling, and the separation of lanes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tools.conformance.folding import select_cases
from tools.conformance.folding_headers import Plan, lanes, plan
from tools.conformance.forms import Case


@cache
def _cases() -> dict[str, Case]:
    selection = select_cases(["half_precision", "conversion"])
    return {text.split(" ")[0]: pairs[-1][1] for text, pairs in selection.items() if pairs}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cvt.rm.f16.f32", Plan("h(__float2half_rd(F(a)))", 32, 16, 1)),
        ("cvt.rn.satfinite.e2m1x2.f32", Plan("__nv_cvt_float_to_fp4(F(a), __NV_E2M1, cudaRoundNearest)", 32, 4, 2)),
        ("cvt.rn.f16x2.e5m2x2", Plan("__nv_cvt_fp8_to_halfraw(a, __NV_E5M2).x", 8, 16, 2)),
        ("add.ftz.f16x2", None),
        ("cvt.rn.relu.f16x2.f32", Plan("a = P(a, 0x80000000, 0x7f800000), h(__float2half_rn(F(a)))", 32, 16, 2)),
        ("max.NaN.f16x2", Plan("h(__hmax_nan(H(a), H(b)))", 16, 16, 2)),
        ("cvt.rz.satfinite.e4m3x2.f32", None),
    ],
)
def test_calls(text: str, expected: Plan | None) -> None:
    assert plan(_cases()[text]) == expected


def test_lanes_come_apart_the_lowest_first() -> None:
    case = _cases()["cvt.rn.f16x2.f32"]
    host_plan = plan(case)
    assert host_plan is not None
    operands = np.zeros((2, 1, 2), np.uint64)
    operands[:, 0, 0] = 0x11111111, 0x22222222
    assert [int(first[0]) for first, _ in lanes(case, host_plan, operands)] == [0x22222222, 0x11111111]
