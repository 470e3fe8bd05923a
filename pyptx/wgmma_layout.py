"""Canonical shared-memory layouts of `wgmma` operands: the swizzle of a tile and the strides of its descriptor.

A tile consists of stripes, one after the other: each holds up to one swizzle span (128, 64, 32 bytes; 16 without
swizzle) of every row, row by row. PTX manual, "Asynchronous Warpgroup Level Canonical Layouts".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pyptx.types import PtxType, from_name

ROWS = 8
"""Rows of a core matrix: eight rows of 16 bytes."""


class LayoutType(IntEnum):
    """The layout as encoded in bits 62–63 of a wgmma descriptor."""

    INTERLEAVE = 0
    B128 = 1
    B64 = 2
    B32 = 3

    @property
    def row_bytes(self) -> int:
        """The number of contiguous bytes of a row in one stripe."""
        return _ROW_BYTES[self]


class Major(IntEnum):
    """Which dimension is contiguous; the value is the transpose immediate of `wgmma`."""

    K = 0
    MN = 1

    @classmethod
    def of(cls, value: Major | int | str) -> Major:
        """Return the member for `"K"`, `"MN"`, `"M"`, `"N"` (any case), 0 or 1."""
        name = {"M": "MN", "N": "MN"}.get(value.upper(), value.upper()) if isinstance(value, str) else value
        for member in cls:
            if name in (member.name, member.value):
                return member
        raise ValueError(f"a wgmma operand must be K-major or MN-major, got {value!r}")


_ROW_BYTES = {LayoutType.INTERLEAVE: 16, LayoutType.B32: 32, LayoutType.B64: 64, LayoutType.B128: 128}
_NAMES = {LayoutType.INTERLEAVE: "NONE", LayoutType.B32: "32B", LayoutType.B64: "64B", LayoutType.B128: "128B"}


@dataclass(frozen=True, slots=True)
class GmmaLayout:
    """Layout and strides (bytes) for the descriptor; `tma_swizzle` is the same swizzle for a tensor map, `smem_swizzle`
    for `smem.alloc` (None without one). The tile has `stripes` stripes, `stripe_bytes` apart."""

    layout_type: LayoutType
    leading_byte_offset: int
    stride_byte_offset: int
    tma_swizzle: str
    smem_swizzle: str | None
    stripes: int = 1
    stripe_bytes: int = 0

    @property
    def swizzle_code(self) -> int:
        """Bits 62–63 of the descriptor."""
        return int(self.layout_type)

    def k_offset(self, k: int, bits: int, major: Major) -> int:
        """Return the byte offset of element `k` along K from the start of the tile; elements have `bits` bits. A
        descriptor that starts there reads from this K on."""
        width = self.layout_type.row_bytes
        if major is Major.MN:
            return k * width
        stripe, byte = divmod(k * bits // 8, width)
        return stripe * self.stripe_bytes + byte

    def offset(self, row: int, byte: int) -> int:
        """Return the swizzled offset of byte `byte` in row `row` from the start of the tile. Rows run along M or N for
        a K-major tile, along K for an MN-major one."""
        width = self.layout_type.row_bytes
        plain = byte // width * self.stripe_bytes + row * width + byte % width
        return plain ^ (plain >> 3 & (width - 16))


def pick_gmma_layout(*, elem_bytes: int, m_or_n: int, k: int, major: Major) -> GmmaLayout:
    """Return the layout of a tile whose rows (K elements, or M or N elements if MN-major) are 16, 32, 64 or a multiple
    of 128 bytes; ValueError with these widths for any other."""
    return _pick_layout(elem_bytes * 8, m_or_n, k, Major.of(major))


def layout_for_a(*, dtype: PtxType | str, m: int, k: int) -> GmmaLayout:
    """Return the layout of a K-major (M, K) tile."""
    return _pick_layout(_get_bits(dtype), m, k, Major.K)


def layout_for_b(*, dtype: PtxType | str, k: int, n: int) -> GmmaLayout:
    """Return the layout of an MN-major (K, N) tile."""
    return _pick_layout(_get_bits(dtype), n, k, Major.MN)


def _get_bits(dtype: PtxType | str) -> int:
    return (from_name(dtype) if isinstance(dtype, str) else dtype).bits


def _pick_layout(bits: int, m_or_n: int, k: int, major: Major) -> GmmaLayout:
    rows, width = (m_or_n, k) if major is Major.K else (k, m_or_n)
    row_bits = width * bits
    kind = next((t for t in LayoutType if t.row_bytes * 8 == row_bits), None)
    if kind is None and row_bits and row_bits % 1024 == 0:
        kind = LayoutType.B128
    if kind is None:
        raise ValueError(
            f"rows of {width} elements of {bits} bits are {row_bits / 8:g} bytes, but an operand of wgmma that is "
            f"{major.name}-major has rows of 16, 32, 64 or a multiple of 128 bytes "
            f"({', '.join(_list_widths(bits))} elements)"
        )
    if rows < ROWS or rows % ROWS:
        raise ValueError(f"an operand of wgmma that is {major.name}-major needs a multiple of {ROWS} rows, got {rows}")
    stripe = rows * kind.row_bytes
    leading, stride = _compute_strides(kind, major, stripe)
    return GmmaLayout(
        kind,
        leading_byte_offset=leading,
        stride_byte_offset=stride,
        tma_swizzle=_NAMES[kind],
        smem_swizzle=None if kind is LayoutType.INTERLEAVE else _NAMES[kind],
        stripes=row_bits // 8 // kind.row_bytes,
        stripe_bytes=stripe,
    )


def _list_widths(bits: int) -> list[str]:
    return [str(n * 8 // bits) for n in (16, 32, 64)] + [f"a multiple of {1024 // bits}"]


def _compute_strides(kind: LayoutType, major: Major, stripe: int) -> tuple[int, int]:
    """Return (leading, stride) byte offsets: to the next stripe and to the next eight rows. Unswizzled MN-major layouts
    swap the two; swizzled K-major ones ignore the leading offset, which is written as 16."""
    eight_rows = ROWS * kind.row_bytes
    if kind is LayoutType.INTERLEAVE:
        return (stripe, eight_rows) if major is Major.K else (eight_rows, stripe)
    return (16, eight_rows) if major is Major.K else (stripe, eight_rows)
