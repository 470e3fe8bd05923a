"""`check="numerics"`: NaN and infinity that originate in matrix products, but not those that products propagate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.tensormap import Swizzle
from tests.sim import tensor as t
from tests.sim.kernels import kernel
from tests.sim.semantics.test_tcgen05_mma import A_AT, COLUMN, SPACE, descriptor, instruction

ONE, TWO, LARGE, INF, ZERO = 0x3F80, 0x4000, 0x7F62, 0x7F80, 0
"""bf16: 1, 2, 3e38, infinity, 0."""

MMA = """.reg .f32 %d<4>, %e<4>;
mov.b32 %r1, {a}; mov.b32 %r2, {a}; mov.b32 %r3, {b};
setp.eq.u32 %p1, %t, 33; @%p1 mov.b32 %r1, {special};
mov.f32 %e0, {c}; mov.f32 %e1, {c}; mov.f32 %e2, {c}; mov.f32 %e3, {c};
mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32
    {{%d0, %d1, %d2, %d3}}, {{%r1, %r2}}, {{%r3}}, {{%e0, %e1, %e2, %e3}};"""


def pair(low: int, high: int | None = None) -> str:
    return hex((low if high is None else high) << 16 | low)


def mma(a: int, b: int, *, special: str | None = None, c: str = "0f00000000") -> list[Finding]:
    """Multiply constants in two warps; lane 1 of the second warp may have a special value in its first register of
    A."""
    body = MMA.format(a=pair(a), b=pair(b), special=special or pair(a), c=c)
    out = np.zeros(64, np.int32)
    return sim.run(parse(kernel(body)), "k", block=64, args=(out,), check="numerics").hazards


def test_a_product_of_warps_overflows() -> None:
    (finding,) = mma(LARGE, LARGE)
    assert (finding.rule.code, finding.count, finding.place.text) == (
        "PTX0993", 2 * 16 * 8, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
    )  # fmt: skip
    assert "c = 0.0, largest a of the warp = 3.00" in finding.what
    assert "the result is inf in element 0 of D" in finding.what
    assert str(finding.agent) == "CTA 0 warp 0 lane 0"


@pytest.mark.parametrize("to", ["f16", "f32"])
@pytest.mark.parametrize("start", ["f16", "f32"])
def test_a_product_of_fragments_overflows_in_half_precision(to: str, start: str) -> None:
    size = {"f16": 4, "f32": 8}
    d, x = ", ".join(f"%d{index}" for index in range(size[to])), ", ".join(["%x"] * 8)
    c = ", ".join(["%c"] * size[start])
    body = f""".reg .b32 %d<8>, %c, %x; mov.b32 %c, 0; mov.b32 %x, 0x7BFF7BFF;
wmma.mma.sync.aligned.row.col.m16n16k16.{to}.{start} {{{d}}}, {{{x}}}, {{{x}}}, {{{c}}};"""
    hazards = sim.run(parse(kernel(body)), block=32, args=(np.zeros(32, np.int32),), check="numerics").hazards
    expected = [("PTX0993", 256)] if to == "f16" else []
    assert [(finding.rule.code, finding.count) for finding in hazards] == expected


def test_one_warp_overflows() -> None:
    (finding,) = mma(ONE, TWO, special=pair(LARGE, 0))
    assert (finding.rule.code, finding.count, str(finding.agent)) == ("PTX0993", 8, "CTA 0 warp 1 lane 0")


def test_infinity_in_a_product_is_handed_on_and_zero_times_infinity_is_not() -> None:
    assert mma(ONE, ONE, special=pair(INF, ONE)) == []
    (finding,) = mma(ONE, ZERO, special=pair(INF, ONE))
    assert (finding.rule.code, finding.count) == ("PTX0992", 8)
    assert mma(ONE, ZERO, special=pair(0x7FC0, INF)) == []


def test_an_infinite_accumulator_is_handed_on() -> None:
    assert mma(ONE, ONE, c="0f7F800000") == []
    assert mma(LARGE, LARGE, c="0f7F800000") == []
    assert mma(ONE, ONE, c="0f7F000000") == []


HALVES = """mov.b32 %r1, 0x5C005C00; mov.b32 %r2, {c};
mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16
    {{%r3, %r4}}, {{%r1, %r1, %r1, %r1}}, {{%r1, %r1}}, {{%r2, %r2}};"""
DOUBLES = """.reg .f64 %d<9>; mov.f64 %d1, {a}; mov.f64 %d2, {c};
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {{%d3, %d4}}, {{%d1}}, {{%d1}}, {{%d2, %d2}};"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (HALVES.format(c=0), [("PTX0993", 16 * 8)]), (HALVES.format(c="0x7C000000"), [("PTX0993", 8 * 8)]),
        (HALVES.format(c="0xFC00FC00"), []), (HALVES.format(c="0x7FFF7FFF"), []),
        (DOUBLES.format(a="0d5FF0000000000000", c="0d0000000000000000"), [("PTX0993", 64)]),
        (DOUBLES.format(a="0d3FF0000000000000", c="0d7FF0000000000000"), []),
    ],
)  # fmt: skip
def test_halves_and_doubles(body: str, expected: list[tuple[str, int]]) -> None:
    out = np.zeros(32, np.int32)
    hazards = sim.run(parse(kernel(body)), "k", block=32, args=(out,), check="numerics").hazards
    assert [(finding.rule.code, finding.count) for finding in hazards] == expected


