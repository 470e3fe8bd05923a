"""Tensor memory: shapes of ld and st, data paths, scale factors; each a bijection, with samples from the manual."""

from __future__ import annotations

import pytest

from pyptx.isa.fragments import (
    Datapath,
    datapath,
    mma_accumulator,
    mma_scale_a,
    mma_scale_b,
    tmem_register_count,
    tmem_registers,
    tmem_scale,
)
from pyptx.types import f32

SHAPES = {"32x32b": (32, 1), "16x64b": (16, 2), "16x128b": (16, 4), "16x256b": (16, 8)}
COUNTS = [
    ("32x32b", 1, 1), ("32x32b", 128, 128), ("16x64b", 2, 2), ("16x128b", 1, 2), ("16x128b", 64, 128),
    ("16x256b", 1, 4), ("16x256b", 32, 128), ("16x32bx2", 128, 128),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "num", "registers"), COUNTS)
def test_register_counts_are_the_manuals(shape: str, num: int, registers: int) -> None:
    assert tmem_register_count(shape, num) == registers
    fragment = tmem_registers(shape, num, half_split=num)
    assert (fragment.registers, fragment.lane_count) == (registers, 32)


@pytest.mark.parametrize(
    ("shape", "num"), [("16x128b", 128), ("16x256b", 64), ("32x32b", 3), ("32x32b", 256), ("16x64b", 0)]
)
def test_repeats_that_do_not_exist(shape: str, num: int) -> None:
    with pytest.raises(ValueError, match="a power of two"):
        tmem_registers(shape, num)


def test_shapes_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match=r"32x32b, 16x64b, .*, not 8x32b"):
        tmem_register_count("8x32b", 1)


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("num", [1, 2, 8])
def test_a_warp_moves_every_cell_once(shape: str, num: int) -> None:
    fragment, (lanes, columns) = tmem_registers(shape, num), SHAPES[shape]
    cells = {fragment.position(lane, i) for lane in range(32) for i in range(fragment.count)}
    assert cells == {(r, c) for r in range(lanes) for c in range(columns * num)}
    assert len(cells) == 32 * fragment.count


POINTS = [
    ("32x32b", 4, 17, 3, (17, 3)),
    ("16x64b", 1, 1, 0, (8, 0)), ("16x64b", 1, 2, 0, (0, 1)), ("16x64b", 1, 4, 0, (1, 0)),
    ("16x64b", 4, 31, 3, (15, 7)),
    ("16x128b", 1, 5, 0, (1, 1)), ("16x128b", 1, 5, 1, (9, 1)), ("16x128b", 2, 5, 2, (1, 5)),
    ("16x256b", 1, 5, 1, (1, 3)), ("16x256b", 1, 5, 2, (9, 2)), ("16x256b", 2, 5, 4, (1, 10)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "num", "lane", "register", "cell"), POINTS)
def test_single_registers(shape: str, num: int, lane: int, register: int, cell: tuple[int, int]) -> None:
    assert tmem_registers(shape, num).position(lane, register) == cell


def test_16x256b_is_the_accumulator_of_mma() -> None:
    assert tmem_registers("16x256b", 4) == mma_accumulator(16, 32, f32)


def test_the_upper_lanes_of_16x32bx2_are_split_off() -> None:
    fragment = tmem_registers("16x32bx2", 2, half_split=32)
    assert [fragment.position(lane, 1) for lane in (0, 15, 16, 31)] == [(0, 1), (15, 1), (0, 33), (15, 33)]


# M, cta_group, ws, sparse -> layout and where (row, col) of an N = 64 accumulator lies: (CTA, lane, column).
LAYOUTS = [
    ((256, 2, False, False), "A", (200, 33), (1, 72, 33)),
    ((128, 2, False, False), "B", (100, 33), (1, 100, 1)),
    ((128, 2, False, False), "B", (63, 31), (0, 63, 31)),
    ((128, 2, False, True), "C", (64 + 20, 33), (1, 36, 33)),
    ((128, 1, False, False), "D", (100, 33), (0, 100, 33)),
    ((128, 1, True, True), "D", (100, 33), (0, 100, 33)),
    ((64, 1, True, False), "E", (10, 33), (0, 74, 1)),
    ((64, 1, False, False), "F", (50, 33), (0, 98, 33)),
    ((32, 1, True, False), "G", (5, 50), (0, 101, 2)),
]


