"""Pallas kernels: some for the Triton lowering, some for Mosaic GPU with tensor maps, wgmma and tcgen05."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import triton as plt

SDS = jax.ShapeDtypeStruct


def _triton(kernel, out, grid, warps=4, **specs):
    name = kernel.__name__
    parameters = plt.CompilerParams(num_warps=warps, num_stages=2)
    return pl.pallas_call(kernel, out_shape=out, grid=grid, compiler_params=parameters, name=name, **specs)


def _add_rows(x, y, out):
    out[...] = x[...] + y[...]


def triton_add(x, y):
    block = pl.BlockSpec((128,), lambda i: (i,))
    return _triton(_add_rows, SDS(x.shape, x.dtype), (2,), in_specs=[block, block], out_specs=block)(x, y)


def _softmax_row(x, out):
    value = x[...]
    weight = jnp.exp(value - value.max(axis=-1, keepdims=True))
    out[...] = weight / weight.sum(axis=-1, keepdims=True)


def triton_softmax(x):
    block = pl.BlockSpec((1, 128), lambda i: (i, 0))
    return _triton(_softmax_row, SDS(x.shape, x.dtype), (4,), in_specs=[block], out_specs=block)(x)


def _matmul_tile(a, b, out):
    out[...] = pl.dot(a[...], b[...]).astype(out.dtype)


def triton_matmul(a, b):
    specs = [pl.BlockSpec((32, 64), lambda i, j: (i, 0)), pl.BlockSpec((64, 32), lambda i, j: (0, j))]
    out = pl.BlockSpec((32, 32), lambda i, j: (i, j))
    return _triton(_matmul_tile, SDS((64, 64), jnp.float32), (2, 2), in_specs=specs, out_specs=out)(a, b)


def _attention_tile(q, k, v, out):
    score = pl.dot(q[...], k[...].T) * 0.125
    weight = jnp.exp(score - score.max(axis=-1, keepdims=True))
    value = pl.dot(weight.astype(v.dtype), v[...]) / weight.sum(axis=-1, keepdims=True)
    out[...] = value.astype(out.dtype)


def triton_attention(q, k, v):
    rows, whole = pl.BlockSpec((32, 64), lambda i: (i, 0)), pl.BlockSpec((64, 64), lambda i: (0, 0))
    specs = [rows, whole, whole]
    return _triton(_attention_tile, SDS(q.shape, q.dtype), (2,), in_specs=specs, out_specs=rows)(q, k, v)


def _rmsnorm_row(x, weight, out):
    value = x[...]
    out[...] = value * jax.lax.rsqrt((value * value).mean(axis=-1, keepdims=True) + 1e-5) * weight[...]


def triton_rmsnorm(x, weight):
    row, whole = pl.BlockSpec((1, 128), lambda i: (i, 0)), pl.BlockSpec((128,), lambda i: (0,))
    return _triton(_rmsnorm_row, SDS(x.shape, x.dtype), (4,), warps=1, in_specs=[row, whole], out_specs=row)(x, weight)


def _mosaic(kernel, out, grid, **specs):
    return pl.pallas_call(
        kernel, out_shape=out, grid=grid, compiler_params=plgpu.CompilerParams(), name=kernel.__name__, **specs
    )


def mosaic_add(x, y):
    block = pl.BlockSpec((128,), lambda i: (i,))
    return _mosaic(_add_rows, SDS(x.shape, x.dtype), (2,), in_specs=[block, block], out_specs=block)(x, y)


def _exp_rows(x, out):
    out[...] = jnp.exp(x[...]) + jnp.tanh(x[...])


def mosaic_exp(x):
    block = pl.BlockSpec((64, 64), lambda i: (i, 0))
    return _mosaic(_exp_rows, SDS(x.shape, x.dtype), (2,), in_specs=[block], out_specs=block)(x)


def _softmax_wide(x, out):
    value = plgpu.load(x, (), layout=plgpu.Layout.WGMMA)
    top = value.max(axis=-1)
    weight = jnp.exp(value - jax.lax.broadcast_in_dim(top, value.shape, (0,)))
    total = jax.lax.broadcast_in_dim(weight.sum(axis=-1), value.shape, (0,))
    out[...] = weight / total


def mosaic_softmax(x):
    transforms = (plgpu.TilingTransform((8, 32)), plgpu.SwizzleTransform(128))
    block = plgpu.BlockSpec((64, 64), lambda i: (i, 0), transforms=transforms)
    return _mosaic(_softmax_wide, SDS(x.shape, x.dtype), (2,), in_specs=[block], out_specs=block)(x)


def _wgmma_tile(steps, a, b, out, total):
    plgpu.wgmma(total, a, b)

    @pl.when(pl.program_id(0) == steps - 1)
    def _():
        out[...] = total[...].astype(out.dtype)


def mosaic_wgmma(a, b):
    """One 64 x 64 tile in two steps along the depth, operands by tensor map with 128-byte swizzle."""
    transforms = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))
    kernel = functools.partial(_wgmma_tile, 2)
    kernel.__name__ = "wgmma_tile"
    return _mosaic(
        kernel,
        SDS((64, 64), a.dtype),
        (2,),
        in_specs=[
            plgpu.BlockSpec((64, 64), lambda k: (0, k), transforms=transforms),
            plgpu.BlockSpec((64, 64), lambda k: (k, 0), transforms=transforms),
        ],
        out_specs=plgpu.BlockSpec((64, 64), lambda k: (0, 0), transforms=transforms),
        scratch_shapes=[plgpu.ACC((64, 64), jnp.float32)],
    )(a, b)


def mosaic_tcgen05(a, b):
    """One 128 x 128 product into tensor memory and back."""
    transforms = (plgpu.TilingTransform((8, 64)), plgpu.SwizzleTransform(128))

    def kernel(a_global, b_global, out_global, a_tile, b_tile, columns, out_tile, full_a, full_b, done):
        plgpu.copy_gmem_to_smem(a_global, a_tile, full_a)
        plgpu.copy_gmem_to_smem(b_global, b_tile, full_b)
        plgpu.barrier_wait(full_a)
        plgpu.barrier_wait(full_b)
        plgpu.tcgen05_mma(columns, a_tile, b_tile, done, accumulate=False)
        plgpu.barrier_wait(done)
        out_tile[...] = plgpu.async_load_tmem(columns).astype(out_tile.dtype)
        plgpu.commit_smem()
        plgpu.copy_smem_to_gmem(out_tile, out_global)
        plgpu.wait_smem_to_gmem(0)

    return plgpu.kernel(
        kernel,
        out_type=SDS((128, 128), a.dtype),
        scratch_types=[
            plgpu.SMEM((128, 64), a.dtype, transforms=transforms),
            plgpu.SMEM((64, 128), b.dtype, transforms=transforms),
            plgpu.TMEM((128, 128), jnp.float32),
            plgpu.SMEM((128, 128), a.dtype, transforms=transforms),
            plgpu.Barrier(),
            plgpu.Barrier(),
            plgpu.Barrier(orders_tensor_core=True),
        ],
    )(a, b)
