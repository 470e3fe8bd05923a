"""`cp.async.bulk.tensor`: copies boxes of tensors between global and shared memory, as described by tensor maps.

A tensor map is the register of `tensor.tma_desc()`, or the tensor itself. Coordinates start with the innermost
dimension.
"""

from __future__ import annotations

from pyptx.ptx.boxes import BOXES

__all__ = [
    "gather4_2d", "im2col_3d", "im2col_4d", "im2col_5d", "prefetch_1d", "prefetch_2d", "prefetch_3d", "prefetch_4d",
    "prefetch_5d", "reduce_1d", "reduce_2d", "reduce_3d", "reduce_4d", "reduce_5d", "scatter4_2d", "store_1d",
    "store_2d", "store_3d", "store_4d", "store_5d", "store_im2col_3d", "store_im2col_4d", "store_im2col_5d", "tile_1d",
    "tile_2d", "tile_3d", "tile_4d", "tile_5d",
]  # fmt: skip

tile_1d, tile_2d, tile_3d, tile_4d, tile_5d = (box.tile for box in BOXES)
im2col_3d, im2col_4d, im2col_5d = (box.im2col for box in BOXES[2:])
gather4_2d, scatter4_2d = BOXES[1].gather4, BOXES[1].scatter4
store_1d, store_2d, store_3d, store_4d, store_5d = (box.store_tile for box in BOXES)
store_im2col_3d, store_im2col_4d, store_im2col_5d = (box.store_im2col for box in BOXES[2:])
reduce_1d, reduce_2d, reduce_3d, reduce_4d, reduce_5d = (box.reduce for box in BOXES)
prefetch_1d, prefetch_2d, prefetch_3d, prefetch_4d, prefetch_5d = (box.prefetch for box in BOXES)


def __dir__() -> list[str]:
    return __all__
