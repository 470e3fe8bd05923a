"""Kernels of numba-cuda with one planted error each: `numba_bugs.py NAME` launches one."""

import sys

import numpy as np
from numba import cuda, float32

SIZE = 64


@cuda.jit(lineinfo=True)
def scale(x):
    """Double the elements, and one more."""
    i = cuda.threadIdx.x
    if i <= x.size:
        x[i] = 2 * x[i]


@cuda.jit(lineinfo=True)
def reverse(x, out):
    """Reverse through shared memory, without a barrier between writes and reads."""
    tile = cuda.shared.array(SIZE, float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    out[i] = tile[SIZE - 1 - i]


@cuda.jit(lineinfo=True)
def count(x, total):
    """Count in one number without an atomic operation."""
    if x[cuda.threadIdx.x] > 0:
        total[0] += 1


@cuda.jit(lineinfo=True)
def shift(x, out):
    """Nothing is wrong here: two launches in two streams race."""
    out[cuda.threadIdx.x] = x[cuda.threadIdx.x] + 1


x, y, z = (cuda.to_device(np.ones(SIZE, np.float32)) for _ in range(3))
stream, other = cuda.stream(), cuda.stream()
match sys.argv[1]:
    case "scale":
        scale[1, 2 * SIZE](x)
    case "reverse":
        reverse[1, SIZE](x, y)
    case "count":
        count[1, SIZE](x, y)
    case "shift":
        shift[1, SIZE, stream](x, y)
        shift[1, SIZE, other](y, z)  # planted: this stream waits for nothing
    case "early":
        managed = cuda.managed_array(SIZE, np.float32)
        shift[1, SIZE](x, managed)
        assert managed[1] == 2  # planted: the kernel may not have run
    case "change":
        on_host = cuda.pinned_array(SIZE, np.float32)
        on_host[:] = 1
        y.copy_to_device(on_host, stream=stream)
        on_host[:] = 2  # planted: the copy may not have read it
cuda.synchronize()
