"""One run of a kernel at one shape in one order, compared with a reference: a function of values that can be sent to
other processes, as its outcome can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from pyptx.decorator import Kernel
from pyptx.diagnostics import PtxError, format_count
from pyptx.numbers import Kind
from pyptx.runtime.agreement import compare, find_format
from pyptx.runtime.arrays import get_numpy_dtype
from pyptx.runtime.rules import ARRAYS
from pyptx.sim import Result, Stopped
from pyptx.specs import Tile, list_array_dtype_names

Array = NDArray[Any]
Inputs = Callable[[np.random.Generator, Mapping[str, int]], Sequence[Array]]
"""Makes the inputs of a shape from a random generator."""
Reference = Callable[..., Any]
_LARGEST_INTEGER = 100


@dataclass(frozen=True)
class Subject:
    """What is tested: a kernel with its template and raw parameters, its reference, and how results are compared.
    None as a tolerance: two units in the last place of the output's type, one if it is small, and 0."""

    kernel: Kernel
    reference: Reference
    inputs: Inputs | None
    keywords: Mapping[str, Any]
    check: str
    rtol: float | None
    atol: float | None

    def list_extents(self, shape: Mapping[str, Any]) -> list[int]:
        """Return the extents of a shape, which may have template and raw parameters, too."""
        return [value for name, value in shape.items() if name in self.kernel.shape_variables]


@dataclass(frozen=True)
class Trial:
    """A shape and an order, and the seed for the inputs."""

    shape: tuple[tuple[str, int], ...]
    schedule: str
    seed: int
    data_seed: int

    def with_dim(self, name: str, extent: int) -> Trial:
        """Return the trial with another extent of one dimension."""
        return replace(self, shape=tuple((n, extent if n == name else e) for n, e in self.shape))

    def __str__(self) -> str:
        shape = ", ".join(f"{name}={extent}" for name, extent in self.shape) or "the fixed shape"
        return f"{shape}, schedule={self.schedule!r}, seed={self.seed}"


@dataclass(frozen=True)
class Failure:
    """Why a trial failed: the codes of the errors, or none for wrong values, and the text to show."""

    codes: tuple[str, ...]
    text: str

    def resembles(self, other: Failure | None) -> bool:
        """Tell whether another failure is of the same kind: one error in common, or wrong values in both."""
        if other is None:
            return False
        return bool({*self.codes} & {*other.codes}) or self.codes == other.codes


def run_trial(subject: Subject, trial: Trial) -> Failure | None:
    """Run a kernel and compare it with the reference; None if they agree. Exceptions other than PtxError are not of the
    kernel, nor are errors about its inputs."""
    inputs = _make_inputs(subject, trial)
    expected = subject.reference(*(array.copy() for array in inputs))
    try:
        result = _simulate(subject, trial, inputs)
    except PtxError as why:
        codes = {item.code for item in why.diagnostics}
        if codes == {ARRAYS.code}:
            raise
        return Failure(tuple(sorted(codes)), str(why))
    kernel = subject.kernel
    names = [name for name, _ in kernel.definition.tensors[len(kernel.in_specs) :]]
    references = cast("tuple[Any, ...]", expected) if isinstance(expected, tuple) else (expected,)
    if len(references) != len(names):
        count = format_count("array", len(references))
        raise TypeError(f"the reference of `{kernel.name}` returned {count} for {format_count('output', len(names))}")
    wrong = [
        text
        for name, array in zip(names, references, strict=True)
        if (text := compare(name, result.outputs[name], np.asarray(array), subject.rtol, subject.atol))
    ]
    return Failure((), "\n".join(wrong)) if wrong else None


def save_timeline(subject: Subject, trial: Trial, path: Path) -> bool:
    """Run a trial again and write its timeline with the findings. Return False if there is none."""
    try:
        timeline = _simulate(subject, trial, _make_inputs(subject, trial), timeline=True, on_hazard="report").timeline
    except PtxError as why:
        timeline = why.timeline if isinstance(why, Stopped) else None
    if timeline is None:
        return False
    timeline.save(path)
    return True


def _make_inputs(subject: Subject, trial: Trial) -> list[Array]:
    shape = dict(trial.shape)
    generator = np.random.default_rng([trial.data_seed, *subject.list_extents(shape)])
    if subject.inputs is not None:
        inputs: object = subject.inputs(generator, shape)
        if not isinstance(inputs, list | tuple):
            raise TypeError(f"inputs= returned {type(inputs).__name__}, expected a list of the arrays of one call")
        return list(cast("Sequence[Array]", inputs))
    return draw_inputs(subject.kernel.in_specs, generator, shape)


def _simulate(subject: Subject, trial: Trial, inputs: Sequence[Array], **options: Any) -> Result:
    bound = {name for tile in subject.kernel.in_specs for name in tile.symbolic_dims}
    sizes = {name: extent for name, extent in trial.shape if name not in bound}
    order: dict[str, Any] = {"schedule": trial.schedule, "seed": trial.seed, "check": subject.check}
    return subject.kernel.simulate(*inputs, **order, **options, **sizes, **subject.keywords)


def draw_inputs(tiles: Sequence[Tile], generator: np.random.Generator, shape: Mapping[str, int]) -> list[Array]:
    """Return inputs for tiles: normally distributed floating-point numbers, without a sign if the type has none, and
    integers from -100 to 100 that the type has."""
    arrays: list[Array] = []
    for tile in tiles:
        dtype, extents = get_numpy_dtype(list_array_dtype_names(tile.dtype)[0]), tile.resolve_shape(dict(shape))
        form = find_format(dtype)
        if form.kind is Kind.INTEGER:
            limits = ml_dtypes.iinfo(dtype)
            low, high = max(limits.min, -_LARGEST_INTEGER), min(limits.max, _LARGEST_INTEGER)
            arrays.append(generator.integers(low, high, extents, dtype=np.int64, endpoint=True).astype(dtype))
        else:
            values = generator.standard_normal(extents)
            arrays.append((values if form.signed else np.abs(values)).astype(dtype))
    return arrays
