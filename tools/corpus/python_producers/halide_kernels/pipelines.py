"""Halide pipelines of fixed sizes, so that their kernels take nothing but pointers; dimensions run innermost first."""

from __future__ import annotations

import halide as hl

X, Y, XO, YO, XI, YI = (hl.Var(name) for name in ("x", "y", "xo", "yo", "xi", "yi"))


def image(name, kind, *extents):
    found = hl.ImageParam(kind, len(extents), name)
    bound(found, *extents)
    return found


def bound(buffer, *extents):
    """Fix the bounds and the packed strides of a buffer."""
    stride = 1
    for index, extent in enumerate(extents):
        buffer.dim(index).set_bounds(0, extent)
        buffer.dim(index).set_stride(stride)
        stride *= extent


def blur():
    source, result = image("image", hl.Float(32), 34, 16), hl.Func("result")
    result[X, Y] = (source[X, Y] + source[X + 1, Y] + source[X + 2, Y]) * hl.f32(0.25)
    result.gpu_tile(X, Y, XO, YO, XI, YI, 16, 4)
    bound(result.output_buffer(), 32, 16)
    return result, [source]


def matmul():
    a, b = image("a", hl.Float(32), 32, 16), image("b", hl.Float(32), 16, 32)
    total, result, k = hl.Func("total"), hl.Func("result"), hl.RDom([(0, 32)])
    total[X, Y] = hl.f32(0.0)
    total[X, Y] += a[k, Y] * b[X, k]
    result[X, Y] = total[X, Y]
    result.gpu_tile(X, Y, XO, YO, XI, YI, 8, 8)
    total.compute_at(result, XI)
    bound(result.output_buffer(), 16, 16)
    return result, [a, b]


def erode():
    source, rows, result = image("image", hl.UInt(8), 34, 18), hl.Func("rows"), hl.Func("result")
    rows[X, Y] = hl.min(hl.min(source[X, Y], source[X + 1, Y]), source[X + 2, Y])
    result[X, Y] = hl.min(hl.min(rows[X, Y], rows[X, Y + 1]), rows[X, Y + 2])
    result.gpu_tile(X, Y, XO, YO, XI, YI, 16, 8)
    rows.compute_at(result, XO).gpu_threads(X, Y)
    bound(result.output_buffer(), 32, 16)
    return result, [source]


def downsample():
    source, result = image("image", hl.UInt(8), 32, 32), hl.Func("result")
    total = hl.u16(0)
    for dy in range(2):
        for dx in range(2):
            total = total + hl.u16(source[2 * X + dx, 2 * Y + dy])
    result[X, Y] = hl.u8((total + hl.u16(2)) >> hl.u16(2))
    result.gpu_tile(X, Y, XO, YO, XI, YI, 8, 8)
    bound(result.output_buffer(), 16, 16)
    return result, [source]


def running_sums():
    source, sums, k = image("image", hl.Int(32), 24, 32), hl.Func("result"), hl.RDom([(1, 23)])
    sums[X, Y] = source[X, Y]
    sums[k, Y] += sums[k - 1, Y]
    sums.gpu_tile(X, Y, XO, YO, XI, YI, 24, 8)
    sums.update().gpu_tile(Y, YO, YI, 32)
    bound(sums.output_buffer(), 24, 32)
    return sums, [source]


def blend():
    a, b = image("a", hl.UInt(8), 32, 16), image("b", hl.UInt(8), 32, 16)
    mask, result = image("mask", hl.UInt(8), 32, 16), hl.Func("result")
    result[X, Y] = hl.lerp(a[X, Y], b[X, Y], mask[X, Y])
    result.gpu_tile(X, Y, XO, YO, XI, YI, 16, 8)
    bound(result.output_buffer(), 32, 16)
    return result, [a, b, mask]
