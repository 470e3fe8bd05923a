"""Units of memory that copies move, and how reductions combine elements, against integers and fractions of Python."""

from __future__ import annotations

from itertools import product
from math import frexp, isfinite, ldexp
from typing import Any

import numpy as np
import pytest

from pyptx.sim.engines.copies.movement import (
    REDUCIBLE,
    combine,
    find_reduction_type,
    load,
    read_units,
    reduce,
    store,
    write_units,
)
from pyptx.sim.engines.copies.plans import Copy
from pyptx.tensormap import ElementType

INTEGERS = {ElementType.U32: "u4", ElementType.S32: "i4", ElementType.U64: "u8", ElementType.S64: "i8"}


def combine_integers(operation: str, old: int, new: int) -> int:
    match operation:
        case "add":
            return old + new
        case "min":
            return min(old, new)
        case "max":
            return max(old, new)
        case "inc":
            return 0 if old >= new else old + 1
        case "dec":
            return new if old == 0 or old > new else old - 1
        case "and":
            return old & new
        case "or":
            return old | new
        case _:
            return old ^ new


@pytest.mark.parametrize(("operation", "element"), [
    (operation, element) for operation in REDUCIBLE for element in INTEGERS if element in REDUCIBLE[operation]
])  # fmt: skip
def test_integers_are_combined(operation: str, element: ElementType) -> None:
    number = np.dtype(INTEGERS[element])
    low, high = int(np.iinfo(number).min), int(np.iinfo(number).max)
    pairs = list(product((0, 1, 2, 5, 6, high // 3, high - 1, high, low, low + 1), repeat=2))
    old, new = (np.array(column, number) for column in zip(*pairs, strict=True))
    modulus = 1 << 8 * number.itemsize
    expected = [combine_integers(operation, *pair) % modulus for pair in pairs]
    result = combine(operation, old, new, element)
    assert result.dtype == number
    assert [int(word) % modulus for word in result] == expected


def test_a_nan_in_a_sum_of_doubles_keeps_its_bits() -> None:
    first, second = 0x7FF0_0000_0000_0001, 0xFFF4_0000_0000_0002
    one, two = (int(np.array(number).view("u8")) for number in (1.0, 2.0))
    old, new = np.array([first, one, first, one], "u8"), np.array([one, second, second, one], "u8")
    total = combine("add", old.view("f8"), new.view("f8"), ElementType.F64)
    assert total.view("u8").tolist() == [first, second, first, two]


@pytest.mark.parametrize(("element", "keeps"), [
    (ElementType.F32, True), (ElementType.TF32, True), (ElementType.F32_FTZ, False), (ElementType.TF32_FTZ, False),
])  # fmt: skip
def test_sums_flush_subnormal_numbers_if_their_type_does(element: ElementType, keeps: bool) -> None:
    small, zero = np.array([3, 0x8000_0003], "u4").view("f4"), np.zeros(2, "f4")
    assert find_reduction_type(element) == "f32"
    assert (combine("add", small, zero, element) != 0).tolist() == [keeps, keeps]
    assert combine("add", np.array([1.5], "f4"), np.array([2.25], "f4"), element).tolist() == [3.75]


def test_the_least_and_the_largest_half_are_numbers_if_one_is() -> None:
    old, new = np.array([1, np.nan, -3], "f2"), np.array([2, 5, np.nan], "f2")
    assert combine("min", old, new, ElementType.F16).tolist() == [1, 5, -3]
    assert combine("max", old, new, ElementType.F16).tolist() == [2, 5, -3]


def test_other_reductions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"reduction `\.mul`: expected add, min, max, inc, dec, and, or, xor"):
        combine("mul", np.zeros(1, "u4"), np.zeros(1, "u4"), ElementType.U32)


@pytest.mark.parametrize("base", [0x1000, 0x1004, 0x100F])
def test_units_lie_at_multiples_of_their_size_wherever_memory_begins(base: int) -> None:
    memory, addresses = np.arange(75, dtype=np.uint8), np.array([0x1030, 0x1010])
    at = [int(address) - base for address in addresses]
    units = read_units(memory, base, addresses, 16)
    assert [unit.tobytes() for unit in units] == [memory[first : first + 16].tobytes() for first in at]
    write_units(memory, base, addresses[::-1], units, 16)
    expected = np.arange(75, dtype=np.uint8)
    for first, source in zip(at, at[::-1], strict=True):
        expected[first : first + 16] = np.arange(source, source + 16)
    np.testing.assert_array_equal(memory, expected)


def make_copy(element: ElementType, inside: list[bool] | None = None, fill: bytes = b"") -> Copy:
    """Return a copy of words 0, 1, … of a tensor at 256 to words 3, 2, … of shared memory at 64."""
    index = np.arange(4)
    mask = None if inside is None else np.array(inside)
    return Copy(64 + 4 * index[::-1], 256 + 4 * index, mask, 4, element, fill, np.zeros(0, np.int64))


def view_bytes(words: list[int]) -> Any:
    return np.array(words, "u4").view("u1")


def round_to_tf32(word: int) -> int:
    """Return the code of the nearest number with 10 fraction bits."""
    number = float(np.array([word], "u4").view("f4")[0])
    if not isfinite(number):
        return word if abs(number) == float("inf") else 0x7FFF_E000
    place = max(frexp(number)[1], -125) - 11
    with np.errstate(over="ignore"):
        return int(np.array([ldexp(round(ldexp(number, -place)), place)]).astype("f4").view("u4")[0])


def test_loads_round_to_tf32() -> None:
    words = [0x3F80_1000, 0x3F80_3000, 0x3F80_0FFF, 0x3F80_1001, 0xBF80_3001, 0x7F7F_FFFF, 0x7F7F_EFFF, 0x7F80_0000,
             0xFF80_0000, 0x7F80_0001, 0xFFC0_0000, 0x0000_0FFF, 0x0000_1001, 0x0000_3000, 0x8000_2FFF, 0]  # fmt: skip
    for first in range(0, len(words), 4):
        shared, part = view_bytes([0] * 4), words[first : first + 4]
        load(make_copy(ElementType.TF32), view_bytes(part), 256, shared, 64)
        assert shared.view("u4")[::-1].tolist() == [round_to_tf32(word) for word in part]


def test_elements_outside_the_tensor_are_filled_by_loads_and_skipped_by_stores() -> None:
    copy = make_copy(ElementType.U32, [True, False, True, False], b"\1\0\0\0")
    shared, memory = view_bytes([20, 21, 22, 23]), view_bytes([10, 11, 12, 13])
    load(copy, memory, 256, shared, 64)
    assert shared.view("u4").tolist() == [1, 12, 1, 10]
    shared = view_bytes([20, 21, 22, 23])
    store(copy, memory, 256, shared, 64)
    assert memory.view("u4").tolist() == [23, 11, 21, 13]
    old, new, result = reduce(copy, "add", memory, 256, shared, 64)
    assert [part.tolist() for part in (old, new, result)] == [[23, 21], [23, 21], [46, 42]]
    assert memory.view("u4").tolist() == [46, 11, 42, 13]
