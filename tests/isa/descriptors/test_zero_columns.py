"""Zero-column masks: the manual's four examples, and encode and decode as inverses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa.descriptors import ZeroColumnMask

QUADS = st.tuples(*[st.integers(0, 255)] * 4)
FLAGS = st.tuples(*[st.integers(0, 1)] * 4)


@given(st.integers(1, 256), st.integers(1, 256), QUADS, FLAGS, st.integers(0, 63), st.booleans())
def test_decoding_undoes_encoding(
    skip: int, use: int, starts: tuple[int, int, int, int], firsts: tuple[int, int, int, int], shift: int, on: bool
) -> None:
    mask = ZeroColumnMask(skip, use, starts, firsts, shift, on)
    assert ZeroColumnMask.decode(mask.encode()) == mask


def test_fields_stand_where_the_manual_puts_them() -> None:
    mask = ZeroColumnMask(3, 4, (1, 2, 3, 4), (1, 0, 0, 1), 5)
    assert mask.encode() == 0x04030201 | 0b1001 << 32 | 1 << 39 | 2 << 40 | 3 << 48 | 5 << 56
    with pytest.raises(ValueError, match="0 in bits 0x1000000000"):
        ZeroColumnMask.decode(1 << 36)
    with pytest.raises(ValueError, match="`shift` has 6 bits"):
        ZeroColumnMask(1, 1, shift=64).encode()


def sub_masks(mask: ZeroColumnMask, m: int, n: int, count: int) -> list[str]:
    bits, width = mask.columns(m, n), n // count
    return [f"{bits >> i * width & ((1 << width) - 1):0{width}b}" for i in range(count)]


def test_the_examples_of_the_manual() -> None:
    assert ZeroColumnMask(5, 4, non_zero=False).columns(128, 256) == 0
    assert sub_masks(ZeroColumnMask(3, 4), 128, 64, 1)[0].endswith("11100001110000")
    two = sub_masks(ZeroColumnMask(3, 4, firsts=(1, 0, 0, 0)), 64, 64, 2)
    assert two[0].endswith("11100001110000111")
    assert two[1].endswith("00001110000" + "1110000")
    four = sub_masks(ZeroColumnMask(3, 4, (0, 1, 2, 1), (1, 1, 0, 0), 2), 32, 128, 4)
    for mask, end in zip(four, ("00001110000111", "0000111000011", "111000011100", "1110000111000"), strict=True):
        assert mask.endswith(end)


def test_without_starts_the_pattern_is_whole() -> None:
    assert ZeroColumnMask(1, 1) == ZeroColumnMask(1, 1, (0, 0, 0, 0), (0, 0, 0, 0), 0, True)
    assert ZeroColumnMask(1, 1).columns(64, 8) == 0b10101010


def test_only_three_m_have_masks() -> None:
    with pytest.raises(ValueError, match="M = 128, 64, 32, not 256"):
        ZeroColumnMask(1, 1).columns(256, 64)
