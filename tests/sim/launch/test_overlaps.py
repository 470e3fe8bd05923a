"""Arrays that share bytes, compared with sets of the addresses of their bytes."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest

from pyptx.sim.base.formats import Array
from pyptx.sim.launch import overlaps
from pyptx.sim.launch.overlaps import find_entangled, find_spans, has_unique_elements


def list_addresses(array: Array) -> list[int]:
    """Return the address of each byte of each element."""
    return [
        array.ctypes.data + byte + sum(place * stride for place, stride in zip(places, array.strides, strict=True))
        for places in product(*map(range, array.shape))
        for byte in range(array.itemsize)
    ]


def draw_view(chance: random.Random, buffer: Array) -> Array:
    """Return a contiguous or strided view of part of a buffer of bytes, read-only or not."""
    low = chance.randrange(len(buffer))
    view = buffer[low : low + chance.choice([0, 1, 4, 8, 16])]
    if chance.random() < 0.4:
        view = view[:: chance.choice([2, 3, -1])]
    if len(view) % 4 == 0 and chance.random() < 0.5:
        view = view.reshape(2, -1).T
    elif view.flags.c_contiguous and len(view) % 2 == 0:
        view = view.view(np.uint16)
    view.flags.writeable = chance.random() < 0.6
    return view


def connect(arrays: list[Array]) -> list[tuple[int, int, bool]]:
    """Return the start, size and writability of contiguous arrays that share bytes, directly or through others."""
    groups: list[list[Array]] = []
    for array in arrays:
        if not array.size or not array.flags.c_contiguous:
            continue
        own = set(list_addresses(array))
        is_near = [any(own & set(list_addresses(other)) for other in group) for group in groups]
        merged = [other for group, joins in zip(groups, is_near, strict=True) if joins for other in group]
        groups = [group for group, joins in zip(groups, is_near, strict=True) if not joins] + [[*merged, array]]
    spans: list[tuple[int, int, bool]] = []
    for group in groups:
        addresses = set[int]().union(*map(list_addresses, group))
        if len({(tuple(list_addresses(array)), array.flags.writeable) for array in group}) > 1:
            is_writable = any(array.flags.writeable for array in group)
            spans.append((min(addresses), max(addresses) + 1 - min(addresses), is_writable))
    return sorted(spans)


@pytest.mark.parametrize("seed", range(8))
def test_random_views_of_a_buffer_share_what_their_addresses_say(seed: int) -> None:
    chance, buffer = random.Random(seed), np.arange(64, dtype=np.uint8)
    for _ in range(40):
        arrays = [draw_view(chance, buffer) for _ in range(chance.randrange(1, 7))]
        spans = find_spans(arrays)
        assert [(span.low, len(span.data), span.writable) for span in spans] == connect(arrays)
        for span in spans:
            start = span.low - buffer.ctypes.data
            assert (span.data == buffer[start : start + len(span.data)]).all()
            assert not span.data.flags.writeable
        assert all(has_unique_elements(array) for array in arrays)
        pairs = [
            (first, second)
            for second in range(len(arrays))
            for first in range(second)
            if is_entangled(arrays[first], arrays[second])
        ]
        assert find_entangled(arrays) == (pairs[0] if pairs else None)


def is_entangled(first: Array, second: Array) -> bool:
    addresses, other_addresses = list_addresses(first), list_addresses(second)
    if first.flags.c_contiguous and second.flags.c_contiguous:
        return False
    if not (first.flags.writeable or second.flags.writeable):
        return False
    is_same = (first.ctypes.data, first.shape, first.strides) == (second.ctypes.data, second.shape, second.strides)
    return not is_same and bool(set(addresses) & set(other_addresses))


def test_an_array_is_not_entangled_with_itself() -> None:
    column = np.zeros((4, 4))[:, 1]
    assert find_entangled([column, column]) is None
    assert find_entangled([column, column[:]]) is None
    assert find_entangled([np.zeros(3), column, column[::2]]) == (1, 2)


def test_arrays_that_are_hard_to_compare_count_as_entangled(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = np.zeros(10_000, np.uint8)

    def stride(*strides: int) -> Array:
        return np.lib.stride_tricks.as_strided(buffer, (5,) * len(strides), strides)

    hard = [stride(1009, 499, 83, 12), stride(907, 601, 71, 18)]
    monkeypatch.setattr(overlaps, "_MOST_WORK", 1)
    assert find_entangled(hard) == (0, 1)


def draw_strided(chance: random.Random) -> Array:
    dimensions = chance.randrange(4)
    shape = tuple(chance.choice([1, 2, 3]) for _ in range(dimensions))
    strides = tuple(chance.choice([0, 1, 2, 3, 4, 6, 8, 12, -2, -6]) for _ in range(dimensions))
    kind: Any = chance.choice([np.uint8, np.uint16])
    return np.lib.stride_tricks.as_strided(np.zeros(200, np.uint8)[100:].view(kind), shape, strides)


def test_elements_that_share_bytes_are_not_unique() -> None:
    chance, outcomes = random.Random(3), set[bool]()
    for _ in range(600):
        array = draw_strided(chance)
        addresses = list_addresses(array)
        outcomes.add(has_unique_elements(array))
        assert not has_unique_elements(array) or len(set(addresses)) == len(addresses), (array.shape, array.strides)
    assert outcomes == {False, True}


@pytest.mark.parametrize(("shape", "strides", "is_unique"), [
    ((3, 2, 2), (2, 6, 8), False), ((2, 2), (2, 3), False), ((2, 2), (2, 4), True), ((1, 4), (0, 2), True),
    ((4, 1), (2, 1), True), ((3,), (1,), False), ((), (), True),
])  # fmt: skip
def test_elements_of_two_bytes(shape: tuple[int, ...], strides: tuple[int, ...], is_unique: bool) -> None:
    assert has_unique_elements(np.lib.stride_tricks.as_strided(np.zeros(50, np.uint16), shape, strides)) is is_unique
