"""Images: filters, colors, geometry."""

from __future__ import annotations

import colorsys

import numpy as np

from tools.corpus.references import Args, Results


def gray(args: Args) -> Results:
    return {"gray": ((args["rgb"].astype(int) @ [77, 150, 29] + 128) >> 8).astype(np.uint8)}


def yuv(args: Args) -> Results:
    rgb = args["rgb"][:, :3].astype(float)
    y = rgb @ [0.299, 0.587, 0.114]
    return {"yuv": np.stack([y, 0.492 * (rgb[:, 2] - y), 0.877 * (rgb[:, 0] - y)], axis=1).astype(np.float32)}


def hsv_to_rgb(args: Args) -> Results:
    return {"rgb": np.array([colorsys.hsv_to_rgb(*row) for row in args["hsv"].astype(float)], np.float32)}


def sobel(args: Args) -> Results:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"].astype(int), (3, 3))
    kernel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    along, across = (np.einsum("yxrs,rs->yx", windows, k) for k in (kernel, kernel.T))
    return {"y": (np.abs(along) + np.abs(across)).astype(np.int32)}


def gaussian_rows(args: Args) -> Results:
    padding = np.pad(args["x"].astype(float), ((0, 0), (2, 2)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padding, 5, 1)
    return {"y": (windows @ [1 / 16, 1 / 4, 3 / 8, 1 / 4, 1 / 16]).astype(np.float32)}


def median(args: Args) -> Results:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"], (3, 3))
    return {"y": np.median(windows, axis=(2, 3)).astype(np.int32)}


def bilateral(args: Args) -> Results:
    windows = np.lib.stride_tricks.sliding_window_view(args["x"].astype(float), (3, 3))
    near = np.exp(-0.5 * np.add.outer([1, 0, 1], [1, 0, 1]))
    weights = np.exp(-4 * (windows - windows[:, :, 1:2, 1:2]) ** 2) * near
    return {"y": ((weights * windows).sum((2, 3)) / weights.sum((2, 3))).astype(np.float32)}


def resize(args: Args) -> Results:
    positions, grid = np.linspace(0, 7, 16), np.arange(8)
    spread = np.stack([np.interp(positions, grid, corner) for corner in np.eye(8)], axis=1)
    return {"y": (spread @ args["x"].astype(float) @ spread.T).astype(np.float32)}


def erode(args: Args) -> Results:
    cells = np.pad((args["x"][:, None].astype(np.int64) >> np.arange(32)) & 1, 1)
    survivors = cells[1:-1, 1:-1] & cells[1:-1, :-2] & cells[1:-1, 2:] & cells[:-2, 1:-1] & cells[2:, 1:-1]
    return {"y": (survivors << np.arange(32)).sum(1).astype(np.uint32)}


def blend(args: Args) -> Results:
    a, b = args["a"].astype(int), args["b"].astype(int)
    weight = a[:, 3:].copy()
    a[:, 3] = 255
    return {"out": ((a * weight + b * (255 - weight)) // 255).astype(np.uint8)}


def dither(args: Args) -> Results:
    bayer = np.array([[0, 8, 2, 10], [12, 4, 14, 6], [3, 11, 1, 9], [15, 7, 13, 5]])
    return {"y": np.where(args["x"] > np.tile(bayer, (4, 4)) * 16 + 8, 255, 0).astype(np.uint8)}


def equalise(args: Args) -> Results:
    below = np.cumsum(np.bincount(args["x"], minlength=256))
    return {"y": ((below[args["x"]] * 255 + 128) >> 8).astype(np.uint8)}


def rotate(args: Args) -> Results:
    return {"y": np.rot90(args["x"], -1).copy()}


def distance(args: Args) -> Results:
    (set_bits,) = np.nonzero(args["x"])
    return {"d": np.abs(np.subtract.outer(np.arange(32), set_bits)).min(1).astype(np.int32)}
