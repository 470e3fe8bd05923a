"""Transforms and filters of signals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def _pairs(z: NDArray[np.complex128]) -> NDArray[Any]:
    return np.stack([z.real, z.imag], axis=-1).astype(np.float32)


def fft(args: Args) -> Results:
    return {"y": _pairs(np.fft.fft(args["x"].astype(float) @ np.array([1, 1j])))}


def dft_real(args: Args) -> Results:
    return {"y": _pairs(np.fft.fft(args["x"].astype(float)))}


def dct(args: Args) -> Results:
    i = np.arange(8)
    basis = np.cos(np.pi / 16 * np.outer(i, 2 * i + 1)) * np.where(i == 0, np.sqrt(1 / 8), 0.5)[:, None]
    return {"y": (basis @ args["x"] @ basis.T).astype(np.float32)}


def haar(args: Args) -> Results:
    s, y = args["x"].astype(float), np.zeros(64)
    while len(s) > 1:
        a, b = s[::2], s[1::2]
        y[len(a) : 2 * len(a)] = (a - b) / np.sqrt(2)
        s = (a + b) / np.sqrt(2)
    y[0] = s[0]
    return {"y": y.astype(np.float32)}


def walsh(args: Args) -> Results:
    matrix = np.ones((1, 1), np.int64)
    for _ in range(5):
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return {"y": (matrix @ args["x"]).astype(np.int32)}


def fir(args: Args) -> Results:
    return {"y": np.convolve(args["x"].astype(float), [0.1, 0.2, 0.4, 0.2, 0.1], "valid").astype(np.float32)}


def biquad(args: Args) -> Results:
    x = args["x"].astype(float)
    y = np.zeros_like(x)
    for i in range(x.shape[1]):
        y[:, i] = 0.2 * x[:, i]
        if i > 0:
            y[:, i] += 0.4 * x[:, i - 1] + 0.5 * y[:, i - 1]
        if i > 1:
            y[:, i] += 0.2 * x[:, i - 2] - 0.3 * y[:, i - 2]
    return {"y": y.astype(np.float32)}


def goertzel(args: Args) -> Results:
    return {"power": (np.abs(np.fft.fft(args["x"].astype(float))[:16]) ** 2).astype(np.float32)}


def autocorrelation(args: Args) -> Results:
    x = args["x"].astype(float)
    return {"r": np.array([x[: len(x) - lag] @ x[lag:] for lag in range(32)], np.float32)}


def resample(args: Args) -> Results:
    times = np.arange(64) * float(args["ratio"])
    x: NDArray[np.float64] = args["x"].astype(float)
    return {"y": np.interp(times, np.arange(32), x).astype(np.float32)}
