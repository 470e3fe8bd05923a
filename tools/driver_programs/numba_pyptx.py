"""Kernels of this package on arrays of numba-cuda, beside its own kernels: on the default stream, and on another."""

import numpy as np
from numba import cuda

from pyptx import Tile, kernel, ptx
from pyptx.types import f32


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=lambda n: (-(-n // 128),), block=(128, 1, 1))
def double(x, y):
    """y = 2 x"""
    px, py = ptx.global_ptrs(x, y)
    i = ptx.special.ctaid.x() * 128 + ptx.special.tid.x()
    with ptx.if_(i < x.shape[0]):
        ptx.st(f32, ptx.addr(py, i * 4), ptx.ld(f32, ptx.addr(px, i * 4)) * 2.0)


@cuda.jit
def increment(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += 1


host = np.arange(1000, dtype=np.float32)
x = cuda.to_device(host)
increment[8, 128](x)
y = double(x)
increment[8, 128](cuda.as_cuda_array(y))
np.testing.assert_array_equal(y.to_numpy(), 2 * (host + 1) + 1)

stream = cuda.stream()
x, y = cuda.to_device(host, stream=stream), cuda.device_array_like(host, stream=stream)
increment[8, 128, stream](x)
assert double(x, out=y) is y
increment[8, 128, stream](y)
np.testing.assert_array_equal(y.copy_to_host(stream=stream), 2 * (host + 1) + 1)
