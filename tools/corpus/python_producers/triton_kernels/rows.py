"""Triton kernels that reduce or transform the rows of a matrix: softmax, norms, losses, top-k, sorting, scans."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def softmax_rows(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    value = tl.exp(value - tl.max(value, axis=0))
    tl.store(out + row * cols + at, value / tl.sum(value, axis=0), mask=at < cols)


@triton.jit
def online_logsumexp(x, out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
        new_top = tl.maximum(top, tl.max(value, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(value - new_top), axis=0)
        top = new_top
    tl.store(out + row, top + tl.log(total))


@triton.jit
def layernorm_forward(x, weight, bias, out, mean_out, rstd_out, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < cols
    value = tl.load(x + row * cols + at, mask=keep, other=0.0)
    mean = tl.sum(value, axis=0) / cols
    centred = tl.where(keep, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, axis=0) / cols + eps)
    scaled = centred * rstd * tl.load(weight + at, mask=keep, other=0.0) + tl.load(bias + at, mask=keep, other=0.0)
    tl.store(out + row * cols + at, scaled, mask=keep)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)


@triton.jit
def layernorm_backward(x, dout, weight, mean, rstd, dx, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < cols
    scale = tl.load(rstd + row)
    hat = (tl.load(x + row * cols + at, mask=keep, other=0.0) - tl.load(mean + row)) * scale
    grad = tl.load(dout + row * cols + at, mask=keep, other=0.0) * tl.load(weight + at, mask=keep, other=0.0)
    hat = tl.where(keep, hat, 0.0)
    along = tl.sum(hat * grad, axis=0) / cols
    across = tl.sum(grad, axis=0) / cols
    tl.store(dx + row * cols + at, (grad - hat * along - across) * scale, mask=keep)


@triton.jit
def rmsnorm(x, weight, out, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < cols
    value = tl.load(x + row * cols + at, mask=keep, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / cols + eps)
    weighted = value * scale * tl.load(weight + at, mask=keep, other=0.0).to(tl.float32)
    tl.store(out + row * cols + at, weighted.to(tl.bfloat16), mask=keep)


@triton.jit
def cross_entropy(logits, labels, loss, grad, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(logits + row * cols + at, mask=at < cols, other=-float("inf"))
    label = tl.load(labels + row)
    top = tl.max(value, axis=0)
    total = tl.sum(tl.exp(value - top), axis=0)
    chosen = tl.sum(tl.where(at == label, value, 0.0), axis=0)
    tl.store(loss + row, tl.log(total) + top - chosen)
    delta = tl.exp(value - top) / total - tl.where(at == label, 1.0, 0.0)
    tl.store(grad + row * cols + at, delta, mask=at < cols)


@triton.jit
def argmax_rows(x, out_value, out_index, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=-float("inf"))
    best, where = tl.max(value, axis=0, return_indices=True)
    tl.store(out_value + row, best)
    tl.store(out_index + row, where)


@triton.jit
def sort_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def topk_rows(x, out, BLOCK: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    value = tl.load(x + row * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + row * K + tl.arange(0, K), tl.topk(value, K))


@triton.jit
def quantise_rows(x, out, scales, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * cols + at, mask=at < cols, other=0.0)
    scale = tl.maximum(tl.max(tl.abs(value), axis=0), 1e-8) / 127.0
    tl.store(scales + row, scale)
    level = tl.floor(value / scale + 0.5)
    tl.store(out + row * cols + at, level.to(tl.int8), mask=at < cols)


@triton.jit
def quantise_fp8(x, out, scales, BLOCK: tl.constexpr):
    group = tl.program_id(0)
    at = group * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    scale = tl.max(tl.abs(value), axis=0) / 448.0
    tl.store(scales + group, scale)
    tl.store(out + at, (value / scale).to(tl.float8e4nv))


@triton.jit
def _welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def welford_rows(x, mean_out, var_out, cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < cols
    value = tl.load(x + row * cols + at, mask=keep, other=0.0)
    zero = tl.zeros([BLOCK], tl.float32)
    mean, m2, count = tl.reduce((value, zero, keep.to(tl.float32)), 0, _welford)
    tl.store(mean_out + row, mean)
    tl.store(var_out + row, m2 / count)


@triton.jit
def cumsum_rows(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def _affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def linear_recurrence(decay, x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, state = tl.associative_scan((tl.load(decay + at), tl.load(x + at)), 0, _affine)
    tl.store(out + at, state)


@triton.jit
def _segment(value_a, flag_a, value_b, flag_b):
    return tl.where(flag_b != 0, value_b, value_a + value_b), flag_a | flag_b


@triton.jit
def segmented_scan(x, flags, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total, _ = tl.associative_scan((tl.load(x + at), tl.load(flags + at)), 0, _segment)
    tl.store(out + at, total)
