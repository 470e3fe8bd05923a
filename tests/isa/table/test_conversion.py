"""Facts of cvt that are easy to get wrong."""

from __future__ import annotations

import pytest

from tests.isa.spelling import legal, matches

LEGAL = (
    ("cvt.u32.u64", "sm_75", None),
    ("cvt.sat.u8.s32", "sm_75", None),
    ("cvt.rni.ftz.sat.s8.f32", "sm_75", None),
    ("cvt.rzi.f64.f64", "sm_75", None),
    ("cvt.rn.relu.satfinite.bf16x2.f32", "sm_80", "8.1"),
    ("cvt.rn.satfinite.f16.f32", "sm_75", "8.1"),
    ("cvt.f32.bf16", "sm_80", "7.1"),
    ("cvt.rn.bf16.u8", "sm_90", "7.8"),
    ("cvt.rna.tf32.f32", "sm_80", "7.0"),
    ("cvt.rn.satfinite.tf32.f32", "sm_100", "8.6"),
    ("cvt.rn.satfinite.e4m3x2.f32", "sm_89", "8.1"),
    ("cvt.rn.satfinite.e2m1x2.f32", "sm_120a", "8.7"),
    ("cvt.rn.satfinite.relu.e3m2x2.bf16x2", "sm_120f", "9.1"),
    ("cvt.rs.relu.satfinite.e2m1x4.f32", "sm_103a", "8.8"),
    ("cvt.rp.ue8m0x2.bf16x2", "sm_100f", "8.8"),
    ("cvt.rn.satfinite.scaled::n2::ue8m0.s2f6x2.f32", "sm_110a", "9.1"),
    ("cvt.rn.relu.scaled::n2::ue8m0.bf16x2.e5m2x2", "sm_100f", "9.2"),
    ("cvt.rz.satfinite.e4m3x2.f32", "sm_107f", "9.4"),
    ("cvt.pack.sat.s2.s32.b32", "sm_75", None),
)

ILLEGAL = (
    ("cvt.sat.u32.u16", None, None),
    ("cvt.rn.u32.u64", None, None),
    ("cvt.s32.f32", None, None),
    ("cvt.f32.s32", None, None),
    ("cvt.f32.f64", None, None),
    ("cvt.rn.f32.f16", None, None),
    ("cvt.ftz.f64.f16", None, None),
    ("cvt.rn.bf16.u8", "sm_80", None),
    ("cvt.rz.satfinite.e4m3x2.f32", "sm_103a", None),
    ("cvt.rn.e4m3x2.f32", None, None),
    ("cvt.rn.f32.e4m3x2", None, None),
    ("cvt.rs.f16x2.f32", "sm_120a", None),
    ("cvt.rn.satfinite.e4m3x2.f32", "sm_89", "8.0"),
    ("cvt.rn.satfinite.s2f6x2.f32", "sm_100f", None),
    ("cvt.pack.sat.u16.s32.b32", None, None),
)


@pytest.mark.parametrize(("spelling", "target", "ptx"), LEGAL)
def test_legal(spelling: str, target: str | None, ptx: str | None) -> None:
    assert legal(spelling, target, ptx)


@pytest.mark.parametrize(("spelling", "target", "ptx"), ILLEGAL)
def test_illegal(spelling: str, target: str | None, ptx: str | None) -> None:
    assert not legal(spelling, target, ptx)


def operand_types(spelling: str) -> list[tuple[str | None, int, bool]]:
    return [(o.type, o.count, o.widenable) for o in matches(spelling)[0].signatures[0]]


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("cvt.u16.s32", [("u16", 0, True), ("s32", 0, True)]),
        ("cvt.rn.bf16.f32", [("bf16", 0, False), ("f32", 0, False)]),
        ("cvt.rn.f16x2.f32", [("f16x2", 0, True), ("f32", 0, True), ("f32", 0, True)]),
        ("cvt.rs.satfinite.e2m1x4.f32", [("e2m1x4", 0, False), ("f32", 4, False), ("u32", 0, False)]),
        ("cvt.rn.f16x2.e2m1x2", [("f16x2", 0, False), ("b8", 0, False)]),
    ],
)
def test_operands(spelling: str, expected: list[tuple[str | None, int, bool]]) -> None:
    assert operand_types(spelling) == expected


def test_a_scale_operand_comes_with_its_modifier() -> None:
    assert [len(s) for s in matches("cvt.rn.bf16x2.e4m3x2")[0].signatures] == [2]
    assert [len(s) for s in matches("cvt.rn.scaled::n2::ue8m0.bf16x2.e4m3x2")[0].signatures] == [3]
