"""Triton kernels without a reduction: activations, gathers, random numbers, atomics, stencils, optimizer steps."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n)
    tl.store(out + at, total, mask=at < n)


@triton.jit
def swiglu(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gate + at, mask=at < n).to(tl.float32)
    u = tl.load(up + at, mask=at < n).to(tl.float32)
    tl.store(out + at, (g * tl.sigmoid(g) * u).to(tl.float16), mask=at < n)


@triton.jit
def gelu(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476)), mask=at < n)


@triton.jit
def embedding_gather(table, index, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    token = tl.load(index + row)
    at = tl.arange(0, BLOCK)
    tl.store(out + row * width + at, tl.load(table + token * width + at, mask=at < width), mask=at < width)


@triton.jit
def scatter_add(x, index, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.atomic_add(
        out + tl.load(index + row) * width + at, tl.load(x + row * width + at, mask=at < width), mask=at < width
    )


@triton.jit
def transpose(x, out, rows, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    tile = tl.load(x + i[:, None] * cols + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < cols))
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=(j[:, None] < cols) & (i[None, :] < rows))


@triton.jit
def histogram(x, out, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + at, mask=at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=at < n) / (1.0 - p), 0.0), mask=at < n)


@triton.jit
def philox_words(out, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, at)
    tl.store(out + at * 4, a)
    tl.store(out + at * 4 + 1, b)
    tl.store(out + at * 4 + 2, c)
    tl.store(out + at * 4 + 3, d)


@triton.jit
def adam_step(param, grad, m, v, n, lr, beta1, beta2, eps, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    g = tl.load(grad + at, mask=keep)
    first = beta1 * tl.load(m + at, mask=keep) + (1.0 - beta1) * g
    second = beta2 * tl.load(v + at, mask=keep) + (1.0 - beta2) * g * g
    tl.store(m + at, first, mask=keep)
    tl.store(v + at, second, mask=keep)
    tl.store(param + at, tl.load(param + at, mask=keep) - lr * first / (tl.sqrt(second) + eps), mask=keep)


@triton.jit
def rotary(x, cos, sin, out, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    keep = at < half
    a = tl.load(x + row * 2 * half + at, mask=keep)
    b = tl.load(x + row * 2 * half + half + at, mask=keep)
    c = tl.load(cos + row * half + at, mask=keep)
    s = tl.load(sin + row * half + at, mask=keep)
    tl.store(out + row * 2 * half + at, a * c - b * s, mask=keep)
    tl.store(out + row * 2 * half + half + at, b * c + a * s, mask=keep)


@triton.jit
def mandelbrot(out, width, height, limit, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = -2.0 + 3.0 * (at % width).to(tl.float32) / width
    cy = -1.0 + 2.0 * (at // width).to(tl.float32) / height
    zx = tl.zeros([BLOCK], tl.float32)
    zy = tl.zeros([BLOCK], tl.float32)
    count = tl.zeros([BLOCK], tl.int32)
    step = 0
    while step < limit:
        inside = zx * zx + zy * zy <= 4.0
        new_x = zx * zx - zy * zy + cx
        zy = tl.where(inside, 2.0 * zx * zy + cy, zy)
        zx = tl.where(inside, new_x, zx)
        count += inside.to(tl.int32)
        step += 1
    tl.store(out + at, count, mask=at < width * height)


@triton.jit
def life(cells, out, width, height, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < width * height
    x = at % width
    y = at // width
    total = tl.zeros([BLOCK], tl.int32)
    for dy in tl.static_range(-1, 2):
        for dx in tl.static_range(-1, 2):
            near = ((y + dy + height) % height) * width + (x + dx + width) % width
            total += tl.load(cells + near, mask=keep, other=0).to(tl.int32)
    alive = tl.load(cells + at, mask=keep, other=0).to(tl.int32)
    tl.store(out + at, ((total == 3) | ((alive == 1) & (total == 4))).to(tl.int8), mask=keep)


@triton.jit
def causal_conv1d(x, weight, out, length, TAPS: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for tap in tl.static_range(TAPS):
        source = at - (TAPS - 1) + tap
        value = tl.load(x + channel * length + source, mask=(source >= 0) & (source < length), other=0.0)
        total += value * tl.load(weight + channel * TAPS + tap)
    tl.store(out + channel * length + at, total, mask=at < length)


@triton.jit
def complex_multiply(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pair = at[:, None] * 2 + tl.arange(0, 2)[None, :]
    keep = (at < n)[:, None]
    ar, ai = tl.split(tl.load(a + pair, mask=keep))
    br, bi = tl.split(tl.load(b + pair, mask=keep))
    tl.store(out + pair, tl.join(ar * br - ai * bi, ar * bi + ai * br), mask=keep)


@triton.jit
def locked_sum(x, lock, out, BLOCK: tl.constexpr):
    part = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), axis=0)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    tl.store(out, tl.load(out) + part)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def population_count(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(x + at, mask=at < n, other=0)
    count = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [word], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, count, mask=at < n)


@triton.jit
def byte_absolute_difference(a, b, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(a + at, mask=at < n, other=0)
    right = tl.load(b + at, mask=at < n, other=0)
    delta = tl.inline_asm_elementwise(
        "{ .reg .b32 zero; mov.b32 zero, 0; vabsdiff4.u32.u32.u32 $0, $1, $2, zero; }",
        "=r,r,r",
        [left, right],
        dtype=tl.uint8,
        is_pure=True,
        pack=4,
    )
    tl.store(out + at, delta, mask=at < n)


@triton.jit
def shuffle_columns(x, order, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row * BLOCK + at, tl.gather(tl.load(x + row * BLOCK + at), tl.load(order + at), 0))


@triton.jit
def checked_divide(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    below = tl.load(y + at, mask=at < n, other=1)
    tl.device_assert(below != 0, "division by zero")
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0) // below, mask=at < n)


@triton.jit
def print_block(x, BLOCK: tl.constexpr):
    tl.device_print("value", tl.load(x + tl.arange(0, BLOCK)))
