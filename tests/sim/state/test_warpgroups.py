"""Matrices of warpgroups: registers against the manual's fragments, operands in shared memory with a base offset."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pyptx.isa.descriptors import Tcgen05Descriptor, WgmmaDescriptor
from pyptx.sim.base.lanes import Lanes, Shape
from pyptx.sim.state.regions import Region
from pyptx.sim.state.warpgroups import (
    Groups,
    compute_addresses,
    find_operand_places,
    get_groups,
    load_accumulator,
    load_register_operand,
    split_registers,
)
from pyptx.tensormap import Swizzle

_BATCH = Shape((384, 1, 1), 3)


def _select(*warpgroups: tuple[int, int]) -> Lanes:
    """Return the lanes of warpgroups, each a CTA and a number."""
    chosen = [(_BATCH.cta == cta) & (_BATCH.thread // 128 == number) for cta, number in warpgroups]
    return _BATCH.select_index(np.flatnonzero(np.any(chosen, axis=0)))


SETS = {
    "all": _BATCH.select_all(),
    "the second of every CTA": _select((0, 1), (1, 1), (2, 1)),
    "the last two of every CTA": _select(*((cta, number) for cta in range(3) for number in (1, 2))),
    "one": _select((1, 2)),
    "two of one CTA": _select((2, 0), (2, 1)),
    "of two CTAs": _select((0, 0), (0, 2), (2, 2)),
    "different ones of two CTAs": _select((0, 1), (2, 0)),
    "as many as CTAs, elsewhere": _select((0, 0), (0, 1), (0, 2)),
}


def _fill(lanes: Lanes, count: int, dtype: str) -> tuple[np.ndarray, ...]:
    """Return registers of different elements."""
    per_register = 4 // np.dtype(dtype).itemsize
    values = np.random.default_rng(0).permutation(lanes.n * count * per_register) + 1
    return tuple(values.astype(dtype).reshape(count, -1).view(np.uint32))


def _list_groups(lanes: Lanes) -> list[tuple[int, int]]:
    """Return the CTA and number of each warpgroup, in the order of their first lane."""
    return list(dict.fromkeys(zip(lanes.cta.tolist(), (_BATCH.thread[lanes.sel] // 128).tolist(), strict=True)))


def _find_position(lanes: Lanes, group: tuple[int, int], thread: int) -> int:
    lane = (group[1] * 128 + thread) * _BATCH.ctas + group[0]
    return int(np.searchsorted(lanes.index, lane))


@pytest.mark.parametrize("dtype", ["u4", "u2"])
@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_accumulators_are_the_manuals_fragment_d(lanes: Lanes, dtype: str) -> None:
    """Element i of a lane: row 16 * warp + lane / 4 + 8 * (i / 2 % 2), column 8 * (i / 4) + lane % 4 * 2 + i % 2."""
    columns = 24
    registers = _fill(lanes, columns // 2 * np.dtype(dtype).itemsize // 4, dtype)
    elements = np.stack(registers).view(dtype).reshape(len(registers), lanes.n, -1)
    expected = np.zeros((lanes.n // 128, 64, columns), dtype)
    for number, group in enumerate(_list_groups(lanes)):
        for thread in range(128):
            own = elements[:, _find_position(lanes, group, thread)].reshape(-1)
            warp, lane = divmod(thread, 32)
            for index, element in enumerate(own):
                row = 16 * warp + lane // 4 + 8 * (index // 2 % 2)
                expected[number, row, 8 * (index // 4) + lane % 4 * 2 + index % 2] = element
    groups = get_groups(lanes)
    np.testing.assert_array_equal(load_accumulator(groups, registers, dtype), expected)
    np.testing.assert_array_equal(split_registers(groups, expected, dtype), np.stack(registers))


@pytest.mark.parametrize("dtype", ["u4", "u2", "u1"])
@pytest.mark.parametrize("lanes", SETS.values(), ids=SETS)
def test_operands_in_registers_are_the_manuals_fragment_a(lanes: Lanes, dtype: str) -> None:
    """Register i has columns lane % 4 of its half in row 16 * warp + lane / 4 + 8 * (i % 2); the half is i / 2."""
    each = 4 // np.dtype(dtype).itemsize
    registers = _fill(lanes, 4, dtype)
    expected = np.zeros((lanes.n // 128, 64, 8 * each), dtype)
    for number, group in enumerate(_list_groups(lanes)):
        for thread in range(128):
            position = _find_position(lanes, group, thread)
            warp, lane = divmod(thread, 32)
            for index, register in enumerate(registers):
                row, first = 16 * warp + lane // 4 + 8 * (index % 2), (index // 2 * 4 + lane % 4) * each
                expected[number, row, first : first + each] = register[position : position + 1].view(dtype)
    np.testing.assert_array_equal(load_register_operand(get_groups(lanes), registers, dtype), expected)


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize("swizzle", [Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128])
@pytest.mark.parametrize("kind", [WgmmaDescriptor, Tcgen05Descriptor])
def test_the_base_offset_moves_the_swizzle_pattern(
    kind: type[WgmmaDescriptor | Tcgen05Descriptor], swizzle: Swizzle, is_transposed: bool
) -> None:
    """Manual: a pattern that starts at an address that is no multiple of its size needs the base offset (address / 128)
    % 8. Such a matrix has the layout of one that starts at address 0."""
    lead, stride = 2048, 1024
    aligned = compute_addresses(kind(0, lead, stride, swizzle), 16, 16, 2, is_transposed)
    for start in range(128, 2048, 128):
        descriptor = replace(kind(start, lead, stride, swizzle), base_offset=start // 128 % 8)
        np.testing.assert_array_equal(compute_addresses(descriptor, 16, 16, 2, is_transposed), aligned + start)


@pytest.mark.parametrize("swizzle", [Swizzle.B32, Swizzle.B64])
def test_rows_beyond_the_span_go_on_at_the_leading_offset(swizzle: Swizzle) -> None:
    """As on an H200: 64 bytes of K of B in a sparse product, in the 32-byte swizzle."""
    descriptor = WgmmaDescriptor(0, 4096, 8 * swizzle.span, swizzle)
    addresses = compute_addresses(descriptor, 16, 2 * swizzle.span, 1, False)
    np.testing.assert_array_equal(addresses[:, swizzle.span :], addresses[:, : swizzle.span] + 4096)


def test_places_are_kept_until_they_fill_32_mib() -> None:
    lanes, rows, columns, size, stride = SETS["one"], 256, 256, 4, 1 << 19
    groups, shape = Groups(lanes), Shape((384, 1, 1), 3)
    shape.shared_stride = stride
    memory = SimpleNamespace(shape=shape, shared=Region("shared", "shared", 0, stride, np.zeros(3 * stride, "u1")))
    for number in range(129):
        descriptor = WgmmaDescriptor(1024 + 16 * number, 8192, 128, Swizzle.NONE)
        words = np.full(lanes.n, descriptor.encode(), np.uint64)
        places, unit = find_operand_places(memory, groups, words, rows, columns, "u4", True, False)
        assert find_operand_places(memory, groups, words, rows, columns, "u4", True, False)[0] is places
        assert len(groups.places) == number % 64 + 1
        assert (places.nbytes, unit) == (1 << 19, "u4")
        expected = (stride + compute_addresses(descriptor, rows, columns, size, True)) // size
        assert places.tobytes() == expected.tobytes()