SCALED = """.version 8.7
.target sm_120a
.address_size 64
.visible .entry k()
{{
.reg .f32 %d<4>; .reg .b32 %r<4>;
mov.f32 %d0, 0f00000000; mov.f32 %d1, %d0; mov.f32 %d2, %d0; mov.f32 %d3, %d0;
mov.b32 %r0, 0x44444444; mov.b32 %r1, {values}; mov.b32 %r2, {first}; mov.b32 %r3, {second};
{form}.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0
    {{%d0, %d1, %d2, %d3}}, {{%r1, %r1, %r1, %r1}}, {b}, {{%d0, %d1, %d2, %d3}},
    {meta} %r2, {{0, 0}}, %r3, {{0, 0}};
ret;
}}"""
FORMS = {
    "dense": ("mma.sync.aligned.m16n8k32", "{%r1, %r1}", ""),
    "sparse": ("mma.sp::ordered_metadata.sync.aligned.m16n8k64", "{%r1, %r1, %r1, %r1}", "%r0, 0,"),
}


@pytest.mark.parametrize("form", FORMS)
def test_scale_factors_that_are_nan_are_operands(form: str) -> None:
    name, b, meta = FORMS[form]

    def multiply_scaled(values: int, first: int, second: int) -> list[str]:
        text = SCALED.format(form=name, b=b, meta=meta, values=values, first=first, second=second)
        return [finding.rule.code for finding in sim.run(parse(text), block=32, check="numerics").hazards]

    assert multiply_scaled(0x38383838, 0x7F7F7F7F, 0x7F7F7F7F) == []
    assert multiply_scaled(0x38383838, 0xFFFFFFFF, 0x7F7F7F7F) == []
    assert multiply_scaled(0x38383838, 0x7F7F7F7F, 0xFFFFFFFF) == []
    assert multiply_scaled(0x38383838, 0xFEFEFEFE, 0xFEFEFEFE) == ["PTX0993"]
    assert multiply_scaled(0x7F7F7F7F, 0x7F7F7F7F, 0x7F7F7F7F) == []


WGMMA = """.shared .align 1024 .b8 box[8192];
.reg .f32 %d<4>; .reg .b32 %box, %at;
mov.u32 %box, box; mad.lo.u32 %at, %t, 64, %box;
mov.b32 %r1, {a}; mov.b32 %r2, {b}; setp.ge.u32 %p1, %t, 64; @%p1 mov.b32 %r1, %r2;
{stores}
setp.eq.u32 %p1, %t, 0; @%p1 st.shared.b32 [%at], {special};
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %r3, %box, 4; cvt.u64.u32 %rd1, %r3; or.b64 %rd1, %rd1, 0x0000001000080000; add.u64 %rd2, %rd1, 256;
mov.f32 %d0, {c}; mov.f32 %d1, {c}; mov.f32 %d2, {c}; mov.f32 %d3, {c};
setp.ne.u32 %p1, %t, 999; setp.eq.u32 %p2, %t, {keeps};
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%d0, %d1, %d2, %d3}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%d0, %d1, %d2, %d3}}, %rd1, %rd2, %p1, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{after}"""


def wgmma(
    a: int, b: int, *, special: str | None = None, c: str = "0f00000000", after: str = "", **options: Any
) -> list[Finding]:
    """Multiply twice. The first half of the box is A, the second B; the first two elements of A may be special."""
    stores = " ".join(f"st.shared.b32 [%at+{index}], %r1;" for index in range(0, 64, 4))
    body = WGMMA.format(a=pair(a), b=pair(b), special=special or pair(a), c=c, stores=stores, after=after, keeps=999)
    out = np.zeros(128, np.int32)
    return sim.run(parse(kernel(body)), "k", block=128, args=(out,), check="all,numerics", **options).hazards


def test_a_first_product_that_adds_to_unwritten_sums_is_told_of_scale_d() -> None:
    text = kernel(WGMMA.format(a=1, b=1, c=0, keeps=999, special=1, stores="", after=""))
    lines = [line.replace("%p1, 1, 1", "1, 1, 1") for line in text.splitlines() if not line.startswith("mov.f32 %d0")]
    result = sim.run(parse("\n".join(lines)), block=128, args=(np.zeros(128, np.int32),), on_hazard="report")
    findings = [finding for finding in result.hazards if finding.rule.code == "PTX0911"]
    assert ["`scale-d`" in finding.help for finding in findings] == [True]


def test_a_product_of_a_warpgroup_overflows_once() -> None:
    finding, = wgmma(LARGE, LARGE)  # fmt: skip
    assert (finding.rule.code, finding.count, str(finding.agent)) == ("PTX0993", 64 * 8, "CTA 0 warp 0 lane 0")
    assert finding.what.startswith("largest of the row of a = 3.00")
    assert finding.what.endswith("the result is inf in row 0, column 0 of D")


