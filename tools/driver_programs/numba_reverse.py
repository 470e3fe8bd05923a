"""Reverses an array through shared memory with numba-cuda. A planted error: no barrier between writes and reads."""

import numpy as np
from numba import cuda, float32


@cuda.jit(lineinfo=True)
def reverse(x, out):
    tile = cuda.shared.array(64, float32)
    i = cuda.threadIdx.x
    tile[i] = x[i]
    out[i] = tile[63 - i]


x = cuda.to_device(np.arange(64, dtype=np.float32))
reverse[1, 64](x, cuda.device_array_like(x))
