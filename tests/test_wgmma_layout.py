"""wgmma layouts against the manual's canonical layouts, written out here as CuTe shapes and strides."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.types import PtxType, bf16, e4m3, tf32
from pyptx.wgmma_layout import GmmaLayout, LayoutType, Major, layout_for_a, layout_for_b, pick_gmma_layout

PICKED = [
    (2, 64, 64, Major.K, LayoutType.B128, (16, 1024)),
    (2, 64, 32, Major.K, LayoutType.B64, (16, 512)),
    (2, 64, 16, Major.K, LayoutType.B32, (16, 256)),
    (2, 64, 8, Major.K, LayoutType.INTERLEAVE, (1024, 128)),
    (2, 128, 256, Major.K, LayoutType.B128, (16, 1024)),
    (1, 64, 128, Major.K, LayoutType.B128, (16, 1024)),
    (4, 64, 8, Major.K, LayoutType.B32, (16, 256)),
    (2, 64, 64, Major.MN, LayoutType.B128, (8192, 1024)),
    (2, 256, 64, Major.MN, LayoutType.B128, (8192, 1024)),
    (2, 32, 16, Major.MN, LayoutType.B64, (1024, 512)),
    (2, 16, 16, Major.MN, LayoutType.B32, (512, 256)),
    (2, 8, 16, Major.MN, LayoutType.INTERLEAVE, (128, 256)),
]


@pytest.mark.parametrize(("size", "m_or_n", "k", "major", "kind", "strides"), PICKED)
def test_the_layout_follows_the_bytes_of_a_row(
    size: int, m_or_n: int, k: int, major: Major, kind: LayoutType, strides: tuple[int, int]
) -> None:
    layout = pick_gmma_layout(elem_bytes=size, m_or_n=m_or_n, k=k, major=major)
    assert (layout.layout_type, layout.swizzle_code) == (kind, int(kind))
    assert (layout.leading_byte_offset, layout.stride_byte_offset) == strides
    names = {LayoutType.B128: "128B", LayoutType.B64: "64B", LayoutType.B32: "32B", LayoutType.INTERLEAVE: None}
    assert layout.smem_swizzle == names[kind]
    assert layout.tma_swizzle == names[kind] or (layout.tma_swizzle == "NONE" and names[kind] is None)


def test_codes_are_the_descriptors_and_the_instructions() -> None:
    assert [int(kind) for kind in (LayoutType.INTERLEAVE, LayoutType.B128, LayoutType.B64, LayoutType.B32)] == [
        0,
        1,
        2,
        3,
    ]
    assert (int(Major.K), int(Major.MN)) == (0, 1)


def test_a_is_k_major_and_b_is_mn_major() -> None:
    assert layout_for_a(dtype=bf16, m=64, k=64) == pick_gmma_layout(elem_bytes=2, m_or_n=64, k=64, major=Major.K)
    assert layout_for_b(dtype="bf16", k=64, n=32) == pick_gmma_layout(elem_bytes=2, m_or_n=32, k=64, major=Major.MN)
    assert layout_for_a(dtype="b1", m=64, k=256).layout_type is LayoutType.B32


@pytest.mark.parametrize(("k", "message"), [(48, "96 bytes"), (96, "192 bytes"), (4, "8 bytes"), (0, "0 bytes")])
def test_another_width_is_an_error_naming_the_allowed_ones(k: int, message: str) -> None:
    with pytest.raises(
        ValueError,
        match=f"{message}, but an operand .* K-major has rows of 16, 32, 64 or .* \\(8, 16, 32, a multiple of 64 elem",
    ):
        layout_for_a(dtype=bf16, m=64, k=k)


def test_the_allowed_widths_are_given_in_elements() -> None:
    with pytest.raises(ValueError, match=r"100 bytes, but .* \(16, 32, 64, a multiple of 128 elements\)"):
        layout_for_a(dtype=e4m3, m=64, k=100)


def test_rows_come_in_eights() -> None:
    for k in (12, 0, 4):
        with pytest.raises(ValueError, match=f"a multiple of 8 rows, got {k}"):
            layout_for_b(dtype=bf16, k=k, n=64)


@pytest.mark.parametrize("value", [Major.K, 0, "K", "k"])
def test_major_is_given_by_member_number_or_name(value: Major | int | str) -> None:
    assert Major.of(value) is Major.K


def test_an_unknown_major_is_an_error() -> None:
    assert {Major.of(value) for value in (Major.MN, 1, "MN", "m", "N")} == {Major.MN}
    for value in (2, "row"):
        with pytest.raises(ValueError, match="K-major or MN-major"):
            Major.of(value)


# Atom width in 16-byte units and how many line bits the swizzle reads: Swizzle<bits, 4, 3> of the manual's table.
ATOM = {LayoutType.INTERLEAVE: (1, 0), LayoutType.B32: (2, 1), LayoutType.B64: (4, 2), LayoutType.B128: (8, 3)}


def canonical(layout: GmmaLayout, major: Major, bits: int, mn: int, k: int) -> int:
    """Return the byte offset of element (mn, k) by the table of canonical layouts: T elements make 16 bytes, strides in
    bytes."""
    t, size = 128 // bits, bits // 8
    units, swizzle_bits = ATOM[layout.layout_type]
    lbo, sbo = layout.leading_byte_offset, layout.stride_byte_offset
    if layout.layout_type is LayoutType.INTERLEAVE:
        if major is Major.K:
            plain = mn % 8 * 16 + mn // 8 * sbo + k % t * size + k // t * lbo
        else:
            plain = mn % t * size + mn // t * sbo + k % 8 * 16 + k // 8 * lbo
    elif major is Major.K:
        plain = mn % 8 * units * 16 + mn // 8 * sbo + k * size
    else:
        plain = mn % (t * units) * size + mn // (t * units) * lbo + k % 8 * units * 16 + k // 8 * sbo
    chunk_row = plain >> 7 & ((1 << swizzle_bits) - 1)
    return plain ^ chunk_row << 4


@pytest.mark.parametrize("dtype", [bf16, tf32, e4m3], ids=str)
@pytest.mark.parametrize("major", Major, ids=lambda m: m.name)
@pytest.mark.parametrize("row_bytes", [16, 32, 64, 128, 256])
def test_offsets_follow_the_canonical_layout(dtype: PtxType, major: Major, row_bytes: int) -> None:
    width, rows, size = row_bytes * 8 // dtype.bits, 24, dtype.bits // 8
    mn_size, k_size = (rows, width) if major is Major.K else (width, rows)
    layout = pick_gmma_layout(elem_bytes=size, m_or_n=mn_size, k=k_size, major=major)
    # A K-major descriptor covers at most one stripe: the next stripe needs another start address.
    stripe = layout.layout_type.row_bytes // size if major is Major.K else width
    for row, column in product(range(rows), range(width)):
        offset = layout.offset(row, column * size)
        mn, k = (row, column % stripe) if major is Major.K else (column, row)
        start = column // stripe * layout.stripe_bytes if layout.layout_type is LayoutType.B128 else 0
        if layout.layout_type is LayoutType.INTERLEAVE and major is Major.K:
            k = column
        assert offset == start + canonical(layout, major, dtype.bits, mn, k)


@given(st.sampled_from([16, 32, 64, 128, 256, 384]), st.integers(1, 6), st.sampled_from(Major))
def test_a_tile_fills_its_bytes_exactly_once(row_bytes: int, eights: int, major: Major) -> None:
    rows = 8 * eights
    m_or_n, k = (rows, row_bytes) if major is Major.K else (row_bytes, rows)
    layout = pick_gmma_layout(elem_bytes=1, m_or_n=m_or_n, k=k, major=major)
    assert layout.stripes * layout.stripe_bytes == rows * row_bytes
    offsets = sorted(layout.offset(r, b) for r in range(rows) for b in range(0, row_bytes, 16))
    assert offsets == list(range(0, rows * row_bytes, 16))
