"""Warp kernels in which a whole block works on a tile."""

import warp as wp

N = wp.constant(64)
M = wp.constant(8)


@wp.kernel
def tile_row_sums(x: wp.array(dtype=float, ndim=2), out: wp.array(dtype=float)):
    row = wp.tid()
    values = wp.tile_load(x[row], shape=N)
    wp.tile_store(out, wp.tile_sum(values), offset=row)


@wp.kernel
def tile_row_extremes(x: wp.array(dtype=float, ndim=2), low: wp.array(dtype=float), high: wp.array(dtype=float)):
    row = wp.tid()
    values = wp.tile_load(x[row], shape=N)
    wp.tile_store(low, wp.tile_min(values), offset=row)
    wp.tile_store(high, wp.tile_max(values), offset=row)


@wp.kernel
def tile_matmul(a: wp.array(dtype=float, ndim=2), b: wp.array(dtype=float, ndim=2), out: wp.array(dtype=float, ndim=2)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(M, M), dtype=float)
    for k in range(3):
        left = wp.tile_load(a, shape=(M, M), offset=(i * M, k * M))
        right = wp.tile_load(b, shape=(M, M), offset=(k * M, j * M))
        wp.tile_matmul(left, right, total)
    wp.tile_store(out, total, offset=(i * M, j * M))


@wp.func
def squash(x: float):
    return wp.tanh(x) + wp.exp(-x * x)


@wp.kernel
def tile_map_activation(x: wp.array(dtype=float, ndim=2), out: wp.array(dtype=float, ndim=2)):
    row = wp.tid()
    values = wp.tile_load(x[row], shape=N)
    wp.tile_store(out[row], wp.tile_map(squash, values))
