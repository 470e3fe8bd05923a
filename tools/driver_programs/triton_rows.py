"""Kernels of Triton on rows of tensors, compared with PyTorch: sum of vectors, softmax, variance, layer normalization
with the gradients of its weights summed under locks."""

import torch
import triton
import triton.language as tl

from tools.corpus.python_producers.triton_kernels.pointwise import vector_add
from tools.corpus.python_producers.triton_kernels.rows import (
    layernorm_backward,
    layernorm_forward,
    softmax_rows,
    welford_rows,
)


@triton.jit
def sum_weight_gradients(x, dout, mean, rstd, dweight, dbias, locks, cols, SLOTS: tl.constexpr, BLOCK: tl.constexpr):
    """Add a row to the sums of its slot; a lock serves the rows of a slot one after another."""
    row = tl.program_id(0)
    slot = row % SLOTS
    columns = tl.arange(0, BLOCK)
    keep = columns < cols
    hat = (tl.load(x + row * cols + columns, mask=keep, other=0.0) - tl.load(mean + row)) * tl.load(rstd + row)
    grad = tl.load(dout + row * cols + columns, mask=keep, other=0.0)
    while tl.atomic_cas(locks + slot, 0, 1) == 1:
        pass
    weights = dweight + slot * cols + columns
    biases = dbias + slot * cols + columns
    tl.store(weights, tl.load(weights, mask=keep, other=0.0) + hat * grad, mask=keep)
    tl.store(biases, tl.load(biases, mask=keep, other=0.0) + grad, mask=keep)
    tl.debug_barrier()
    tl.atomic_xchg(locks + slot, 0)


def check_sum() -> None:
    x, y = torch.rand(5000), torch.rand(5000)
    out = torch.empty_like(x)
    vector_add[(triton.cdiv(5000, 1024),)](x, y, out, 5000, BLOCK=1024)
    torch.testing.assert_close(out, x + y, rtol=0, atol=0)


def check_softmax() -> None:
    x = torch.randn(23, 781)
    out = torch.empty_like(x)
    softmax_rows[(23,)](x, out, 781, BLOCK=1024, num_warps=8)
    torch.testing.assert_close(out, torch.softmax(x, 1))


def check_variance() -> None:
    x = torch.randn(5, 1000) + 7
    mean, variance = torch.empty(5), torch.empty(5)
    welford_rows[(5,)](x, mean, variance, 1000, BLOCK=1024)
    torch.testing.assert_close(mean, x.mean(1))
    torch.testing.assert_close(variance, x.var(1, correction=0))


def check_layer_norm() -> None:
    rows, cols, slots, block = 12, 200, 4, 256
    x = torch.randn(rows, cols, requires_grad=True)
    weight, bias = torch.rand(cols, requires_grad=True), torch.rand(cols, requires_grad=True)
    dout = torch.randn(rows, cols)
    out, dx = torch.empty(rows, cols), torch.empty(rows, cols)
    mean, rstd = torch.empty(rows), torch.empty(rows)
    dweight, dbias = torch.zeros(slots, cols), torch.zeros(slots, cols)
    layernorm_forward[(rows,)](x.detach(), weight.detach(), bias.detach(), out, mean, rstd, cols, 1e-5, BLOCK=block)
    layernorm_backward[(rows,)](x.detach(), dout, weight.detach(), mean, rstd, dx, cols, BLOCK=block)
    locks = torch.zeros(slots, dtype=torch.int32)
    sum_weight_gradients[(rows,)](
        x.detach(), dout, mean, rstd, dweight, dbias, locks, cols, SLOTS=slots, BLOCK=block
    )  # fmt: skip
    expected = torch.nn.functional.layer_norm(x, (cols,), weight, bias)
    expected.backward(dout)
    torch.testing.assert_close(out, expected.detach())
    torch.testing.assert_close(dx, x.grad)
    torch.testing.assert_close(dweight.sum(0), weight.grad)
    torch.testing.assert_close(dbias.sum(0), bias.grad)
    assert not locks.any()


torch.manual_seed(0)
check_sum()
check_softmax()
check_variance()
check_layer_norm()
