"""numba-cuda kernels of numerical computing: finance, particles, stencils, linear algebra, transforms."""

from __future__ import annotations

import cmath
import math

import numpy as np
from numba import complex64, cuda, float32, float64

TAPS = np.array([0.0625, 0.25, 0.375, 0.25, 0.0625], dtype=np.float32)


@cuda.jit(device=True)
def normal_cdf(d):
    return 0.5 * math.erfc(-d * 0.7071067811865476)


def black_scholes(call, put, price, strike, years, rate, volatility):
    i = cuda.grid(1)
    if i < call.size:
        root = math.sqrt(years[i])
        d1 = (math.log(price[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / (volatility * root)
        d2 = d1 - volatility * root
        discount = strike[i] * math.exp(-rate * years[i])
        call[i] = price[i] * normal_cdf(d1) - discount * normal_cdf(d2)
        put[i] = discount * normal_cdf(-d2) - price[i] * normal_cdf(-d1)


def nbody_forces(position, force, softening):
    tile = cuda.shared.array((32, 4), float32)
    i = cuda.grid(1)
    lane = cuda.threadIdx.x
    x, y, z = position[i, 0], position[i, 1], position[i, 2]
    fx = fy = fz = float32(0.0)
    for start in range(0, position.shape[0], 32):
        for part in range(4):
            tile[lane, part] = position[start + lane, part]
        cuda.syncthreads()
        for j in range(32):
            dx = tile[j, 0] - x
            dy = tile[j, 1] - y
            dz = tile[j, 2] - z
            inverse = float32(1.0) / math.sqrt(dx * dx + dy * dy + dz * dz + softening)
            pull = tile[j, 3] * inverse * inverse * inverse
            fx += dx * pull
            fy += dy * pull
            fz += dz * pull
        cuda.syncthreads()
    force[i, 0] = fx
    force[i, 1] = fy
    force[i, 2] = fz


def julia_set(out, c, limit):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        z = complex(-1.5 + 3.0 * x / out.shape[1], -1.0 + 2.0 * y / out.shape[0])
        count = 0
        while count < limit and z.real * z.real + z.imag * z.imag < 4.0:
            z = z * z + c
            count += 1
        out[y, x] = count


def jacobi_step(grid, out):
    x, y = cuda.grid(2)
    height, width = grid.shape
    if 0 < x < width - 1 and 0 < y < height - 1:
        out[y, x] = 0.25 * (grid[y, x - 1] + grid[y, x + 1] + grid[y - 1, x] + grid[y + 1, x])


def wave_steps(u, previous, steps, courant):
    now = cuda.shared.array(128, float32)
    i = cuda.threadIdx.x
    old = previous[i]
    now[i] = u[i]
    cuda.syncthreads()
    for _ in range(steps):
        new = float32(0.0)
        if 0 < i < 127:
            new = float32(2.0) * now[i] - old + courant * (now[i - 1] - float32(2.0) * now[i] + now[i + 1])
        old = now[i]
        cuda.syncthreads()
        now[i] = new
        cuda.syncthreads()
    u[i] = now[i]
    previous[i] = old


def matmul_tiled(a, b, out):
    left = cuda.shared.array((8, 8), float32)
    right = cuda.shared.array((8, 8), float32)
    column, row = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0.0)
    for start in range(0, a.shape[1], 8):
        left[ty, tx] = a[row, start + tx]
        right[ty, tx] = b[start + ty, column]
        cuda.syncthreads()
        for k in range(8):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[row, column] = total


def fft_64(x, out):
    """Radix-2 Cooley-Tukey of 64 points per block, decimation in time."""
    work = cuda.shared.array(64, complex64)
    lane = cuda.threadIdx.x
    for part in range(2):
        i = lane + 32 * part
        work[cuda.brev(i) >> 26] = x[cuda.blockIdx.x, i]
    half = 1
    while half < 64:
        cuda.syncthreads()
        k = lane % half
        top = (lane // half) * 2 * half + k
        turn = cmath.exp(complex64(complex(0.0, -math.pi * k / half)))
        product = complex64(turn * work[top + half])
        upper = work[top]
        work[top] = upper + product
        work[top + half] = upper - product
        half *= 2
    cuda.syncthreads()
    for part in range(2):
        i = lane + 32 * part
        out[cuda.blockIdx.x, i] = work[i]


def cholesky_16(a, out):
    work = cuda.shared.array((16, 16), float64)
    i = cuda.threadIdx.x
    for j in range(16):
        work[i, j] = a[i, j]
    cuda.syncthreads()
    for k in range(16):
        if i == k:
            work[k, k] = math.sqrt(work[k, k])
        cuda.syncthreads()
        if i > k:
            work[i, k] = work[i, k] / work[k, k]
        cuda.syncthreads()
        if i > k:
            for j in range(k + 1, i + 1):
                work[i, j] -= work[i, k] * work[j, k]
        cuda.syncthreads()
    for j in range(16):
        out[i, j] = work[i, j] if j <= i else 0.0


def gauss_jordan(a, b):
    """Solve a 12 x 12 system with partial pivoting in one block; the answer replaces `b`."""
    work = cuda.shared.array((12, 13), float64)
    pivot = cuda.shared.array(1, np.int32)
    i = cuda.threadIdx.x
    for j in range(12):
        work[i, j] = a[i, j]
    work[i, 12] = b[i]
    cuda.syncthreads()
    for k in range(12):
        if i == 0:
            best = k
            for r in range(k + 1, 12):
                if abs(work[r, k]) > abs(work[best, k]):
                    best = r
            pivot[0] = best
            if best != k:
                for j in range(13):
                    work[k, j], work[best, j] = work[best, j], work[k, j]
        cuda.syncthreads()
        if i != k:
            factor = work[i, k] / work[k, k]
            for j in range(k, 13):
                work[i, j] -= factor * work[k, j]
        cuda.syncthreads()
    b[i] = work[i, 12] / work[i, i]


def thomas_solver(lower, diagonal, upper, right):
    """Solve one tridiagonal system per thread, in place; systems are interleaved for coalescing."""
    i = cuda.grid(1)
    n = diagonal.shape[0]
    if i < diagonal.shape[1]:
        for k in range(1, n):
            factor = lower[k, i] / diagonal[k - 1, i]
            diagonal[k, i] -= factor * upper[k - 1, i]
            right[k, i] -= factor * right[k - 1, i]
        right[n - 1, i] /= diagonal[n - 1, i]
        for step in range(1, n):
            k = n - 1 - step
            right[k, i] = (right[k, i] - upper[k, i] * right[k + 1, i]) / diagonal[k, i]


@cuda.jit(device=True)
def lorenz(x, y, z):
    return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z


def runge_kutta(state, steps, h):
    i = cuda.grid(1)
    if i < state.shape[0]:
        x, y, z = state[i, 0], state[i, 1], state[i, 2]
        for _ in range(steps):
            ax, ay, az = lorenz(x, y, z)
            bx, by, bz = lorenz(x + 0.5 * h * ax, y + 0.5 * h * ay, z + 0.5 * h * az)
            cx, cy, cz = lorenz(x + 0.5 * h * bx, y + 0.5 * h * by, z + 0.5 * h * bz)
            dx, dy, dz = lorenz(x + h * cx, y + h * cy, z + h * cz)
            x += h / 6.0 * (ax + 2.0 * (bx + cx) + dx)
            y += h / 6.0 * (ay + 2.0 * (by + cy) + dy)
            z += h / 6.0 * (az + 2.0 * (bz + cz) + dz)
        state[i, 0] = x
        state[i, 1] = y
        state[i, 2] = z


def separable_blur(image, out):
    taps = cuda.const.array_like(TAPS)
    x, y = cuda.grid(2)
    height, width = image.shape
    if x < width and y < height:
        total = float32(0.0)
        for k in range(5):
            near = min(max(x + k - 2, 0), width - 1)
            total += taps[k] * image[y, near]
        out[y, x] = total


def special_functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0] = math.gamma(v)
        out[i, 1] = math.lgamma(v)
        out[i, 2] = math.erf(v) + math.expm1(v) * math.log1p(v)
        out[i, 3] = math.atan2(v, 2.0) + math.hypot(v, 3.0) + math.sinh(v) * math.tanh(v)
        out[i, 4] = math.pow(v, 2.5) + math.fmod(v, 0.7) + math.copysign(math.cos(v), -v) + math.tan(v)


def axpy_strided(alpha, x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        y[i] += alpha * x[i]


def monte_carlo_pi(hits, rounds):
    """Count darts inside the circle with a 64-bit xorshift generator per thread."""
    i = cuda.grid(1)
    state = np.uint64(i + 1) * np.uint64(0x9E3779B97F4A7C15)
    inside = 0
    for _ in range(rounds):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        x = float(state & np.uint64(0xFFFFFFFF)) / 4294967296.0
        y = float(state >> np.uint64(32)) / 4294967296.0
        if x * x + y * y < 1.0:
            inside += 1
    cuda.atomic.add(hits, 0, inside)


def ray_spheres(origins, directions, spheres, out):
    i = cuda.grid(1)
    if i < origins.shape[0]:
        best = np.float32(np.inf)
        for s in range(spheres.shape[0]):
            b = float32(0.0)
            c = -spheres[s, 3] * spheres[s, 3]
            for axis in range(3):
                delta = origins[i, axis] - spheres[s, axis]
                b += delta * directions[i, axis]
                c += delta * delta
            root = b * b - c
            if root >= 0.0:
                distance = -b - math.sqrt(root)
                if 0.0 < distance < best:
                    best = distance
        out[i] = best


def inclusive_moving_average(x, out, window):
    i = cuda.grid(1)
    if i < x.size:
        first = max(0, i - window + 1)
        total = 0.0
        for j in range(first, i + 1):
            total += x[j]
        out[i] = total / (i + 1 - first)
