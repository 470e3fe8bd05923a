"""Im2col copies: the pixels that one tap of a convolution's filter reads.

Manual: Tensors, im2col mode, im2col::w and im2col::w::128 modes. A row of shared memory is the channels of one pixel.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.engines.copies.plans import I64, Copy, assemble_rows
from pyptx.tensormap import Im2col, Im2colMode, TensorMap

W128_PIXELS = 128
W128_RUN = 32
"""Pixels before the halo of im2col::w::128."""


def plan_im2col(
    tensor: TensorMap, coordinates: tuple[int, ...], destination: int, offsets: tuple[int, ...] = ()
) -> Copy:
    """Return the copy of a column of pixels; coordinates are channel, W, H, D (as many as there are), image.

    `offsets` are the instruction's: those of the filter's tap along W, H, D; for the W modes, halo and W offset.
    Without any (`.im2col_no_offs`), the tap is the first.
    """
    box = tensor.im2col
    if box is None:
        raise ValueError("an im2col copy needs an im2col tensor map; got a tiled one")
    if box.mode is Im2colMode.IM2COL:
        places = _list_pixels(tensor, box, coordinates, offsets or (0,) * (tensor.rank - 2))
    else:
        places = _list_wide_pixels(tensor, box, coordinates, *(offsets or (0, 0)))
    inside = np.ones(len(places[0]), np.bool_)
    address = np.full(len(places[0]), tensor.address + coordinates[0] * tensor.dtype.bits // 8, np.int64)
    for place, size, stride in zip(places, tensor.dims[1:], tensor.strides, strict=True):
        inside &= (place >= 0) & (place < size)
        address += place * stride
    return assemble_rows(tensor, destination, coordinates[0], address, None if inside.all() else inside, box.channels)


def _list_pixels(tensor: TensorMap, box: Im2col, coordinates: tuple[int, ...], taps: tuple[int, ...]) -> list[I64]:
    """Return the coordinates of every pixel along W, H, D and N: the box is walked with W fastest."""
    carry = np.arange(box.pixels, dtype=np.int64)
    places: list[I64] = []
    axes = zip(coordinates[1:-1], tensor.dims[1:-1], tensor.element_strides[1:-1], box.lower, box.upper, strict=True)
    for (start, size, step, low, high), tap in zip(axes, taps, strict=True):
        place, carry = _walk_axis(carry, start, low, size - 1 + high, step)
        places.append(place + tap)
    return [*places, coordinates[-1] + carry]


def _walk_axis(count: I64, start: int, low: int, high: int, step: int) -> tuple[I64, I64]:
    """Return the positions of steps from `start` along an axis that wraps from `high` to `low`, and how often each
    wrapped."""
    first = max((high - start) // step + 1, 0)
    length = (high - low) // step + 1
    ahead = count - first
    wraps = np.where(ahead < 0, 0, ahead // length + 1)
    return np.where(ahead < 0, start + count * step, low + ahead % length * step), wraps


def _list_wide_pixels(tensor: TensorMap, box: Im2col, coordinates: tuple[int, ...], halo: int, shift: int) -> list[I64]:
    """Return the coordinates of pixels along W, image after image, with the halo after each run."""
    low, high = box.lower[0] + shift, tensor.dims[1] - 1 + box.upper[0] + shift
    step = tensor.element_strides[1]
    run, runs = (W128_RUN, W128_PIXELS // W128_RUN) if box.mode is Im2colMode.W128 else (box.pixels, 1)
    place, wraps = _walk_axis(np.arange(run * runs, dtype=np.int64), coordinates[1] + shift, low, high, step)
    place, wraps = place.reshape(runs, run), wraps.reshape(runs, run)
    beyond = place[:, -1:] + np.arange(1, halo + 1) * step
    place = np.concatenate([place, beyond], axis=1).ravel()
    wraps = np.concatenate([wraps, np.broadcast_to(wraps[:, -1:], beyond.shape)], axis=1).ravel()
    outer = [np.full(len(place), coordinate, np.int64) for coordinate in coordinates[2:-1]]
    return [place, *outer, coordinates[-1] + wraps]
