"""Derives a tensor map from a `Tile` and an address: the order of dimensions, the rank-3 view, the modes, the box."""

from __future__ import annotations

from math import prod

from pyptx.diagnostics import PtxError
from pyptx.specs import PADDED_WIDTH, RESHAPED_WIDTH, Layout, Tile
from pyptx.tensormap import rules
from pyptx.tensormap.maps import TensorMap
from pyptx.tensormap.modes import Interleave, L2Promotion, Swizzle, element_type
from pyptx.tensormap.requirements import validate

_SWIZZLE = {Layout.TMA_128B: Swizzle.B128, Layout.TMA_64B: Swizzle.B64, Layout.TMA_32B: Swizzle.B32}


def tensor_map(
    tile: Tile, env: dict[str, int], address: int, *, l2_promotion: L2Promotion = L2Promotion.NONE
) -> TensorMap:
    """Return the map of a contiguous tensor of this tile at this address; PtxError with everything that the driver
    would reject. `env` binds the tile's names, including those of its box."""
    element = element_type(tile.dtype)
    dims, box = _order_fastest_first(tile, tile.resolve_shape(env)), _order_fastest_first(tile, tile.resolve_box(env))
    strides = tuple(prod(dims[:i]) * element.bits // 8 for i in range(1, len(dims)))
    if tile.tma_rank == 3:
        _check_whole_columns(dims[0], box[0])
        dims = (RESHAPED_WIDTH, dims[1], dims[0] // RESHAPED_WIDTH)
        strides = (strides[0], RESHAPED_WIDTH * element.bits // 8)
        box = (PADDED_WIDTH if tile.tma_padding else RESHAPED_WIDTH, box[1], box[0] // RESHAPED_WIDTH)
    swizzle, interleave = _SWIZZLE.get(tile.layout, Swizzle.NONE), Interleave.NONE
    if tile.layout is Layout.INTERLEAVED:
        interleave, swizzle = _choose_interleave(tile, dims[0] * element.bits, box[0] * element.bits)
        # A slice is not a dimension of the map: its first one counts slices side by side.
        dims, strides, box = dims[1:], strides[1:], box[1:]
        _check_single_slice(tile, box)
    return validate(
        TensorMap(
            element, address, dims, strides, box, swizzle=swizzle, interleave=interleave, l2_promotion=l2_promotion
        )
    )


def _choose_interleave(tile: Tile, bits: int, box_bits: int) -> tuple[Interleave, Swizzle]:
    """Return the interleave for slices of this many bits, and the swizzle that it needs."""
    slices = {16 * 8: (Interleave.B16, Swizzle.NONE), 32 * 8: (Interleave.B32, Swizzle.B32)}
    if bits not in slices or tile.tma_rank != 2:
        problem = f"it is {bits / 8:g} bytes" if bits not in slices else f"tma_rank is {tile.tma_rank}"
        message = (
            f"the last dimension of an interleaved tensor must be a slice of 16 or 32 bytes: {problem} in {tile!r}"
        )
        widths = " or ".join(str(width // tile.dtype.bits) for width in slices)
        remedy = f"reshape the channels into slices of {widths} elements: (N, C/{128 // tile.dtype.bits}, H, W, …)"
        raise PtxError([rules.INTERLEAVE.report(None, message, help=remedy)])
    if box_bits != bits:
        message = f"a box must contain whole slices of {bits // 8} bytes, got {box_bits / 8:g} in {tile!r}"
        raise PtxError([rules.INTERLEAVE.report(None, message, help="end tma_box with the size of the last dimension")])
    return slices[bits]


def _check_single_slice(tile: Tile, box: tuple[int, ...]) -> None:
    if len(box) > 2 and box[-2] != 1:
        message = f"a box has one slice of each position, got {box[-2]} in {tile!r}"
        help = "make the second dimension of tma_box 1, and copy slice by slice"
        raise PtxError([rules.INTERLEAVE.report(None, message, help=help)])


def _order_fastest_first(tile: Tile, dims: tuple[int, ...]) -> tuple[int, ...]:
    return dims if tile.layout is Layout.COL else dims[::-1]


def _check_whole_columns(*widths: int) -> None:
    for width in widths:
        if width % RESHAPED_WIDTH:
            message = (
                f"the rank-3 view splits columns into groups of {RESHAPED_WIDTH}, but {width} is not a multiple "
                f"of {RESHAPED_WIDTH}"
            )
            raise PtxError([rules.SIZE.report(None, message, help="pad the columns, or use tma_rank=2")])
