"""Element-wise kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def saxpy(args: Args) -> Results:
    return {"y": args["a"] * args["x"] + args["y"]}


def add(args: Args) -> Results:
    return {"c": args["a"] + args["b"]}


def horner(args: Args) -> Results:
    coefficients = [0.125, -1.5, 2.0, 0.25, -0.5, 1.0]
    x: NDArray[np.float64] = args["x"].astype(float)
    return {"y": np.polyval(coefficients, x).astype(np.float32)}


def gelu(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"y": (0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))).astype(np.float32)}


def swiglu(args: Args) -> Results:
    gate = args["g"].astype(float)
    return {"y": (args["x"] * gate / (1 + np.exp(-gate))).astype(np.float32)}


def clamp(args: Args) -> Results:
    return {"y": np.clip(args["x"], args["lo"], args["hi"])}


def transcendental(args: Args) -> Results:
    x = args["x"].astype(float)
    rows = [np.sin(x), np.cos(x), np.exp(x), np.log(x), np.sqrt(x), 1 / np.sqrt(x), np.arctan2(x, 1.5), x**1.7]
    return {"y": np.stack(rows).astype(np.float32)}


def fast_math(args: Args) -> Results:
    x = args["x"].astype(float)
    rows = [np.sin(x), np.cos(x), np.exp(x), np.log2(x), 1 / x, 1 / np.sqrt(x)]
    return {"y": np.stack(rows).astype(np.float32)}


def directed_sums(args: Args) -> Results:
    exact: NDArray[np.float64] = args["a"].astype(float) + args["b"].astype(float)
    nearest = exact.astype(np.float32)
    down = np.where(nearest > exact, np.nextafter(nearest, np.float32(-np.inf)), nearest)
    up = np.where(nearest < exact, np.nextafter(nearest, np.float32(np.inf)), nearest)
    return {"y": np.stack([nearest, down, up, np.where(exact > 0, down, up)])}


def double_arithmetic(args: Args) -> Results:
    a, b = args["a"], args["b"]
    product = (a.astype(np.longdouble) * b + 1).astype(float)
    rows = [
        a / b,
        np.sqrt(b),
        product,
        np.abs(a) + np.floor(b) + np.ceil(a) + np.rint(b),
        np.minimum(a, b) - np.maximum(a, b),
    ]
    return {"y": np.stack(rows)}


def float_to_int(args: Args) -> Results:
    x = args["x"]
    small = np.trunc(x).astype(int) + np.trunc(x * np.float32(3)).astype(int) + np.trunc(np.abs(x)).astype(int)
    rows = [np.rint(x), np.trunc(x), np.ceil(x), np.floor(x), x.view(np.int32), small]
    return {"y": np.stack([row.astype(np.int32) for row in rows])}


def complex_multiply(args: Args) -> Results:
    a, b = (args[name].astype(float) @ np.array([1, 1j]) for name in "ab")
    return {"c": np.stack([(a * b).real, (a * b).imag], axis=1).astype(np.float32)}


def quaternion_rotate(args: Args) -> Results:
    q, v = args["q"].astype(float), args["v"].astype(float)
    axis, w = q[:, :3], q[:, 3:]
    double = 2 * np.cross(axis, v)
    return {"r": (v + (w * double + np.cross(axis, double)) / (q**2).sum(1, keepdims=True)).astype(np.float32)}


def ray_sphere(args: Args) -> Results:
    o, d = args["o"].astype(float), args["d"].astype(float)
    a, b, c = (d * d).sum(1), (o * d).sum(1), (o * o).sum(1) - 1
    disc: NDArray[np.float64] = b * b - a * c
    return {"t": np.where(disc < 0, -1.0, (-b + np.sqrt(np.maximum(disc, 0))) / a).astype(np.float32)}


def reflect(args: Args) -> Results:
    v, n = args["v"].astype(float), args["n"].astype(float)
    along = (v * n).sum(1, keepdims=True) / (n * n).sum(1, keepdims=True)
    return {"r": (v - 2 * along * n).astype(np.float32)}


def normalise(args: Args) -> Results:
    v = args["v"].astype(float)
    return {"r": (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32)}


def cube_root(args: Args) -> Results:
    return {"y": np.cbrt(args["x"].astype(float)).astype(np.float32)}


def triangle_areas(args: Args) -> Results:
    corners = args["t"].astype(float).reshape(-1, 3, 3)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return {"area": (np.linalg.norm(normal, axis=1) / 2).astype(np.float32)}


def trapezoids(args: Args) -> Results:
    y = args["y"].astype(float)
    return {"out": ((y[:, 1:] + y[:, :-1]) / 2).sum(1).astype(np.float32)}
