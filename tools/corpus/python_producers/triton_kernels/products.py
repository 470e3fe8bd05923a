"""Triton kernels around `tl.dot`: matrix products in many types, attention, convolution, tensor maps."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def matmul(a, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, OUT: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, k, BK):
        left = tl.load(a + i[:, None] * k + (start + depth)[None, :])
        right = tl.load(b + (start + depth)[:, None] * n + j[None, :])
        total = tl.dot(left, right, total)
    tl.store(out + i[:, None] * n + j[None, :], total.to(OUT))


@triton.jit
def matmul_int8(a, b, out, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros([BM, BN], tl.int32)
    for start in range(0, k, BK):
        left = tl.load(a + i[:, None] * k + (start + depth)[None, :])
        right = tl.load(b + j[None, :] * k + (start + depth)[:, None])
        total += tl.dot(left, right, out_dtype=tl.int32)
    tl.store(out + i[:, None] * n + j[None, :], total)


@triton.jit
def matmul_double(a, b, out, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    left = tl.load(a + i[:, None] * k + depth[None, :])
    right = tl.load(b + depth[:, None] * n + j[None, :])
    tl.store(out + i[:, None] * n + j[None, :], tl.dot(left, right, out_dtype=tl.float64))


@triton.jit
def matmul_split_k(a, b, out, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.program_id(2) * BK + tl.arange(0, BK)
    left = tl.load(a + i[:, None] * k + depth[None, :])
    right = tl.load(b + depth[:, None] * n + j[None, :])
    tl.atomic_add(out + i[:, None] * n + j[None, :], tl.dot(left, right))


@triton.jit
def matmul_scaled(
    a, a_scale, b, b_scale, out, n, k, FORMAT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    PACK: tl.constexpr = 2 if FORMAT == "e2m1" else 1
    i = tl.arange(0, BM)
    j = tl.arange(0, BN)
    depth = tl.arange(0, BK // PACK)
    group = tl.arange(0, BK // 32)
    width = k // PACK
    left = tl.load(a + i[:, None] * width + depth[None, :])
    right = tl.load(b + j[None, :] * width + depth[:, None])
    left_scale = tl.load(a_scale + i[:, None] * (k // 32) + group[None, :])
    right_scale = tl.load(b_scale + j[:, None] * (k // 32) + group[None, :])
    total = tl.dot_scaled(left, left_scale, FORMAT, right, right_scale, FORMAT)
    tl.store(out + i[:, None] * n + j[None, :], total)


@triton.jit
def matmul_descriptor(a, b, out, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Read tiles through tensor maps that the host made."""
    i = tl.program_id(0) * BM
    j = tl.program_id(1) * BN
    total = tl.zeros([BM, BN], tl.float32)
    for start in range(0, k, BK):
        total = tl.dot(a.load([i, start]), b.load([start, j]), total)
    out.store([i, j], total.to(tl.float16))


