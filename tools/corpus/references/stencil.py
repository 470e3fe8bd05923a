"""Stencils and cellular automata on grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results

DX = [0, 1, 0, -1, 0, 1, -1, -1, 1]
DY = [0, 0, 1, 0, -1, 1, 1, -1, -1]
WEIGHTS = [4 / 9] + [1 / 9] * 4 + [1 / 36] * 4


def three_point(args: Args) -> Results:
    y = np.zeros_like(args["y"])
    y[1:-1] = np.convolve(args["x"], [0.25, 0.5, 0.25], "valid")
    return {"y": y}


def _four_neighbours(x: NDArray[Any]) -> NDArray[Any]:
    p = np.pad(x, 1)
    return p[1:-1, :-2] + p[1:-1, 2:] + p[:-2, 1:-1] + p[2:, 1:-1]


def heat(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"y": (x + 0.1 * (_four_neighbours(x) - 4 * x)).astype(np.float32)}


def seven_point(args: Args) -> Results:
    x, y = args["x"].astype(float), np.zeros_like(args["y"])
    total = sum(np.roll(x, shift, axis) for axis in range(3) for shift in (1, -1)) - 6 * x
    y[1:-1, 1:-1, 1:-1] = total[1:-1, 1:-1, 1:-1]
    return {"y": y}


def _life(x: NDArray[Any]) -> NDArray[Any]:
    shifts = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    neighbours = sum(np.roll(x, shift, (0, 1)).astype(int) for shift in shifts)
    return (neighbours == 3) | ((neighbours == 2) & (x != 0))


def life(args: Args) -> Results:
    return {"y": _life(args["x"]).astype(np.uint8)}


def life_bits(args: Args) -> Results:
    bits = np.arange(32, dtype=np.uint64)
    cells = (args["x"][:, None].astype(np.uint64) >> bits) & np.uint64(1)
    return {"y": (_life(cells).astype(np.uint64) << bits).sum(1).astype(np.uint32)}


def elementary(args: Args) -> Results:
    cells: NDArray[np.int64] = args["x"].astype(np.int64)
    rows: list[NDArray[np.uint8]] = []
    for _ in range(8):
        cells = (int(args["rule"]) >> (4 * np.roll(cells, 1) + 2 * cells + np.roll(cells, -1))) & 1
        rows.append(cells.astype(np.uint8))
    return {"y": np.stack(rows)}


def wave(args: Args) -> Results:
    u = args["u"]
    p = np.pad(u, 1)
    return {"after": 2 * u - args["before"] + 0.25 * (p[:-2] - 2 * u + p[2:])}


def jacobi(args: Args) -> Results:
    f = args["f"].astype(float)
    u = np.zeros_like(f)
    for _ in range(10):
        u = 0.25 * (_four_neighbours(u) - f)
    return {"u": u.astype(np.float32)}


def lattice_boltzmann(args: Args) -> Results:
    f = np.stack([np.roll(args["f"][k].astype(float), (DY[k], DX[k]), (0, 1)) for k in range(9)])
    rho = f.sum(0)
    ux, uy = np.tensordot(DX, f, 1) / rho, np.tensordot(DY, f, 1) / rho
    along = 3 * (np.multiply.outer(DX, ux) + np.multiply.outer(DY, uy))
    square = 1.5 * (ux**2 + uy**2)
    equilibrium = np.array(WEIGHTS)[:, None, None] * rho * (1 + along + along**2 / 2 - square)
    return {"g": (f + args["omega"] * (equilibrium - f)).astype(np.float32)}


def red_black(args: Args) -> Results:
    u: NDArray[np.float64] = args["u"].astype(float)
    j, i = np.indices((16, 16))
    inner = (i > 0) & (i < 15) & (j > 0) & (j < 15)
    for colour in range(2):
        u = np.where(inner & ((i + j) % 2 == colour), 0.25 * _four_neighbours(u), u)
    return {"u": u.astype(np.float32)}
