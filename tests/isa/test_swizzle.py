"""Swizzles against the manual's tables of 16-byte chunks, and as permutations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa.swizzle import find_swizzle, period, swizzle, xor_terms
from pyptx.tensormap import Swizzle

# "Swizzling Modes": for each line, the source chunk that each 16 bytes of shared memory hold.
TABLES = {
    Swizzle.NONE: "01234567",
    Swizzle.B32: "01234567 10325476",
    Swizzle.B64: "01234567 10325476 23016745 32107654",
    Swizzle.B96: "01234567 10325476",
    Swizzle.B128: "01234567 10325476 23016745 32107654 45670123 54761032 67452301 76543210",
    Swizzle.B128_ATOM_32B: "01234567 23016745 45670123 67452301",
    Swizzle.B128_ATOM_64B: "01234567 45670123",
}


@pytest.mark.parametrize("mode", list(TABLES), ids=lambda m: m.name)
def test_the_pattern_is_the_manuals_table(mode: Swizzle) -> None:
    lines = TABLES[mode].split()
    for line in range(16):
        for chunk, source in enumerate(lines[line % len(lines)]):
            assert swizzle(line * 128 + int(source) * 16, mode) == line * 128 + chunk * 16
    assert period(mode) == (128 * len(lines) if mode.span else 16)


def test_the_flip_exchanges_halves_of_16_bytes_in_odd_lines() -> None:
    for offset in range(0, 2048, 8):
        plain = swizzle(offset, Swizzle.B128_ATOM_32B)
        odd = offset // 128 % 2
        assert swizzle(offset, Swizzle.B128_ATOM_32B_FLIP_8B) == plain ^ 8 * odd


@given(st.integers(0, 1 << 20), st.sampled_from(Swizzle))
def test_swizzling_twice_is_the_identity_and_stays_in_the_line(offset: int, mode: Swizzle) -> None:
    address = swizzle(offset, mode)
    assert swizzle(address, mode) == offset
    assert address // 128 == offset // 128
    keep = 8 if mode.flips_8_bytes else max(mode.atom, 1)
    assert address % keep == offset % keep
    assert swizzle(offset + period(mode), mode) == address + period(mode)


@pytest.mark.parametrize("mode", Swizzle, ids=lambda m: m.name)
def test_one_period_is_permuted(mode: Swizzle) -> None:
    assert sorted(swizzle(i, mode) for i in range(period(mode))) == list(range(period(mode)))
    assert mode.origin_alignment % period(mode) == 0


def test_every_terms_source_bits_stay() -> None:
    for mode in Swizzle:
        read = targets = 0
        for mask, shift in xor_terms(mode):
            read, targets = read | mask, targets | mask >> shift
        assert read & targets == 0


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        (None, Swizzle.NONE), ("none", Swizzle.NONE), ("INTERLEAVE", Swizzle.NONE), ("32B", Swizzle.B32),
        ("64b", Swizzle.B64), ("96B", Swizzle.B96), ("128B", Swizzle.B128), ("SWIZZLE_128B", Swizzle.B128),
        ("128B_BASE32B", Swizzle.B128_ATOM_32B), ("128B_ATOM_32B", Swizzle.B128_ATOM_32B),
        ("128B_ATOM_32B_FLIP_8B", Swizzle.B128_ATOM_32B_FLIP_8B), ("128B_ATOM_64B", Swizzle.B128_ATOM_64B),
        (Swizzle.B96, Swizzle.B96),
    ],
)  # fmt: skip
def test_names(name: str | None, mode: Swizzle) -> None:
    assert find_swizzle(name) is mode


def test_an_unknown_name_lists_the_known_ones() -> None:
    names = "NONE, INTERLEAVE, 32B, 64B, 96B, 128B, 128B_BASE32B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B"
    with pytest.raises(ValueError, match=f"^there is no swizzle '256B'; the swizzles are {names}$"):
        find_swizzle("256B")