def test_accumulators_of_a_warpgroup_hand_on_what_they_hold() -> None:
    assert wgmma(ONE, ONE, c="0f7F800000") == []
    (finding,) = wgmma(LARGE, ONE, c="0f7F7FFFFF")
    assert (finding.rule.code, finding.count) == ("PTX0993", 64 * 8)


def test_the_rows_of_a_warpgroup_are_judged_by_themselves() -> None:
    assert wgmma(ONE, ONE, special=pair(ONE, INF)) == []
    (finding,) = wgmma(ONE, ZERO, special=pair(ONE, INF))
    assert (finding.rule.code, finding.count) == ("PTX0992", 8)
    (finding,) = wgmma(LARGE, LARGE, special=pair(LARGE, INF))
    assert (finding.rule.code, finding.count) == ("PTX0993", 63 * 8)
    assert "row 1, column 0" in finding.what


def tcgen05(
    a: int, b: int, *, special: int | None = None, start: float = 0.0, accumulates: bool = False, ctas: int = 1,
    schedule: str = "eager",
) -> list[str]:  # fmt: skip
    """Multiply twice in tensor memory; column COLUMN + 3 of lane 5 starts with another number."""
    m, n = 128, 16
    x, y = np.full((m, 16), a, "u2"), np.full((n, 16), b, "u2")
    if special is not None:
        x[7, 2] = special
    shared, tensor = np.zeros((1, SPACE), "u1"), np.zeros((1, 128, 512), "u4")
    tensor[0, 5, COLUMN + 3] = np.float32(start).view("u4")
    first, second = t.place(shared[0], A_AT, x, Swizzle.B32), t.place(shared[0], 0, y, Swizzle.B32)
    bits = descriptor("f16", m, n, ("bf16", "bf16"), "f32")
    text = instruction(
        "tcgen05.mma.cta_group::1.kind::f16", bits, str(first), second, count=2, use="%yes" if accumulates else "%never"
    )
    options: Any = {"check": "strict,numerics", "clusters": ctas, "schedule": schedule}
    try:
        t.run(text, shared.repeat(ctas, 0), tensor.repeat(ctas, 0), **options)
    except PtxError as error:
        return [f"{d.code} {d.message}" for d in error.diagnostics]
    return []


def test_a_product_in_tensor_memory_overflows_once() -> None:
    (finding,) = tcgen05(LARGE, LARGE)
    assert finding.startswith("PTX0993 infinity first produced here: largest of the row of a = 3.00")
    assert finding.endswith("the result is inf in row 0, column 0 of D (2048 times)")


def test_products_of_several_ctas_overflow() -> None:
    assert tcgen05(ONE, ONE, ctas=3) == []
    (finding,) = tcgen05(LARGE, LARGE, ctas=3)
    assert finding.endswith("the result is inf in row 0, column 0 of D (6144 times)")


@pytest.mark.parametrize("issuer", [0, 1])
def test_a_product_of_a_pair_overflows_in_the_first_cta(issuer: int) -> None:
    m, n = 256, 32
    shared, tensor = np.zeros((2, SPACE), "u1"), np.zeros((2, 128, 512), "u4")
    first = second = 0
    for cta, a in enumerate((LARGE, ZERO)):
        first = t.place(shared[cta], A_AT, np.full((m // 2, 16), a, "u2"), Swizzle.B32)
        second = t.place(shared[cta], 0, np.full((n // 2, 16), LARGE, "u2"), Swizzle.B32)
    bits = descriptor("f16", m, n, ("bf16", "bf16"), "f32")
    text = instruction("tcgen05.mma.cta_group::2.kind::f16", bits, str(first), second)
    with pytest.raises(PtxError, match=r"is inf in row 0, column 0 of D \(4096 times\)"):
        t.run(text, shared, tensor, check="strict,numerics", issuer=issuer)


def test_rows_in_tensor_memory_are_judged_by_themselves() -> None:
    assert tcgen05(ONE, ONE, special=INF) == []
    assert tcgen05(ONE, ONE) == []
    (finding,) = tcgen05(ONE, ZERO, special=INF)
    assert finding.startswith("PTX0992")
    assert finding.endswith("nan in row 7, column 0 of D (16 times)")


@pytest.mark.parametrize("accumulates", [True, False])
def test_accumulators_in_tensor_memory_hand_on_what_they_hold(accumulates: bool) -> None:
    assert tcgen05(ONE, ONE, start=np.inf, accumulates=accumulates) == []
    (finding,) = tcgen05(LARGE, LARGE, start=np.inf, accumulates=accumulates)
    assert finding.endswith(f"of D ({2047 if accumulates else 2048} times)")


@pytest.mark.parametrize("schedule", ["lazy", "random", "adversarial"])
def test_products_that_would_land_late_are_judged_alike(schedule: str) -> None:
    assert wgmma(LARGE, LARGE, schedule=schedule) == wgmma(LARGE, LARGE)
    assert tcgen05(LARGE, LARGE, schedule=schedule) == tcgen05(LARGE, LARGE)
