"""Creates the NumPy arrays that a manifest's `run` declares, the same for each seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tools.corpus.manifest import Array, Run, Scalar, flat

Values = NDArray[Any]
Initialiser = Callable[..., Values]


def dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a name, including those of `ml_dtypes`."""
    return np.dtype(getattr(ml_dtypes, name, name))


def arguments(run: Run) -> dict[str, Any]:
    """Return every scalar and array of a launch by name, with its value before the launch."""
    values: dict[str, Any] = {}
    for index, argument in enumerate(flat(run.arguments)):
        if isinstance(argument, Scalar):
            values[argument.name] = dtype(argument.dtype).type(argument.value)
        elif isinstance(argument, Array):
            values[argument.name] = array(argument, np.random.default_rng([run.seed, index]))
    return values


def array(argument: Array, rng: np.random.Generator) -> Values:
    """Return the initial contents of an array argument."""
    size = int(np.prod(argument.shape))
    flat_values = INITIALISERS[argument.init](rng, size, **dict(argument.parameters or {}))
    if argument.init == "bits":
        kind = dtype(argument.dtype)
        return np.frombuffer(rng.bytes(size * kind.itemsize), kind).reshape(argument.shape).copy()
    return np.asarray(flat_values).astype(dtype(argument.dtype)).reshape(argument.shape)


def _zeros(_rng: np.random.Generator, size: int) -> Values:
    return np.zeros(size)


def _make_ones(_rng: np.random.Generator, size: int) -> Values:
    return np.ones(size)


def _fill(_rng: np.random.Generator, size: int, value: float) -> Values:
    return np.full(size, value)


def _arange(_rng: np.random.Generator, size: int) -> Values:
    return np.arange(size)


def _normal(rng: np.random.Generator, size: int) -> Values:
    return rng.standard_normal(size)


def _permutation(rng: np.random.Generator, size: int) -> Values:
    return rng.permutation(size)


def _draw_sorted(rng: np.random.Generator, size: int, low: int = 0, high: int = 100) -> Values:
    return np.sort(_integers(rng, size, low, high))


def _integers(rng: np.random.Generator, size: int, low: int = 0, high: int = 100) -> Values:
    return rng.integers(low, high, size)


def _uniform(rng: np.random.Generator, size: int, low: float = 0.0, high: float = 1.0) -> Values:
    return rng.uniform(low, high, size)


def _offsets(rng: np.random.Generator, size: int, low: int = 0, high: int = 8) -> Values:
    """Return row offsets of a compressed sparse matrix: from 0, with `low` to `high` elements per row."""
    return np.concatenate([[0], np.cumsum(rng.integers(low, high, size - 1))])


def _positive_definite(rng: np.random.Generator, size: int) -> Values:
    """Return a well-conditioned symmetric matrix, flattened."""
    order = int(np.sqrt(size))
    factor = rng.standard_normal((order, order))
    return (factor @ factor.T / order + 2.0 * np.eye(order)).ravel()


def _values(_rng: np.random.Generator, size: int, values: list[float]) -> Values:
    wide = any(isinstance(value, int) and value >= 1 << 63 for value in values)
    return np.resize(np.array(values, np.uint64 if wide else None), size)


INITIALISERS: dict[str, Initialiser] = {
    "zeros": _zeros,
    "ones": _make_ones,
    "fill": _fill,
    "arange": _arange,
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "bits": _zeros,
    "permutation": _permutation,
    "sorted": _draw_sorted,
    "offsets": _offsets,
    "positive_definite": _positive_definite,
    "values": _values,
}
