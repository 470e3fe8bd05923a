"""A matrix product of TileLang, for the architecture that the only argument names."""

import sys

import numpy as np
import tilelang
import tilelang.language as T
from tilelang import tvm

SIZE = 128


@T.prim_func
def multiply(
    a: T.Tensor((SIZE, SIZE), "float16"), b: T.Tensor((SIZE, SIZE), "float16"), c: T.Tensor((SIZE, SIZE), "float32")
):
    with T.Kernel(2, 2, threads=128) as (column, row):
        rows = T.alloc_shared((64, 32), "float16")
        columns = T.alloc_shared((32, 64), "float16")
        sums = T.alloc_fragment((64, 64), "float32")
        T.clear(sums)
        for k in T.Pipelined(SIZE // 32, num_stages=2):
            T.copy(a[row * 64, k * 32], rows)
            T.copy(b[k * 32, column * 64], columns)
            T.gemm(rows, columns, sums)
        T.copy(sums, c[row * 64, column * 64])


kernel = tilelang.compile(multiply, target={"kind": "cuda", "arch": sys.argv[1]}, execution_backend="tvm_ffi")
random = np.random.default_rng(0)
factors = [random.standard_normal((SIZE, SIZE)).astype(np.float16) for _ in range(2)]
a, b, c = (tvm.runtime.tensor(x, tvm.cuda(0)) for x in (*factors, np.zeros((SIZE, SIZE), np.float32)))
kernel(a, b, c)
np.testing.assert_allclose(c.numpy(), factors[0].astype(np.float64) @ factors[1], rtol=1e-4, atol=1e-4)