@triton.jit
def matmul_persistent(a, b, out, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, CTAS: tl.constexpr):
    """Walk the tiles of the output with tensor maps made on the device, warps specialized where the target allows."""
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BN, BK])
    result = tl.make_tensor_descriptor(out, [m, n], [n, 1], [BM, BN])
    across = tl.cdiv(n, BN)
    tiles = tl.cdiv(m, BM) * across
    for tile in tl.range(tl.program_id(0), tiles, CTAS, warp_specialize=True):
        i = (tile // across) * BM
        j = (tile % across) * BN
        total = tl.zeros([BM, BN], tl.float32)
        for start in range(0, k, BK):
            total = tl.dot(left.load([i, start]), right.load([j, start]).T, total)
        result.store([i, j], total.to(tl.float16))


@triton.jit
def grouped_matmul(a, b, out, offsets, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Multiply each group of rows with its own matrix; the groups' first rows are in `offsets`."""
    group = tl.program_id(0)
    first = tl.load(offsets + group)
    last = tl.load(offsets + group + 1)
    j = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    for start in range(first, last, BM):
        i = start + tl.arange(0, BM)
        keep = (i < last)[:, None]
        total = tl.zeros([BM, BN], tl.float32)
        for inner in range(0, k, BK):
            left = tl.load(a + i[:, None] * k + (inner + depth)[None, :], mask=keep, other=0.0)
            total = tl.dot(left, tl.load(b + group * k * n + (inner + depth)[:, None] * n + j[None, :]), total)
        tl.store(out + i[:, None] * n + j[None, :], total.to(tl.float16), mask=keep)


@triton.jit
def attention(q, k, v, out, length, scale, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(1) * length * D
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + i[:, None] * D + d[None, :])
    top = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    result = tl.zeros([BM, D], tl.float32)
    last = (tl.program_id(0) + 1) * BM if CAUSAL else length
    for start in range(0, last, BN):
        j = start + tl.arange(0, BN)
        score = tl.dot(query, tl.load(k + head + j[None, :] * D + d[:, None])) * scale
        if CAUSAL:
            score = tl.where(i[:, None] >= j[None, :], score, -1e30)
        new_top = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp2((score - new_top[:, None]) * 1.4426950408889634)
        shrink = tl.exp2((top - new_top) * 1.4426950408889634)
        total = total * shrink + tl.sum(weight, axis=1)
        value = tl.load(v + head + j[:, None] * D + d[None, :])
        result = tl.dot(weight.to(value.dtype), value, result * shrink[:, None])
        top = new_top
    tl.store(out + head + i[:, None] * D + d[None, :], (result / total[:, None]).to(query.dtype))


@triton.jit
def decode_split(q, k, v, part, top_out, total_out, length, scale, SPLIT: tl.constexpr, D: tl.constexpr):
    """One query against one slice of the keys; a second kernel merges the slices."""
    head = tl.program_id(0)
    piece = tl.program_id(1)
    j = piece * SPLIT + tl.arange(0, SPLIT)
    d = tl.arange(0, D)
    keep = j < length
    query = tl.load(q + head * D + d)
    keys = tl.load(k + (head * length + j)[:, None] * D + d[None, :], mask=keep[:, None], other=0.0)
    score = tl.where(keep, tl.sum(keys * query[None, :], axis=1) * scale, -float("inf"))
    top = tl.max(score, axis=0)
    weight = tl.exp(score - top)
    values = tl.load(v + (head * length + j)[:, None] * D + d[None, :], mask=keep[:, None], other=0.0)
    slot = head * tl.num_programs(1) + piece
    tl.store(part + slot * D + d, tl.sum(weight[:, None] * values, axis=0))
    tl.store(top_out + slot, top)
    tl.store(total_out + slot, tl.sum(weight, axis=0))


@triton.jit
def conv2d_implicit(
    x, weight, out, CH: tl.constexpr, H: tl.constexpr, W: tl.constexpr, OUTS: tl.constexpr, BM: tl.constexpr
):
    """3 x 3 convolution, no padding, as a matrix product over gathered patches; channels last."""
    WIDE: tl.constexpr = W - 2
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    y = i // WIDE
    x_at = i % WIDE
    keep = y < H - 2
    c = tl.arange(0, CH)
    o = tl.arange(0, OUTS)
    total = tl.zeros([BM, OUTS], tl.float32)
    for tap in range(9):
        row = (y + tap // 3) * W + x_at + tap % 3
        patch = tl.load(x + row[:, None] * CH + c[None, :], mask=keep[:, None], other=0.0)
        total = tl.dot(patch, tl.load(weight + (tap * CH + c)[:, None] * OUTS + o[None, :]), total)
    tl.store(out + i[:, None] * OUTS + o[None, :], total, mask=keep[:, None])


@triton.jit
def kmeans_assign(points, centres, out, COUNT: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    d = tl.arange(0, D)
    c = tl.arange(0, COUNT)
    point = tl.load(points + i[:, None] * D + d[None, :])
    centre = tl.load(centres + c[None, :] * D + d[:, None])
    near = tl.sum(centre * centre, axis=0)[None, :] - 2.0 * tl.dot(point, centre, input_precision="tf32x3")
    tl.store(out + i, tl.argmin(near, axis=1))
