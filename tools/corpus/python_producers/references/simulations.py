"""Fractals, particles and geometry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Args = Mapping[str, Any]
Outputs = dict[str, NDArray[Any]]


def mandelbrot(args: Args) -> Outputs:
    width, height = int(args["width"]), int(args["height"])
    indices = np.arange(width * height)
    cx = np.float32(-2) + np.float32(3) * (indices % width).astype(np.float32) / np.float32(width)
    cy = np.float32(-1) + np.float32(2) * (indices // width).astype(np.float32) / np.float32(height)
    zx, zy = np.zeros_like(cx), np.zeros_like(cy)
    count = np.zeros(indices.shape, np.int32)
    for _ in range(int(args["limit"])):
        inside = zx * zx + zy * zy <= 4
        count += inside
        zx, zy = np.where(inside, zx * zx - zy * zy + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
    return {"out": count.reshape(args["out"].shape)}


def sph_density(args: Args) -> Outputs:
    points, radius = args["points"].astype(np.float64), float(args["radius"])
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=-1)
    kernel = np.where(distances < radius**2, 1.5666814710608448 / radius**9 * (radius**2 - distances) ** 3, 0)
    return {"density": (float(args["mass"]) * kernel.sum(axis=1)).astype(np.float32)}


def bounce(args: Args) -> Outputs:
    dt, loss = float(args["dt"]), float(args["restitution"])
    gravity = np.array([float(args[f"gravity.{k}"]) for k in range(3)])
    v = args["velocity"] + gravity * dt
    x = args["position"] + v * dt
    below = x[:, 1] < 0
    x[below, 1] *= -loss
    v[below, 1] *= -loss
    return {"position": x.astype(np.float32), "velocity": v.astype(np.float32)}


def springs(args: Args) -> Outputs:
    position, force = args["position"].astype(np.float64), args["force"].astype(np.float64)
    a, b = args["ends"].T
    delta = position[b] - position[a]
    length = np.linalg.norm(delta, axis=1)
    pull = delta * (float(args["stiffness"]) * (length - args["rest"]) / length)[:, None]
    np.add.at(force, a, pull)
    np.subtract.at(force, b, pull)
    return {"force": force.astype(np.float32)}


def rigid_points(args: Args) -> Outputs:
    bodies, local = args["bodies"].astype(np.float64), args["local"].astype(np.float64)
    out = np.empty(args["out"].shape)
    for b, body in enumerate(bodies):
        axis, w = body[3:6], body[6]
        spun = local * (2 * w * w - 1) + np.cross(axis, local) * (2 * w) + axis * (local @ axis)[:, None] * 2
        out[b] = body[:3] + spun * body[7]
    return {"out": out.astype(np.float32)}


def triangle_areas(args: Args) -> Outputs:
    a, b, c = (args["points"].astype(np.float64)[args["faces"][:, k]] for k in range(3))
    return {"out": (0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)).astype(np.float32)}


def march_spheres(args: Args) -> Outputs:
    height, width = args["out"].shape
    y, x = np.mgrid[:height, :width]
    ray = np.stack([2 * x / width - 1, 2 * y / height - 1, np.full(x.shape, 2.0)], axis=-1)
    ray /= np.linalg.norm(ray, axis=-1, keepdims=True)
    depth = np.zeros(x.shape)
    for _ in range(24):
        p = np.array([0, 0, -3]) + ray * depth[..., None]
        big = np.linalg.norm(p, axis=-1) - 0.8
        depth += np.minimum(big, np.linalg.norm(p - np.array([0.7, 0.4, -0.2]), axis=-1) - 0.4)
    return {"out": np.minimum(depth, 10).astype(np.float32)}


def inverses(args: Args) -> Outputs:
    return {"out": np.linalg.inv(args["a"])}


def singular_values(args: Args) -> Outputs:
    """Warp's last value carries the sign of the determinant, and the order is by magnitude."""
    a = args["a"].astype(np.float64)
    values = np.linalg.svd(a, compute_uv=False)
    values[:, 2] *= np.sign(np.linalg.det(a))
    return {"out": values.astype(np.float32)}


def quaternions(args: Args) -> Outputs:
    turns = args["turns"].astype(np.float64)
    total = np.tile([0.0, 0.0, 0.0, 1.0], (len(turns), 1))
    for j in range(turns.shape[1]):
        a, s, b, t = total[:, :3], total[:, 3:], turns[:, j, :3], turns[:, j, 3:]
        total = np.concatenate([s * b + t * a + np.cross(a, b), s * t - (a * b).sum(axis=1, keepdims=True)], axis=1)
        total /= np.linalg.norm(total, axis=1, keepdims=True)
    return {"out": total.astype(np.float32)}


def bilinear(args: Args) -> Outputs:
    image, (height, width) = args["image"].astype(np.float64), args["out"].shape
    sy = np.arange(int(height)) * (image.shape[0] - 1) / (height - 1)
    sx = np.arange(int(width)) * (image.shape[1] - 1) / (width - 1)
    top, left = (np.minimum(s.astype(np.int64), n - 2) for s, n in zip((sy, sx), image.shape, strict=True))
    fy, fx = (sy - top)[:, None], (sx - left)[None]
    corners = [image[np.ix_(top + dy, left + dx)] for dy in (0, 1) for dx in (0, 1)]
    above, below = corners[0] * (1 - fx) + corners[1] * fx, corners[2] * (1 - fx) + corners[3] * fx
    return {"out": (above * (1 - fy) + below * fy).astype(np.float32)}


def heat(args: Args) -> Outputs:
    u = args["u"]
    padding = np.pad(u, 1, mode="edge")
    around = padding[:-2, 1:-1, 1:-1] + padding[2:, 1:-1, 1:-1] + padding[1:-1, :-2, 1:-1] + padding[1:-1, 2:, 1:-1]
    around += padding[1:-1, 1:-1, :-2] + padding[1:-1, 1:-1, 2:]
    return {"out": u + float(args["rate"]) * (around - 6 * u)}


def caesar(args: Args) -> Outputs:
    text = args["text"].astype(np.int32)
    letter = (text >= 97) & (text <= 122)
    text[letter] = (text[letter] - 97 + int(args["shift"])) % 26 + 97
    return {"out": text.astype(np.uint8)}


def mix(args: Args) -> Outputs:
    a, b, t = args["a"].astype(np.float64), args["b"].astype(np.float64), float(args["t"])
    return {"out": (a + (b - a) * t).astype(np.float16)}


def row_sums(args: Args) -> Outputs:
    return {"out": args["x"].sum(axis=1, dtype=np.float64).astype(args["out"].dtype)}


def row_extremes(args: Args) -> Outputs:
    return {"low": args["x"].min(axis=1), "high": args["x"].max(axis=1)}


def squash(args: Args) -> Outputs:
    x = args["x"].astype(np.float64)
    return {"out": (np.tanh(x) + np.exp(-x * x)).astype(np.float32)}
