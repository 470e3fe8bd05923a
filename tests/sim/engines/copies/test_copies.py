"""Loads against NumPy slices with padding, swizzles against the manual's tables, im2col against an unfold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pyptx.sim.engines.copies import load, plan_gather, plan_im2col, plan_tile, reduce, store
from pyptx.tensormap import ElementType, Fill, Im2col, Im2colMode, Interleave, Swizzle, TensorMap, problems

BASE = 0x10000
Array = NDArray[Any]


def tensor_of(
    shape: tuple[int, ...], dtype: ElementType = ElementType.U16, **changes: object
) -> tuple[TensorMap, Array]:
    """Return a map of a tensor of distinct numbers, slowest dimension first, and its bytes with padded rows."""
    size = dtype.bits // 8
    row = -(-shape[-1] * size // 16) * 16
    values = numbers(shape, size)
    rows_with_padding = np.zeros((*shape[:-1], row // size), values.dtype)
    rows_with_padding[..., : shape[-1]] = values
    dims = shape[::-1]
    strides = [row]
    for count in dims[1:-1]:
        strides.append(strides[-1] * count)
    tensor = TensorMap(dtype, BASE, dims, tuple(strides[: len(dims) - 1]))
    return replace(tensor, **cast("dict[str, Any]", changes)), rows_with_padding.reshape(-1).view(np.uint8)


def numbers(shape: tuple[int, ...], size: int = 2) -> Array:
    return np.arange(1, np.prod(shape) + 1).astype(f"u{size}").reshape(shape)


def cut(values: Array, start: tuple[int, ...], box: tuple[int, ...], steps: tuple[int, ...], outside: int) -> Array:
    """Return a box of an array; the box may extend beyond its edges."""
    grids = np.ix_(*(a + np.arange(0, b, s) for a, b, s in zip(start, box, steps, strict=True)))
    inside = np.ones([len(grid.ravel()) for grid in grids], np.bool_)
    for grid, size in zip(grids, values.shape, strict=True):
        inside &= (grid >= 0) & (grid < size)
    coordinates = [np.clip(grid, 0, size - 1) for grid, size in zip(grids, values.shape, strict=True)]
    return np.where(inside, values[tuple(coordinates)], values.dtype.type(outside))


@st.composite
def boxes(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], Swizzle]:
    rank = draw(st.integers(1, 5))
    shape = tuple(draw(st.integers(1, 12 if rank > 3 else 40)) for _ in range(rank))
    swizzle = draw(st.sampled_from(list(Swizzle)))
    inner = draw(st.sampled_from([8, 16, 32] if swizzle.span in (0, 64, 128) else [8, 16]))
    box = (*(draw(st.integers(1, 6)) for _ in range(rank - 1)), inner)
    steps = (*(draw(st.integers(1, 3)) for _ in range(rank - 1)), 1)
    start = tuple(draw(st.integers(-6, size + 3)) for size in shape)
    return shape, box, steps, start, swizzle


@settings(max_examples=200)
@given(boxes(), st.sampled_from([0, 1024, 128, 384]))
def test_loads_equal_slices_with_padding(case: tuple[Any, ...], destination: int) -> None:
    shape, box, steps, start, swizzle = case
    tensor, memory = tensor_of(shape, box=box[::-1], element_strides=steps[::-1], swizzle=swizzle)
    assert not problems(tensor)
    copy = plan_tile(tensor, start[::-1], destination)
    shared = np.full(1 << 17, 0xEE, np.uint8)
    load(copy, memory, BASE, shared)
    want = cut(numbers(shape), start, box, steps, 0)
    row = tensor.steps[0] * tensor.dtype.bits // 8
    got = _plain(shared, destination, tensor.box_bytes, swizzle, row).view(np.uint16)
    np.testing.assert_array_equal(got.reshape(want.shape), want)
    assert copy.unit * len(copy.shared) == tensor.box_bytes


def _plain(shared: Array, destination: int, size: int, swizzle: Swizzle, row: int = 256) -> Array:
    """Read a swizzled box back byte by byte, by the manual's tables. Rows of `row` bytes start a span apart."""
    pitch = max(row, swizzle.span)
    offsets = (i // row * pitch + i % row for i in range(size))
    return np.array([shared[_place(destination + i, swizzle)] for i in offsets], np.uint8)


_CHUNKS = {
    Swizzle.NONE: ["01234567"],
    Swizzle.B32: ["01234567", "10325476"],
    Swizzle.B64: ["01234567", "10325476", "23016745", "32107654"],
    Swizzle.B96: ["01234567", "10325476"],
    Swizzle.B128: [
        "01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210",
    ],
    Swizzle.B128_ATOM_32B: ["01234567", "23016745", "45670123", "67452301"],
    Swizzle.B128_ATOM_64B: ["01234567", "45670123"],
}  # fmt: skip
_CHUNKS[Swizzle.B128_ATOM_32B_FLIP_8B] = _CHUNKS[Swizzle.B128_ATOM_32B]
"""Tables of the manual: for each line of 128 bytes, the source chunks of 16 bytes in it."""


def _place(address: int, swizzle: Swizzle) -> int:
    line, chunk, byte = address // 128, address // 16 % 8, address % 16
    table = _CHUNKS[swizzle]
    if swizzle.flips_8_bytes and line % 2:
        byte ^= 8
    return line * 128 + table[line % len(table)].index(str(chunk)) * 16 + byte


@pytest.mark.parametrize("swizzle", list(Swizzle))
def test_swizzles_follow_the_manuals_tables(swizzle: Swizzle) -> None:
    width = {32: 16, 64: 32, 96: 48}.get(swizzle.span, 64)
    tensor, memory = tensor_of((64, 64), box=(width, 64), swizzle=swizzle)
    shared = np.zeros(8192, np.uint8)
    load(plan_tile(tensor, (0, 0), 0), memory, BASE, shared)
    got = _plain(shared, 0, tensor.box_bytes, swizzle).view(np.uint16)
    np.testing.assert_array_equal(got.reshape(64, width), numbers((64, 64))[:, :width])


@settings(max_examples=60)
@given(boxes())
def test_stores_are_the_inverse_and_skip_what_is_outside(case: tuple[Any, ...]) -> None:
    shape, box, steps, start, swizzle = case
    tensor, memory = tensor_of(shape, box=box[::-1], element_strides=steps[::-1], swizzle=swizzle)
    copy = plan_tile(tensor, start[::-1], 2048)
    before = memory.copy()
    shared = np.zeros(1 << 17, np.uint8)
    load(copy, memory, BASE, shared)
    target = np.full_like(memory, 0xAA)
    store(copy, target, BASE, shared)
    mask = np.zeros(len(memory), np.bool_)
    for address in copy.address[slice(None) if copy.inside is None else copy.inside]:
        mask[address - BASE : address - BASE + copy.unit] = True
    np.testing.assert_array_equal(target[mask], before[mask])
    assert (target[~mask] == 0xAA).all()


def test_nan_fills_what_is_outside() -> None:
    for dtype, want in ((ElementType.F16, np.uint16(0x7FF7)), (ElementType.F32, np.uint32(0x7FF77FF7))):
        tensor, memory = tensor_of((4, 8), dtype, box=(8, 4), fill=Fill.NAN)
        shared = np.zeros(256, np.uint8)
        load(plan_tile(tensor, (4, 2), 0), memory, BASE, shared)
        box = shared[: tensor.box_bytes].view(want.dtype).reshape(4, 8)
        assert (box[2:] == want).all()
        assert (box[:, 4:] == want).all()
        assert (box[:2, :4] != want).all()


def test_loads_round_to_tf32() -> None:
    """As on an H200: to the nearest, ties to even; NaNs lose sign and payload, and the fill stays as it is."""
    codes = [0xFD82CC44, 0xA98EB433, 0x3F801000, 0x3F803000, 0x00000FFF, 0x7F7FFFFF, 0xFFF43C31, 0xFF800000]
    memory = np.array(codes, "u4").view(np.uint8)
    tensor = TensorMap(ElementType.TF32, BASE, (8,), (), (12,), fill=Fill.NAN)
    shared = np.zeros(48, np.uint8)
    load(plan_tile(tensor, (0,), 0), memory, BASE, shared)
    want = [0xFD82C000, 0xA98EC000, 0x3F800000, 0x3F804000, 0, 0x7F800000, 0x7FFFE000, 0xFF800000]
    np.testing.assert_array_equal(shared.view("u4"), [*want, *[0x7FF77FF7] * 4])


def test_gather_and_scatter_move_four_rows() -> None:
    tensor, memory = tensor_of((16, 64), box=(64, 1), swizzle=Swizzle.B128)
    shared = np.zeros(1024, np.uint8)
    copy = plan_gather(tensor, (0, 2, 5, 99, 9), 0)
    load(copy, memory, BASE, shared)
    got = _plain(shared, 0, 512, Swizzle.B128).view(np.uint16).reshape(4, 64)
    rows = numbers((16, 64))
    np.testing.assert_array_equal(got[[0, 1, 3]], rows[[2, 5, 9]])
    assert not got[2].any()
    target = np.zeros_like(memory)
    store(copy, target, BASE, shared)
    matrix_rows = target.view(np.uint16).reshape(16, 64)
    np.testing.assert_array_equal(matrix_rows[[2, 5, 9]], rows[[2, 5, 9]])
    assert not np.delete(matrix_rows, [2, 5, 9], axis=0).any()
    with pytest.raises(ValueError, match="rank 2"):
        plan_gather(tensor, (0, 1), 0)


def test_packed_four_bits_copy_as_bytes() -> None:
    memory = np.random.default_rng(0).integers(0, 256, 64 * 32, dtype=np.uint8)
    tensor = TensorMap(ElementType.B4X16, BASE, (128, 32), (64,), box=(64, 8))
    shared = np.zeros(256, np.uint8)
    load(plan_tile(tensor, (32, 4), 0), memory, BASE, shared)
    np.testing.assert_array_equal(shared.reshape(8, 32), memory.reshape(32, 64)[4:12, 16:48])


@pytest.mark.parametrize("dtype", [ElementType.B4X16_P64, ElementType.B6X16_P32])
@pytest.mark.parametrize("swizzle", [Swizzle.NONE, Swizzle.B128])
def test_padded_types_spread_groups_over_16_bytes(dtype: ElementType, swizzle: Swizzle) -> None:
    row, group = 256 * dtype.bits // 8, 2 * dtype.bits
    memory = np.random.default_rng(1).integers(0, 256, row * 16, dtype=np.uint8)
    tensor = TensorMap(dtype, BASE, (256, 16), (row,), box=(128, 8), swizzle=swizzle)
    assert not problems(tensor)
    shared = np.full(1024, 0xEE, np.uint8)
    copy = plan_tile(tensor, (128, 4), 0)
    load(copy, memory, BASE, shared)
    plain = _plain(shared, 0, 1024, swizzle).reshape(8, 8, 16)
    want = memory.reshape(16, 16, group)[4:12, 8:]
    np.testing.assert_array_equal(plain[..., :group], want)
    assert (plain[..., group:] == 0xEE).all()
    assert len(copy.padding) * 4 == 64 * (16 - group)
    assert (shared[(copy.padding[:, None] + np.arange(4))] == 0xEE).all()


@pytest.mark.parametrize("dtype", [ElementType.B4X16_P64, ElementType.B6X16_P32])
def test_groups_of_padded_types_outside_the_tensor_are_zero(dtype: ElementType) -> None:
    row, group = 128 * dtype.bits // 8, 2 * dtype.bits
    memory = np.random.default_rng(1).integers(1, 256, row * 4, dtype=np.uint8)
    tensor = TensorMap(dtype, BASE, (128, 4), (row,), box=(128, 4))
    groups = np.pad(memory.reshape(4, 8, group), ((4, 4), (8, 8), (0, 0)))
    for left, top in ((0, -2), (0, 3), (64, 0), (-64, 1), (128, 0), (-128, 0)):
        shared = np.full(512, 0xEE, np.uint8)
        load(plan_tile(tensor, (left, top), 0), memory, BASE, shared)
        first = 8 + left // 16
        want = groups[4 + top : 8 + top, first : first + 8]
        np.testing.assert_array_equal(shared.reshape(4, 8, 16)[..., :group], want)


def test_stores_pack_six_bits() -> None:
    values = np.random.default_rng(2).integers(0, 64, (2, 128), dtype=np.uint8)
    tensor = TensorMap(ElementType.B6X16_P32, BASE, (128, 2), (96,), box=(128, 2))
    memory = np.zeros(192, np.uint8)
    store(plan_tile(tensor, (0, 0), 0), memory, BASE, (values | np.uint8(0xC0)).reshape(-1))
    bits = np.unpackbits(memory, bitorder="little").reshape(2, 128, 6)
    np.testing.assert_array_equal((bits << np.arange(6)).sum(-1), values)


def test_interleaved_slices_are_the_unit_of_the_first_dimension() -> None:
    """As on an H200: a copy has one slice of each position, whatever the box says."""
    values = numbers((2, 3, 5, 6, 16))  # N, C/16, H, W, C16
    tensor = TensorMap(
        ElementType.U16, BASE, (6, 5, 3, 2), (192, 960, 2880), (8, 2, 3, 1), interleave=Interleave.B32,
        swizzle=Swizzle.B32,
    )  # fmt: skip
    assert not problems(tensor)
    assert tensor.box_bytes == 2 * 8 * 32
    shared = np.zeros(2048, np.uint8)
    load(plan_tile(tensor, (1, 2, 2, 1), 0), values.reshape(-1).view(np.uint8), BASE, shared)
    want = np.zeros((2, 8, 16), np.uint16)
    want[:, :5] = values[1, 2, 2:4, 1:6]
    got = _plain(shared, 0, tensor.box_bytes, Swizzle.B32).view(np.uint16)
    np.testing.assert_array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize(
    ("dtype", "operation", "old", "new", "want"),
    [
        (ElementType.U32, "add", 0xFFFFFFFF, 2, 1),
        (ElementType.S32, "min", 0xFFFFFFFF, 3, 0xFFFFFFFF),
        (ElementType.U32, "max", 0xFFFFFFFF, 3, 0xFFFFFFFF),
        (ElementType.U32, "inc", 4, 4, 0),
        (ElementType.U32, "inc", 3, 4, 4),
        (ElementType.U32, "dec", 0, 4, 4),
        (ElementType.U32, "dec", 3, 4, 2),
        (ElementType.U32, "dec", 9, 4, 4),
        (ElementType.U32, "and", 6, 3, 2),
        (ElementType.U32, "or", 6, 3, 7),
        (ElementType.U32, "xor", 6, 3, 5),
        (ElementType.F16, "add", 0x3C003C00, 0x40003C00, 0x42004000),
        (ElementType.BF16, "max", 0x3F80BF80, 0x40003F80, 0x40003F80),
        (ElementType.F32, "add", 0x3F800000, 0x3F800000, 0x40000000),
        (ElementType.TF32, "add", 0x3F800000, 0x3F802001, 0x40001000),
    ],
)
def test_reductions(dtype: ElementType, operation: str, old: int, new: int, want: int) -> None:
    count = 32 // dtype.bits
    tensor = TensorMap(dtype, BASE, (4 * count, 2), (16,), box=(4 * count, 2))
    memory = np.full(8, old, np.uint32).view(np.uint8)
    shared = np.full(8, new, np.uint32).view(np.uint8)
    reduce(plan_tile(tensor, (0, 1), 0), operation, memory, BASE, shared)
    assert memory.view(np.uint32).tolist() == [old] * 4 + [want] * 4


def image_map(shape: tuple[int, int, int, int], box: Im2col, stride: int = 1) -> tuple[TensorMap, Array]:
    return tensor_of(shape, im2col=box, element_strides=(1, stride, stride, 1))


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("tap", [(0, 0), (1, 2), (2, 1)])
@pytest.mark.parametrize("padding", [0, 1])
def test_im2col_is_the_unfold_of_a_convolution(padding: int, tap: tuple[int, int], stride: int) -> None:
    """Rows are output pixels in order; each holds the channels seen by this tap of a 3x3 filter."""
    count, height, width, channels = 3, 6, 7, 16
    lower, upper = (-padding,) * 2, (padding - 2,) * 2
    tensor, memory = image_map((count, height, width, channels), Im2col(lower, upper, 8, 32), stride)
    assert not problems(tensor)
    images = np.pad(numbers((count, height, width, channels)), ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))
    rows = [
        images[n, y + tap[1], x + tap[0], 8:16]
        for n in range(count)
        for y in range(0, height + 2 * padding - 2, stride)
        for x in range(0, width + 2 * padding - 2, stride)
    ]
    first = 5
    across = len(range(0, width + 2 * padding - 2, stride))
    down = len(range(0, height + 2 * padding - 2, stride))
    n, remainder = divmod(first, across * down)
    corner = (8, remainder % across * stride - padding, remainder // across * stride - padding, n)
    shared = np.zeros(512, np.uint8)
    load(plan_im2col(tensor, corner, 0, tap), memory, BASE, shared)
    want = [*rows[first : first + 32], *[np.zeros(8, np.uint16)] * 32][:32]
    np.testing.assert_array_equal(shared.view(np.uint16).reshape(32, 8), want)


def test_im2col_of_the_manuals_example() -> None:
    """Size 64 x 9 x 14 x 64, a box from -1 to the one but last, coordinates (N, H, W, C) = (7, 7, 4, 0)."""
    tensor, memory = image_map((64, 14, 9, 64), Im2col((-1, -1), (-1, -1), 8, 64))
    shared = np.zeros(1024, np.uint8)
    load(plan_im2col(tensor, (0, 4, 7, 7), 0, (0, 0)), memory, BASE, shared)
    got = shared.view(np.uint16).reshape(64, 8)
    images = numbers((64, 14, 9, 64))
    np.testing.assert_array_equal(got[:4], images[7, 7, 4:8, :8])
    assert not got[4].any()
    np.testing.assert_array_equal(got[5:13], images[7, 8, 0:8, :8])


def test_three_dimensional_images_and_stores() -> None:
    shape = (2, 4, 3, 5, 8)
    tensor, memory = tensor_of(shape, im2col=Im2col((0, 0, 0), (0, 0, 0), 8, 70))
    shared = np.zeros(2048, np.uint8)
    copy = plan_im2col(tensor, (0, 0, 0, 0, 1), 0)
    load(copy, memory, BASE, shared)
    got = shared[: 70 * 16].view(np.uint16).reshape(70, 8)
    np.testing.assert_array_equal(got[:60], numbers(shape)[1].reshape(60, 8))
    assert not got[60:].any()
    target = np.zeros_like(memory)
    store(copy, target, BASE, shared)
    np.testing.assert_array_equal(target[len(target) // 2 :], memory[len(target) // 2 :])
    assert not target[: len(target) // 2].any()


def test_wide_im2col_takes_a_halo_after_the_pixels() -> None:
    tensor, memory = tensor_of((8, 7, 9, 64), swizzle=Swizzle.B128, im2col=Im2col((0,), (0,), 64, 20, Im2colMode.W))
    assert not problems(tensor)
    shared = np.zeros(4096, np.uint8)
    load(plan_im2col(tensor, (0, 3, 2, 5), 0, (2, 0)), memory, BASE, shared)
    got = _plain(shared, 0, 22 * 128, Swizzle.B128).view(np.uint16).reshape(22, 64)
    images = numbers((8, 7, 9, 64))
    np.testing.assert_array_equal(got[:6], images[5, 2, 3:])
    np.testing.assert_array_equal(got[6:15], images[6, 2])
    np.testing.assert_array_equal(got[15:20], images[7, 2, :5])
    np.testing.assert_array_equal(got[20:], images[7, 2, 5:7])


def test_wide_im2col_of_128_pixels_takes_a_halo_after_every_32() -> None:
    box = Im2col((0,), (0,), 64, 1, Im2colMode.W128)
    tensor, memory = tensor_of((2, 2, 200, 64), swizzle=Swizzle.B128, im2col=box)
    shared = np.zeros(136 * 128, np.uint8)
    load(plan_im2col(tensor, (0, 10, 1, 1), 0, (2, 3)), memory, BASE, shared)
    got = _plain(shared, 0, 136 * 128, Swizzle.B128).view(np.uint16).reshape(4, 34, 64)
    row = numbers((2, 2, 200, 64))[1, 1]
    for run in range(4):
        np.testing.assert_array_equal(got[run], row[13 + 32 * run : 13 + 32 * run + 34])


def test_the_swizzle_goes_by_the_address() -> None:
    tensor, memory = tensor_of((8, 64), box=(64, 8), swizzle=Swizzle.B128)
    plain, offset_copy = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    load(plan_tile(tensor, (0, 0), 1024), memory, BASE, plain)
    load(plan_tile(tensor, (0, 0), 1024 + 128), memory, BASE, offset_copy)
    assert (plain[1024:2048] != offset_copy[1152:2176]).any()
    np.testing.assert_array_equal(_plain(offset_copy, 1152, 1024, Swizzle.B128).view(np.uint16), numbers((8 * 64,)))


def test_whole_boxes_move_in_units_of_16_bytes() -> None:
    tensor, _ = tensor_of((128, 64), box=(64, 64), swizzle=Swizzle.B128)
    assert plan_tile(tensor, (0, 0), 0).unit == 16
    assert plan_tile(tensor, (0, 0), 0).inside is None
    assert plan_tile(tensor, (4, 0), 0).unit == 8
    assert plan_tile(replace(tensor, swizzle=Swizzle.B128_ATOM_32B_FLIP_8B), (0, 0), 0).unit == 8


@pytest.mark.parametrize("step", [2, 3])
def test_interleaved_slices_are_traversed_in_steps(step: int) -> None:
    """Only interleaved maps have a step along their fastest dimension."""
    values = numbers((2, 3, 4, 9, 8))  # N, C/8, H, W, C8
    tensor = TensorMap(
        ElementType.U16, BASE, (9, 4, 3, 2), (144, 576, 1728), (8, 2, 1, 1), (step, 1, 1, 1), Interleave.B16
    )  # fmt: skip
    assert not problems(tensor)
    shared = np.full(256, 0xEE, np.uint8)
    load(plan_tile(tensor, (-1, 1, 2, 1), 0), values.reshape(-1).view(np.uint8), BASE, shared)
    places = np.arange(-1, 7, step)
    want = np.where(places[:, None] >= 0, values[1, 2, 1:3][:, places.clip(0)], 0)
    np.testing.assert_array_equal(shared[: want.nbytes].view(np.uint16).reshape(want.shape), want)
    assert (shared[want.nbytes :] == 0xEE).all()
