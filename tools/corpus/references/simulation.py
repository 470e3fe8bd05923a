"""Physics, finance, random numbers, fractals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results

MASK = (1 << 32) - 1


def nbody(args: Args) -> Results:
    body = args["body"].astype(float)
    offset = body[None, :, :3] - body[:, None, :3]
    inverse = ((offset**2).sum(2) + 0.01) ** -1.5
    return {"acceleration": np.einsum("ij,ijk,j->ik", inverse, offset, body[:, 3]).astype(np.float32)}


def mandelbrot(args: Args) -> Results:
    count = np.zeros((16, 16), np.int32)
    for j in range(16):
        for i in range(16):
            c, z = complex(-2 + i * 0.1875, -1.5 + j * 0.1875), 0j
            while count[j, i] < args["limit"] and z.real**2 + z.imag**2 <= 4:
                z = z * z + c
                count[j, i] += 1
    return {"count": count}


def monte_carlo_pi(args: Args) -> Results:
    s, hits = np.arange(64, dtype=np.uint32) * np.uint32(747796405) + np.uint32(2891336453), 0
    for _ in range(int(args["samples"])):
        pair: list[NDArray[np.int64]] = []
        for _ in range(2):
            s = s ^ (s << np.uint32(13))
            s = s ^ (s >> np.uint32(17))
            s = s ^ (s << np.uint32(5))
            pair.append((s >> np.uint32(18)).astype(np.int64))
        hits += int((pair[0] ** 2 + pair[1] ** 2 < 1 << 28).sum())
    return {"hits": np.array([hits], np.uint32)}


def philox(args: Args) -> Results:
    rows: list[tuple[int, ...]] = []
    for thread in range(32):
        c = (thread, 0, 0, 0)
        k0, k1 = (int(word) for word in args["key"])
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = ((b >> 32) ^ c[1] ^ k0, b & MASK, (a >> 32) ^ c[3] ^ k1, a & MASK)
            k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
        rows.append(c)
    return {"out": np.array(rows, np.uint32)}


def pcg32(args: Args) -> Results:
    out = np.zeros_like(args["out"])
    for thread in range(32):
        state = (thread * 0x9E3779B97F4A7C15 + 1) & (1 << 64) - 1
        for i in range(8):
            x, r = ((state >> 18 ^ state) >> 27) & MASK, state >> 59
            out[thread, i] = (x >> r | x << (-r & 31)) & MASK
            state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
    return {"out": out}


def box_muller(args: Args) -> Results:
    u, v = args["u"].astype(float).T
    z = np.sqrt(-2 * np.log(u)) * np.exp(2j * np.pi * v)
    return {"z": np.stack([z.real, z.imag], axis=1).astype(np.float32)}


def _normal_cdf(d: float) -> float:
    return 0.5 * math.erfc(-d / math.sqrt(2))


def black_scholes(args: Args) -> Results:
    s, k, t = (args[name].astype(float) for name in "skt")
    cdf = np.vectorize(_normal_cdf)
    sigma, strike = 0.3 * np.sqrt(t), k * np.exp(-0.02 * t)
    d1 = (np.log(s / k) + 0.065 * t) / sigma
    call = s * cdf(d1) - strike * cdf(d1 - sigma)
    put = strike * cdf(sigma - d1) - s * cdf(-d1)
    return {"call": call.astype(np.float32), "put": put.astype(np.float32)}


def binomial(args: Args) -> Results:
    up = 1.05
    p = (1.001 - 1 / up) / (up - 1 / up)
    value = np.maximum(args["spot"] * up ** (2.0 * np.arange(33) - 32) - args["strike"], 0)
    while len(value) > 1:
        value = (p * value[1:] + (1 - p) * value[:-1]) / 1.001
    return {"out": value.astype(np.float32)}


def ising(args: Args) -> Results:
    spin: NDArray[np.int64] = args["spin"].astype(np.int64)
    j, i = np.indices((16, 16))
    for colour in range(2):
        field = np.roll(spin, 1, 0) + np.roll(spin, -1, 0) + np.roll(spin, 1, 1) + np.roll(spin, -1, 1)
        flip = (args["u"] < np.exp(-2.0 * float(args["beta"]) * spin * field)) & ((i + j) % 2 == colour)
        spin = np.where(flip, -spin, spin)
    return {"spin": spin.astype(np.int8)}


def pendulum(args: Args) -> Results:
    a, v = args["y"].T
    h = 0.05
    for _ in range(10):
        k1, l1 = v, -np.sin(a)
        k2, l2 = v + h / 2 * l1, -np.sin(a + h / 2 * k1)
        k3, l3 = v + h / 2 * l2, -np.sin(a + h / 2 * k2)
        k4, l4 = v + h * l3, -np.sin(a + h * k3)
        a, v = a + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), v + h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return {"y": np.stack([a, v], axis=1)}


def verlet(args: Args) -> Results:
    current, old = args["x"].astype(float), args["before"].astype(float)
    for _ in range(4):
        stretch = np.diff(current)
        force = np.append(stretch, 0) - np.insert(stretch, 0, 0)
        current, old = 2 * current - old + 0.1 * force, current
    return {"out": current.astype(np.float32)}


def ray_march(args: Args) -> Results:
    y, x = (np.indices((8, 8)) - 3.5) * 0.2
    inverse, t = 1 / np.sqrt(x * x + y * y + 1), np.zeros((8, 8))
    for _ in range(32):
        q = np.hypot(x * inverse * t, y * inverse * t) - 0.8
        t = np.where(t < 10, t + 0.9 * (np.hypot(q, inverse * t - 3) - 0.3), t)
    return {"depth": np.minimum(t, 10).astype(np.float32)}


def simpson(args: Args) -> Results:
    n = int(args["n"])
    weight = np.where(np.arange(n + 1) % 2 == 1, 4.0, 2.0)
    weight[[0, -1]] = 1
    return {"out": np.array([(weight * np.exp(-(np.linspace(0, 2, n + 1) ** 2))).sum() * 2 / n / 3])}
