"""Facts of texture, surface and control flow instructions that are easy to get wrong."""

from __future__ import annotations

import pytest

from pyptx.isa.model import Kind
from tests.isa.spelling import legal, matches

LEGAL = (
    ("tex.1d.v4.f32.s32", "sm_75", None),
    ("tex.1d.v2.f16x2.f32", "sm_75", None),
    ("tex.level.acube.v4.u32.f32", "sm_75", None),
    ("tex.grad.cube.v4.f32.f32", "sm_75", None),
    ("tex.base.a2dms.v4.s32.s32", "sm_75", None),
    ("tld4.g.cube.v4.s32.f32", "sm_75", None),
    ("txq.level.depth.b32", "sm_75", None),
    ("suld.b.a2d.cs.v2.b64.zero", "sm_75", None),
    ("sust.p.3d.v4.b32.clamp", "sm_75", None),
    ("sured.b.min.2d.s64.trap", "sm_75", "8.1"),
    ("brx.idx.uni", "sm_75", None),
    ("call.uni", "sm_75", None),
)

ILLEGAL = (
    "tex.cube.v4.f32.s32",
    "tex.2dms.v4.f32.f32",
    "tex.level.2dms.v4.s32.s32",
    "tex.1d.v2.f32.f32",
    "tex.1d.v4.b32.f32",
    "tex.1d.base.v4.f32.s32",
    "tld4.r.1d.v4.f32.f32",
    "tld4.r.2d.v4.f16.f32",
    "txq.level.array_size.b32",
    "suld.b.1d.b32",
    "suld.b.1d.v4.b64.trap",
    "suld.p.1d.b32.trap",
    "sust.p.1d.b16.trap",
    "sured.p.add.1d.b64.trap",
    "sured.b.xor.1d.b32.trap",
    "exit.uni",
    "brx.uni",
)


@pytest.mark.parametrize(("spelling", "target", "ptx"), LEGAL)
def test_legal(spelling: str, target: str | None, ptx: str | None) -> None:
    assert legal(spelling, target, ptx)


@pytest.mark.parametrize("spelling", ILLEGAL)
def test_illegal(spelling: str) -> None:
    assert not legal(spelling)


def test_offset_and_depth_are_optional_and_the_predicate_is_newer() -> None:
    spellings = matches("tex.2d.v4.f32.f32")
    assert {len(s) for match in spellings for s in match.signatures} == {2, 3, 4}
    residency = [m for m in spellings if m.signatures[0][0].kind is Kind.PIPE]
    assert residency
    assert all(match.needs[0].since[0][1] == (7, 1) for match in residency)


def test_a_call_has_eight_shapes() -> None:
    assert sorted(len(s) for match in matches("call") for s in match.signatures) == [1, 2, 2, 2, 3, 3, 3, 4]
