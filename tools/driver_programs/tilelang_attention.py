"""Causal attention of TileLang, block by block of the keys, for the architecture that the only argument names."""

import sys

import numpy as np
import tilelang
import tilelang.language as T
from tilelang import tvm

HEADS, LENGTH, WIDTH, TILE = 2, 128, 64, 64
SCALE = WIDTH**-0.5 / np.log(2)
"""Scores are multiplied by this, for powers of two."""
SHAPE = HEADS, LENGTH, WIDTH


@T.prim_func
def attend(
    q: T.Tensor(SHAPE, "float16"), k: T.Tensor(SHAPE, "float16"), v: T.Tensor(SHAPE, "float16"),
    out: T.Tensor(SHAPE, "float32"),
):  # fmt: skip
    with T.Kernel(LENGTH // TILE, HEADS, threads=128) as (tile, head):
        queries = T.alloc_shared((TILE, WIDTH), "float16")
        keys = T.alloc_shared((TILE, WIDTH), "float16")
        values = T.alloc_shared((TILE, WIDTH), "float16")
        scores = T.alloc_fragment((TILE, TILE), "float32")
        weights = T.alloc_fragment((TILE, TILE), "float16")
        sums = T.alloc_fragment((TILE, WIDTH), "float32")
        maximum = T.alloc_fragment((TILE,), "float32")
        previous = T.alloc_fragment((TILE,), "float32")
        factor = T.alloc_fragment((TILE,), "float32")
        added = T.alloc_fragment((TILE,), "float32")
        total = T.alloc_fragment((TILE,), "float32")
        T.copy(q[head, tile * TILE : (tile + 1) * TILE, :], queries)
        T.clear(sums)
        T.clear(total)
        T.fill(maximum, -T.infinity("float32"))
        for block in T.Pipelined(tile + 1, num_stages=2):
            T.copy(k[head, block * TILE : (block + 1) * TILE, :], keys)
            T.copy(v[head, block * TILE : (block + 1) * TILE, :], values)
            T.clear(scores)
            # A warp has whole rows: with the default, TileLang 0.1.15 finds no layout of the weights for sm_100a.
            T.gemm(queries, keys, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(TILE, TILE):
                scores[i, j] = T.if_then_else(
                    tile * TILE + i >= block * TILE + j, scores[i, j] * SCALE, -T.infinity("float32")
                )
            T.copy(maximum, previous)
            T.reduce_max(scores, maximum, dim=1, clear=False)
            for i in T.Parallel(TILE):
                factor[i] = T.exp2(previous[i] - maximum[i])
            for i, j in T.Parallel(TILE, TILE):
                scores[i, j] = T.exp2(scores[i, j] - maximum[i])
            T.reduce_sum(scores, added, dim=1)
            for i in T.Parallel(TILE):
                total[i] = total[i] * factor[i] + added[i]
            for i, j in T.Parallel(TILE, WIDTH):
                sums[i, j] *= factor[i]
            T.copy(scores, weights)
            T.gemm(weights, values, sums, policy=T.GemmWarpPolicy.FullRow)
        for i, j in T.Parallel(TILE, WIDTH):
            sums[i, j] /= total[i]
        T.copy(sums, out[head, tile * TILE : (tile + 1) * TILE, :])


kernel = tilelang.compile(attend, target={"kind": "cuda", "arch": sys.argv[1]}, execution_backend="tvm_ffi")
random = np.random.default_rng(0)
inputs = [random.standard_normal(SHAPE).astype(np.float16) for _ in range(3)]
arrays = [tvm.runtime.tensor(x, tvm.cuda(0)) for x in (*inputs, np.zeros(SHAPE, np.float32))]
kernel(*arrays)
q, k, v = (x.astype(np.float64) for x in inputs)
weights = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(WIDTH)) * np.tri(LENGTH)
weights /= weights.sum(2, keepdims=True)
# The kernel rounds each weight to 11 bits.
assert (abs(arrays[3].numpy() - weights @ v) <= 2**-10 * (weights @ abs(v))).all()