@pytest.mark.parametrize(("form", "name", "element", "place"), LAYOUTS)
def test_datapaths(
    form: tuple[int, int, bool, bool], name: str, element: tuple[int, int], place: tuple[int, int, int]
) -> None:
    m, group, ws, sparse = form
    layout = datapath(m, cta_group=group, ws=ws, sparse=sparse)
    assert layout.name == name
    assert layout.locate(*element, 64) == place
    assert layout.element(*place, 64) == element


DATAPATHS: dict[str, Datapath] = {
    layout.name: layout
    for layout in (datapath(*form[:1], cta_group=form[1], ws=form[2], sparse=form[3]) for form, *_ in LAYOUTS)
}


@pytest.mark.parametrize("name", sorted(DATAPATHS))
def test_datapaths_are_bijections(name: str) -> None:
    layout = DATAPATHS[name]
    n = 64
    places = {layout.locate(row, col, n): (row, col) for row in range(layout.m) for col in range(n)}
    assert len(places) == layout.m * n
    for cta in range(layout.ctas):
        for lane in range(128):
            for column in range(n // layout.split):
                assert layout.element(cta, lane, column, n) == places.get((cta, lane, column))


# The manual's table of data paths: M, cta_group, sparse (None: either), .ws (None: either) and the layout.
TABLE: list[tuple[int, int, bool | None, bool | None, str]] = [
    (32, 1, None, True, "G"), (64, 1, None, True, "E"), (64, 1, None, False, "F"), (128, 1, None, None, "D"),
    (128, 2, False, False, "B"), (128, 2, True, False, "C"), (256, 2, None, False, "A"),
]  # fmt: skip


@pytest.mark.parametrize(("m", "group", "sparse", "ws", "name"), TABLE)
def test_which_datapath_an_operation_uses(m: int, group: int, sparse: bool | None, ws: bool | None, name: str) -> None:
    for is_sparse in (False, True) if sparse is None else (sparse,):
        for is_ws in (False, True) if ws is None else (ws,):
            layout = datapath(m, cta_group=group, ws=is_ws, sparse=is_sparse)
            assert (layout.name, layout.m, layout.ctas) == (name, m, group)
    assert (datapath(128).name, datapath(64).name) == ("D", "F")


def test_an_m_without_a_datapath_is_an_error() -> None:
    for m, group, ws in ((256, 1, False), (32, 1, False), (64, 2, False), (128, 2, True)):
        with pytest.raises(ValueError, match=f"M = {m} in cta_group {group}"):
            datapath(m, cta_group=group, ws=ws)


def test_scale_factors_of_mma() -> None:
    assert [tuple(mma_scale_a(row, 0, vector=1)) for row in (0, 1, 8, 15)] == [(0, 0), (4, 0), (1, 0), (29, 0)]
    assert tuple(mma_scale_a(3, 1, vector=2, byte_id=2, thread_id=1)) == (14, 3)
    assert tuple(mma_scale_b(5, 0, vector=1)) == (20, 0)
    assert tuple(tmem_scale(5, 0, vector=1)[0]) == (5, 0, 0)
    assert tuple(mma_scale_b(5, 3, vector=4, thread_id=2)) == (22, 3)
    assert len({mma_scale_a(row, 0, vector=1, thread_id=i) for row in range(16) for i in range(2)}) == 32
    assert len({mma_scale_b(col, 0, vector=1, thread_id=i) for col in range(8) for i in range(4)}) == 32


@pytest.mark.parametrize(
    ("block", "vector", "first"), [(1, 1, 0), (0, 2, 1), (0, 2, 4), (0, 1, 4), (0, 4, 2), (-1, 1, 0)]
)
def test_scale_factors_that_no_word_has(block: int, vector: int, first: int) -> None:
    with pytest.raises(ValueError, match=f"no block of {vector} scale factors has index {block} from byte {first}"):
        mma_scale_a(0, block, vector=vector, byte_id=first)


def test_scale_factors_in_tensor_memory_have_four_copies() -> None:
    assert [tuple(place) for place in tmem_scale(70, 1, vector=2, scale_id=2)] == [
        (6, 2, 3), (38, 2, 3), (70, 2, 3), (102, 2, 3),
    ]  # fmt: skip
    assert tuple(tmem_scale(0, 0, vector=1, scale_id=3)[0]) == (0, 0, 3)
