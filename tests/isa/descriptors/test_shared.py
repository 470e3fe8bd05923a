"""Shared-memory descriptors: field positions by the manual's tables, limits, encode and decode as inverses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa.descriptors import Tcgen05Descriptor, WgmmaDescriptor, matrix_base_offset
from pyptx.tensormap import Swizzle

BYTES = st.integers(0, (1 << 14) - 1).map(lambda n: n * 16)
WGMMA_SWIZZLES = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32)
TCGEN05_SWIZZLES = (*WGMMA_SWIZZLES, Swizzle.B128_ATOM_32B)


@given(BYTES, BYTES, BYTES, st.sampled_from(WGMMA_SWIZZLES), st.integers(0, 7))
def test_wgmma_decoding_undoes_encoding(start: int, leading: int, stride: int, swizzle: Swizzle, base: int) -> None:
    descriptor = WgmmaDescriptor(start, leading, stride, swizzle, base)
    assert WgmmaDescriptor.decode(descriptor.encode()) == descriptor


@given(BYTES, BYTES, BYTES, st.sampled_from(TCGEN05_SWIZZLES), st.integers(0, 7), st.integers(0, 1))
def test_tcgen05_decoding_undoes_encoding(
    start: int, leading: int, stride: int, swizzle: Swizzle, base: int, mode: int
) -> None:
    if mode:
        swizzle, base = Swizzle.B128, 0
    descriptor = Tcgen05Descriptor(start, leading, stride, swizzle, base, mode)
    assert Tcgen05Descriptor.decode(descriptor.encode()) == descriptor


WGMMA = [
    (WgmmaDescriptor(0x12340, 0, 0), 0x1234),
    (WgmmaDescriptor(0, 0x3FFF0, 0), 0x3FFF << 16),
    (WgmmaDescriptor(0, 0, 1024), 0x40 << 32),
    (WgmmaDescriptor(0, 0, 0, Swizzle.NONE, 5), 5 << 49),
    (WgmmaDescriptor(0, 0, 0, Swizzle.B128), 1 << 62),
    (WgmmaDescriptor(0, 0, 0, Swizzle.B64), 2 << 62),
    (WgmmaDescriptor(0, 0, 0, Swizzle.B32), 3 << 62),
    (WgmmaDescriptor(0, 16, 1024, Swizzle.B128), 0x4000004000010000),
    # The worked examples of "Canonical Layouts": K-major tf32 unswizzled, MN-major bf16 with 64 bytes.
    (WgmmaDescriptor(0, 64 * 4, 32 * 4), 16 << 16 | 8 << 32),
    (WgmmaDescriptor(0, 256 * 2, 512 * 2, Swizzle.B64), 32 << 16 | 64 << 32 | 2 << 62),
]
TCGEN05 = [
    (Tcgen05Descriptor(0x12340, 0, 0), 0x1234 | 1 << 46),
    (Tcgen05Descriptor(0, 16, 1024, Swizzle.B128), 0x4000404000010000),
    (Tcgen05Descriptor(0, 0, 0, Swizzle.B128_ATOM_32B, version=0), 1 << 61),
    (Tcgen05Descriptor(0, 0, 0, Swizzle.B64, version=0), 4 << 61),
    (Tcgen05Descriptor(0, 0, 0, Swizzle.B32, 3, version=0), 6 << 61 | 3 << 49),
    (Tcgen05Descriptor(0, 0x8000, 0, Swizzle.B128, lbo_mode=1), 2 << 61 | 1 << 52 | 1 << 46 | 0x800 << 16),
]


@pytest.mark.parametrize(("descriptor", "bits"), [*WGMMA, *TCGEN05], ids=repr)
def test_fields_stand_where_the_manual_puts_them(descriptor: WgmmaDescriptor | Tcgen05Descriptor, bits: int) -> None:
    assert descriptor.encode() == bits


@pytest.mark.parametrize("value", [8, -16, 1 << 18])
def test_addresses_and_offsets_are_multiples_of_16_below_256_kib(value: int) -> None:
    for make in (WgmmaDescriptor, Tcgen05Descriptor):
        for values, name in (((value, 0, 0), "address"), ((0, value, 0), "leading"), ((0, 0, value), "stride")):
            with pytest.raises(ValueError, match=f"the {name}.* multiple of 16 below 256 KiB, got {value}"):
                make(*values).encode()


def test_what_a_descriptor_cannot_say_is_an_error() -> None:
    with pytest.raises(ValueError, match="wgmma cannot read swizzle B128_ATOM_32B; it reads NONE, B128, B64, B32"):
        WgmmaDescriptor(0, 0, 0, Swizzle.B128_ATOM_32B).encode()
    with pytest.raises(ValueError, match="tcgen05 cannot read swizzle B96"):
        Tcgen05Descriptor(0, 0, 0, Swizzle.B96).encode()
    with pytest.raises(ValueError, match="`base_offset` has 3 bits; 8 does not fit"):
        WgmmaDescriptor(0, 0, 0, base_offset=8).encode()
    for swizzle, base in ((Swizzle.B64, 0), (Swizzle.B128, 1)):
        with pytest.raises(ValueError, match="absolute leading address"):
            Tcgen05Descriptor(0, 0, 0, swizzle, base, lbo_mode=1).encode()


@pytest.mark.parametrize("code", [3, 5, 7])
def test_invalid_swizzle_codes_are_refused(code: int) -> None:
    with pytest.raises(ValueError, match=f"no swizzle with the code {code}"):
        Tcgen05Descriptor.decode(code << 61 | 1 << 46)


def test_wgmma_ignores_bits_without_a_meaning() -> None:
    descriptor = WgmmaDescriptor(0x100, 16, 1024, Swizzle.B128, 1)
    stray = 3 << 14 | 3 << 30 | 7 << 46 | 0x3FF << 52
    assert WgmmaDescriptor.decode(descriptor.encode() | stray) == descriptor


@pytest.mark.parametrize("bit", [14, 15, 30, 31, *range(53, 61)])
def test_reserved_bits_of_tcgen05_descriptors_are_zero(bit: int) -> None:
    with pytest.raises(ValueError, match=f"0 in bits {1 << bit:#x}"):
        Tcgen05Descriptor.decode(1 << bit | 1 << 46)


def test_the_base_offset_is_zero_on_the_patterns_own_boundary() -> None:
    assert [matrix_base_offset(a, Swizzle.B128) for a in (1024, 512, 1152)] == [0, 4, 1]
    assert [matrix_base_offset(a, Swizzle.B64) for a in (512, 128, 896)] == [0, 1, 7]
    assert [matrix_base_offset(a, Swizzle.B32) for a in (256, 384)] == [0, 3]
    assert matrix_base_offset(128, Swizzle.NONE) == 0
