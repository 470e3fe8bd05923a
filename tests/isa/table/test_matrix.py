"""Facts of the tensor-core rows that are easy to get wrong: fragment sizes, targets, optional operands."""

from __future__ import annotations

import pytest

from tests.isa.spelling import legal, matches, operands


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "sm_70", "6.2", False),
        ("wmma.mma.sync.row.col.m16n16k16.f32.f32", "sm_70", "6.2", True),
        ("wmma.mma.sync.row.col.m16n16k16.f32.f32", "sm_70", "6.3", False),
        ("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sm_75", "6.5", True),
        ("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32", "sm_80", None, False),
        ("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f32", "sm_80", None, False),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "sm_100a", None, False),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32", "sm_121f", None, True),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.b8", "sm_90a", None, False),
        ("ldmatrix.sync.aligned.m16n16.x1.b8", "sm_100a", None, False),
        ("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8", "sm_90a", None, False),
        ("wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16", "sm_90", None, False),
        ("tcgen05.mma.cta_group::1.kind::i8", "sm_100f", None, False),
        ("tcgen05.mma.cta_group::1.kind::i8", "sm_110a", None, True),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16", "sm_103f", None, True),
        ("tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X", "sm_103f", None, False),
        ("tcgen05.mma.sp.cta_group::1.kind::mxf4.block_scale", "sm_100f", None, False),
        ("tcgen05.mma.ws.cta_group::2.kind::f16", "sm_100a", None, False),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32", "sm_100a", None, False),
        ("tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32", "sm_103a", "8.8", True),
        ("tcgen05.ld.sync.aligned.16x256b.x64.b32", "sm_100a", None, False),
        ("tcgen05.cp.cta_group::1.64x128b", "sm_100a", None, False),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


@pytest.mark.parametrize(
    ("spelling", "counts"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", [4, 4, 2, 4]),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16", [8, 2, 2, 4]),
        ("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", [4, 8, 4, 4]),
        ("mma.sp.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32", [4, 2, 2, 4, 0, 0]),
        ("wmma.mma.sync.aligned.row.col.m8n32k16.s32.s8.s8.s32", [8, 1, 4, 8]),
        ("wmma.load.b.sync.aligned.col.m32n8k16.bf16", [2, 0, 0]),
        ("tcgen05.ld.sync.aligned.16x128b.x64.b32", [128, 0]),
        ("tcgen05.ld.spcompress.sync.aligned.32x32b.x128.max.sp::2:4.f32.b2", [4, 64, 0]),
        ("ldmatrix.sync.aligned.m16n16.x2.trans.b8x16.b4x16_p64", [4, 0]),
    ],
)
def test_how_many_registers_a_fragment_takes(spelling: str, counts: list[int]) -> None:
    assert [operand.count for operand in matches(spelling)[0].signatures[0]] == counts


def test_a_wgmma_accumulator_follows_the_columns() -> None:
    first, second = matches("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
    assert first.signatures[0][0].count == second.signatures[0][0].count == 128
    assert (first.signatures[0][1].count, second.signatures[0][1].count) == (0, 4)
    assert len(first.signatures[0]) == len(second.signatures[0]) + 1


def test_disabled_lanes_are_four_words_for_each_cta() -> None:
    for group, words in ((1, 4), (2, 8)):
        text = operands(f"tcgen05.mma.cta_group::{group}.kind::f16")
        assert f"[d:.u32], a:.u64, b:.u64, idesc:.u32, {{disabled x{words}}}:.u32, accumulate:.pred, scale" in text
        assert "[d:.u32], [a:.u32], b:.u64, idesc:.u32, accumulate:.pred" in text


def test_a_sparse_product_reads_its_metadata() -> None:
    assert "[d:.u32], a:.u64, b:.u64, [meta:.u32], idesc:.u32, accumulate:.pred" in operands(
        "tcgen05.mma.sp.cta_group::1.kind::f16"
    )


def test_long_choices_match_when_reordered() -> None:
    (match, _) = matches("tcgen05.mma.cta_group::1.block_scale.scale_vec::1X.kind::mxf8f6f4")
    assert match.canonical == ("mma", "cta_group::1", "kind::mxf8f6f4", "block_scale", "scale_vec::1X")
