"""Sums with numba-cuda: through shared memory, and with atomic operations."""

import numpy as np
from numba import cuda, float32, int32

BLOCK = 128


@cuda.jit
def sum_blocks(x, sums):
    """Add the elements of each block in a tree."""
    parts = cuda.shared.array(BLOCK, float32)
    i, lane = cuda.grid(1), cuda.threadIdx.x
    parts[lane] = x[i] if i < x.size else 0
    cuda.syncthreads()
    half = BLOCK // 2
    while half:
        if lane < half:
            parts[lane] += parts[lane + half]
        cuda.syncthreads()
        half //= 2
    if lane == 0:
        sums[cuda.blockIdx.x] = parts[0]


@cuda.jit
def count_values(values, counts, largest):
    """Count each value in shared memory, then in all of the grid; find the largest."""
    own = cuda.shared.array(16, int32)
    i, lane = cuda.grid(1), cuda.threadIdx.x
    if lane < 16:
        own[lane] = 0
    cuda.syncthreads()
    if i < values.size:
        cuda.atomic.add(own, values[i], 1)
        cuda.atomic.max(largest, 0, values[i])
    cuda.syncthreads()
    if lane < 16:
        cuda.atomic.add(counts, lane, own[lane])


random = np.random.default_rng(0)
x = random.integers(0, 100, 1000).astype(np.float32)
sums = cuda.device_array(8, np.float32)
sum_blocks[8, BLOCK](cuda.to_device(x), sums)
np.testing.assert_array_equal(sums.copy_to_host(), np.add.reduceat(x, range(0, 1000, BLOCK)))
values = random.integers(0, 16, 1000).astype(np.int32)
counts, largest = cuda.to_device(np.zeros(16, np.int32)), cuda.to_device(np.zeros(1, np.int32))
count_values[8, BLOCK](cuda.to_device(values), counts, largest)
np.testing.assert_array_equal(counts.copy_to_host(), np.bincount(values, minlength=16))
assert largest.copy_to_host()[0] == values.max()
