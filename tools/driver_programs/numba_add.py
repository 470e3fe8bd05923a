"""Adds vectors of 1,000 elements with numba-cuda: `numba_add.py N` adds N of them."""

import sys

import numpy as np
from numba import cuda


@cuda.jit
def add(a, b, c, count):
    i = cuda.grid(1)
    if i < count:
        c[i] = a[i] + b[i]


a = np.arange(1000, dtype=np.float32)
b = np.full_like(a, 0.5)
c = cuda.device_array_like(a)
add[4, 256](cuda.to_device(a), cuda.to_device(b), c, int(sys.argv[1]))
np.testing.assert_array_equal(c.copy_to_host(), a + b)
