"""A sum in Triton with a planted error: programs add to one number without an atomic operation."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_all(x, out, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)))
    tl.store(out, tl.load(out) + part)


x, out = torch.rand(4 * 128), torch.zeros(1)
sum_all[(4,)](x, out, BLOCK=128)
