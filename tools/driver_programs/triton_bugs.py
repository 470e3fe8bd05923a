"""Kernels of Triton, and of Gluon, with one planted error each: `triton_bugs.py NAME` launches one."""

import sys

import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

BLOCK = 128


@triton.jit
def scale(x, out, BLOCK: tl.constexpr):
    """Double the elements, with no mask."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, 2 * tl.load(x + offsets))


@triton.jit
def sum_all(x, out, BLOCK: tl.constexpr):
    """Add to one number without an atomic operation."""
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)))
    tl.store(out, tl.load(out) + part)


@gluon.jit
def load(x, out, BLOCK: gl.constexpr):
    """Copy a tile with a tensor map, and wait for it only after it has been read."""
    layout: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    tile = gl.allocate_shared_memory(x.dtype, x.block_type.shape, x.layout)
    arrival = mbarrier.allocate_mbarrier()
    mbarrier.init(arrival, count=1)
    mbarrier.expect(arrival, x.block_type.nbytes)
    tma.async_load(x, [0, 0], arrival, tile)
    value = tile.load(layout)
    mbarrier.wait(arrival, phase=0)
    rows = gl.arange(0, BLOCK, gl.SliceLayout(1, layout))
    cols = gl.arange(0, BLOCK, gl.SliceLayout(0, layout))
    gl.store(out + rows[:, None] * BLOCK + cols[None, :], value)


match sys.argv[1]:
    case "scale":
        x = torch.rand(1000)
        scale[(8,)](x, torch.empty(1024), BLOCK=BLOCK)
    case "sum":
        sum_all[(4,)](torch.rand(4 * BLOCK), torch.zeros(1), BLOCK=BLOCK)
    case "load":
        x, shape = torch.rand(32, 32), [32, 32]
        layout = gl.NVMMASharedLayout.get_default_for(shape, gl.float32)
        load[(1,)](TensorDescriptor.from_tensor(x, shape, layout), torch.empty(32, 32), BLOCK=32)
