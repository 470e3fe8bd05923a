"""Numerical computing: finance, particles, stencils, linear algebra, transforms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]


def _normal_cdf(d: float) -> float:
    return 0.5 * math.erfc(-d / math.sqrt(2))


def black_scholes(args: Args) -> Outputs:
    price, strike, years = (args[name].astype(np.float64) for name in ("price", "strike", "years"))
    rate, sigma = float(args["rate"]), float(args["volatility"])
    root = np.sqrt(years)
    d1 = (np.log(price / strike) + (rate + 0.5 * sigma * sigma) * years) / (sigma * root)
    d2 = d1 - sigma * root
    cdf = np.vectorize(_normal_cdf, otypes=[np.float64])
    discount = strike * np.exp(-rate * years)
    kind = args["call"].dtype
    call = price * cdf(d1) - discount * cdf(d2)
    return {"call": call.astype(kind), "put": (discount * cdf(-d2) - price * cdf(-d1)).astype(kind)}


def nbody(args: Args) -> Outputs:
    position = args["position"].astype(np.float64)
    delta = position[None, :, :3] - position[:, None, :3]
    inverse = ((delta**2).sum(axis=-1) + float(args["softening"])) ** -1.5
    force = (delta * (position[None, :, 3] * inverse)[..., None]).sum(axis=1)
    return {"force": force.astype(np.float32)}


def jacobi(args: Args) -> Outputs:
    grid, out = args["grid"].astype(np.float64), args["out"].copy()
    out[1:-1, 1:-1] = 0.25 * (grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1])
    return {"out": out}


def wave(args: Args) -> Outputs:
    current, old = args["u"].astype(np.float64), args["previous"].astype(np.float64)
    for _ in range(int(args["steps"])):
        new = np.zeros_like(current)
        curve = current[:-2] - 2 * current[1:-1] + current[2:]
        new[1:-1] = 2 * current[1:-1] - old[1:-1] + float(args["courant"]) * curve
        current, old = new, current
    return {"u": current.astype(np.float32), "previous": old.astype(np.float32)}


def fft(args: Args) -> Outputs:
    return {"out": np.fft.fft(args["x"].astype(np.complex128), axis=-1).astype(args["out"].dtype)}


def cholesky(args: Args) -> Outputs:
    return {"out": np.linalg.cholesky(args["a"])}


def linear_solve(args: Args) -> Outputs:
    return {"b": np.linalg.solve(args["a"], args["b"])}


def tridiagonal(args: Args) -> Outputs:
    lower, diagonal, upper, right = (args[name] for name in ("lower", "diagonal", "upper", "right"))
    out = np.empty_like(right)
    for i in range(right.shape[1]):
        dense = np.diag(diagonal[:, i]) + np.diag(lower[1:, i], -1) + np.diag(upper[:-1, i], 1)
        out[:, i] = np.linalg.solve(dense, right[:, i])
    return {"right": out}


def _lorenz(s: Floats) -> Floats:
    x, y, z = s.T
    return np.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=1)


def lorenz(args: Args) -> Outputs:
    state, h = args["state"].astype(np.float64), float(args["h"])
    for _ in range(int(args["steps"])):
        a = _lorenz(state)
        b = _lorenz(state + 0.5 * h * a)
        c = _lorenz(state + 0.5 * h * b)
        state = state + h / 6 * (a + 2 * (b + c) + _lorenz(state + h * c))
    return {"state": state.astype(args["state"].dtype)}


def blur(args: Args) -> Outputs:
    padding = np.pad(args["image"].astype(np.float64), ((0, 0), (2, 2)), mode="edge")
    width = args["image"].shape[1]
    taps = (0.0625, 0.25, 0.375, 0.25, 0.0625)
    out = sum((tap * padding[:, k : k + width] for k, tap in enumerate(taps)), np.zeros(args["image"].shape))
    return {"out": out.astype(np.float32)}


def special(args: Args) -> Outputs:
    rows = [
        [
            math.gamma(v),
            math.lgamma(v),
            math.erf(v) + math.expm1(v) * math.log1p(v),
            math.atan2(v, 2) + math.hypot(v, 3) + math.sinh(v) * math.tanh(v),
            math.pow(v, 2.5) + math.fmod(v, 0.7) + math.copysign(math.cos(v), -v) + math.tan(v),
        ]
        for v in args["x"].tolist()
    ]
    return {"out": np.array(rows)}


def darts(args: Args) -> Outputs:
    inside = 0
    word = (1 << 64) - 1
    for i in range(64):
        state = (i + 1) * 0x9E3779B97F4A7C15 & word
        for _ in range(int(args["rounds"])):
            state ^= state << 13 & word
            state ^= state >> 7
            state ^= state << 17 & word
            inside += ((state & 0xFFFFFFFF) / 2**32) ** 2 + ((state >> 32) / 2**32) ** 2 < 1
    return {"hits": np.array([inside], np.int64)}


def ray_spheres(args: Args) -> Outputs:
    origin, direction, spheres = (args[name].astype(np.float64) for name in ("origins", "directions", "spheres"))
    delta = origin[:, None, :] - spheres[None, :, :3]
    b = (delta * direction[:, None, :]).sum(axis=-1)
    root = b * b - ((delta**2).sum(axis=-1) - spheres[None, :, 3] ** 2)
    with np.errstate(invalid="ignore"):
        distance = -b - np.sqrt(root)
        hit = (root >= 0) & (distance > 0)
    return {"out": np.where(hit, distance, np.inf).min(axis=1).astype(np.float32)}


def moving_average(args: Args) -> Outputs:
    x, window = args["x"], int(args["window"])
    return {"out": np.array([x[max(0, i - window + 1) : i + 1].mean() for i in range(x.size)])}
