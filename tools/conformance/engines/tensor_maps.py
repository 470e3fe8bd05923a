"""Random tensor maps, tiled and im2col, of small tensors whose boxes fit in the kernels' shared memory."""

from __future__ import annotations

from math import gcd
from random import Random

from pyptx.tensormap import (
    ElementType,
    Fill,
    Im2col,
    Im2colMode,
    Interleave,
    L2Promotion,
    Swizzle,
    TensorMap,
    problems,
)
from tools.conformance.engines.text import BOX

TYPES = tuple(element for element in ElementType if element <= ElementType.TF32_FTZ)
MEMORY = 65536
"""Bytes in which a tensor must fit."""


def measure(tensor: TensorMap) -> int:
    """Return the bytes from the first to the last element."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.dims[1:], tensor.strides, strict=True))
    return last + tensor.dims[0] * (tensor.interleave.slice_bytes or tensor.dtype.bits // 8)


def draw_tiled(
    random: Random, rank: int, dtype: ElementType | None = None, *, overlap: bool = False, interleaved: bool = False
) -> TensorMap:  # fmt: skip
    """Return a valid tiled map."""
    while True:
        interleave = random.choice((Interleave.B16, Interleave.B32)) if interleaved else Interleave.NONE
        tensor = _draw_tiled(random, rank, dtype or random.choice(TYPES), interleave, overlap)
        if not problems(tensor) and tensor.footprint <= BOX // 2 and measure(tensor) <= MEMORY:
            return tensor


def _draw_tiled(random: Random, rank: int, dtype: ElementType, interleave: Interleave, overlap: bool) -> TensorMap:
    size = dtype.bits // 8
    swizzle = random.choice([Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128])
    if interleave is Interleave.B32:
        swizzle = Swizzle.B32
    unit = 16 // gcd(16, size)
    if interleave is not Interleave.NONE:
        slice_bytes = 16 if interleave is Interleave.B16 else 32
        inner, box_inner = slice_bytes // size, slice_bytes // size
        if random.random() < 0.3:
            inner = random.randint(1, 4 * inner)
    else:
        inner = random.randint(1, 200 // size + 8)
        box_inner = unit * random.randint(1, max(1, (swizzle.span or 192) // (unit * size)))
    most = {1: 1, 2: 40, 3: 12, 4: 7, 5: 5}[rank]
    dims = (inner, *(random.randint(1, most) for _ in range(rank - 1)))
    box = (box_inner, *(random.randint(1, most + 2) for _ in range(rank - 1)))
    steps = (1,) * rank
    if random.random() < 0.35:
        steps = tuple(random.choice((1, 1, 2, 3, random.randint(1, 8))) for _ in range(rank))
    return TensorMap(
        dtype, 16 * random.randrange(0, 8) if interleave is not Interleave.B32 else 32 * random.randrange(4),
        dims, _draw_strides(random, dims, size, 32 if interleave is Interleave.B32 else 16, overlap), box, steps,
        interleave, swizzle, random.choice(list(L2Promotion)),
        Fill.NAN if dtype.is_float and random.random() < 0.4 else Fill.ZERO,
    )  # fmt: skip


def _draw_strides(random: Random, dims: tuple[int, ...], size: int, unit: int, overlap: bool) -> tuple[int, ...]:
    """Return strides of a tensor with random padding; with `overlap`, of any order and size."""
    strides: list[int] = []
    extent = dims[0] * size
    for count in dims[1:]:
        stride = -(-extent // unit) * unit + unit * random.choice((0, 0, 1, 3))
        if overlap and random.random() < 0.3:
            stride = unit * random.randrange(0, 20)
        strides.append(stride)
        extent = stride * (count - 1) + extent
    return tuple(strides)


def draw_corner(random: Random, tensor: TensorMap, *, stores: bool = False) -> tuple[int, ...]:
    """Return coordinates of a box that is inside the tensor, partly outside, or wholly outside. Without interleave, the
    device takes only first coordinates that are multiples of 16 bytes; of a store, it takes no negative ones."""
    style = random.random()
    corner: list[int] = []
    for size, box, step in zip(tensor.dims, tensor.box, tensor.element_strides, strict=True):
        inside = random.randint(0, max(0, size - 1))
        near = random.randint(-box, size + 1)
        far = random.choice((-(2**31), -70_000, -257, 300, 65_536, 2**31 - 1 - box * step))
        pick = random.random()
        corner.append(0 if style < 0.2 else near if pick < 0.6 else far if pick > 0.97 else inside)
    if stores:
        corner = [max(place, 0) for place in corner]
    if tensor.interleave is Interleave.NONE:
        corner[0] = align_first(tensor, corner[0])
    return tuple(corner)


def align_first(tensor: TensorMap, place: int) -> int:
    """Return a place along the first dimension that is a multiple of 16 bytes."""
    return place // (16 * 8 // tensor.dtype.bits) * (16 * 8 // tensor.dtype.bits)


def draw_im2col(random: Random, rank: int, dtype: ElementType | None = None) -> TensorMap:
    """Return a valid im2col map: dimensions are channels, W, H, D, and images."""
    while True:
        tensor = _draw_im2col(random, rank, dtype or random.choice(TYPES))
        if not problems(tensor) and tensor.footprint <= BOX // 2 and measure(tensor) <= MEMORY:
            return tensor


def _draw_im2col(random: Random, rank: int, dtype: ElementType) -> TensorMap:
    size = dtype.bits // 8
    swizzle = random.choice([Swizzle.NONE, Swizzle.B32, Swizzle.B64, Swizzle.B128])
    unit = 16 // gcd(16, size)
    channels = unit * random.randint(1, max(1, (swizzle.span or 96) // (unit * size)))
    most = {3: 20, 4: 9, 5: 6}[rank]
    spatial = [random.randint(2, most) for _ in range(rank - 2)]
    dims = (random.randint(1, 2 * channels), *spatial, random.randint(1, 4))
    lower = tuple(random.randint(-3, 1) for _ in spatial)
    upper = tuple(random.randint(-4, 2) for _ in spatial)
    steps = (1,) * rank
    if random.random() < 0.35:
        steps = (1, *(random.choice((1, 1, 2, 3)) for _ in spatial), 1)
    return TensorMap(
        dtype, 16 * random.randrange(0, 8), dims, _draw_strides(random, dims, size, 16, False), (), steps,
        Interleave.NONE, swizzle, random.choice(list(L2Promotion)),
        Fill.NAN if dtype.is_float and random.random() < 0.4 else Fill.ZERO,
        Im2col(lower, upper, channels, random.randint(1, 80), Im2colMode.IM2COL),
    )  # fmt: skip


def draw_pixel(random: Random, tensor: TensorMap) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the coordinates of the first pixel, in the bounding box, and the offsets of a tap of the filter."""
    box = tensor.im2col
    assert box is not None
    places: list[int] = []
    axes = zip(tensor.dims[1:-1], box.lower, box.upper, tensor.element_strides[1:-1], strict=True)
    for size, low, high, step in axes:
        last = max(low, size - 1 + high)
        places.append(low + step * random.randint(0, (last - low) // step))
    channel = random.choice((0, 0, random.randint(-4, tensor.dims[0] + 2)))
    image = random.choice((0, random.randint(-1, tensor.dims[-1])))
    return (align_first(tensor, channel), *places, image), tuple(random.randint(0, 4) for _ in places)
