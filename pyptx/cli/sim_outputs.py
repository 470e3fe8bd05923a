"""Saves a kernel's arrays to files after a run, and compares them with files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from pyptx.cli.sim_arguments import Unusable, is_number, read_array, shorten
from pyptx.diagnostics import format_count

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Saving:
    """An argument, by index, to write to a file."""

    index: int
    path: Path


@dataclass(frozen=True, slots=True)
class Expectation:
    """An argument that must equal the array in a file."""

    index: int
    name: str
    path: Path
    values: Array


def parse_saving(text: str, names: Sequence[str], arrays: Sequence[bool]) -> Saving:
    """Parse `2=out.npy` or `out=out.npy`."""
    index, path = _parse_output(text, "--save", names, arrays)
    if not path.absolute().parent.is_dir():
        raise Unusable(f"--save {shorten(text)}: there is no directory {path.parent}")
    return Saving(index, path)


def parse_expectation(text: str, names: Sequence[str], arrays: Sequence[bool]) -> Expectation:
    """Parse `out=reference.npy` and read the file now, before a long run."""
    index, path = _parse_output(text, "--expect", names, arrays)
    return Expectation(index, names[index], path, read_array(path))


def _parse_output(text: str, option: str, names: Sequence[str], arrays: Sequence[bool]) -> tuple[int, Path]:
    name, _, path = text.partition("=")
    index = int(name) if is_number(name) else names.index(name) if name in names else -1
    if not path or not 0 <= index < len(names):
        choices = ", ".join(f"{n} or {index}" for index, n in enumerate(names)) or "none"
        raise Unusable(f"{option} {shorten(text)}: expected ARG=FILE; the arguments are {choices}")
    if not arrays[index]:
        raise Unusable(f"{option} {shorten(text)}: `{names[index]}` is not an array")
    if "\0" in path:
        raise Unusable(f"{option} {shorten(text)}: a file name cannot contain NUL")
    return index, Path(path)


def save(item: Saving, array: Array | None) -> None:
    """Write an array to a file; on failure, leave no partial file."""
    assert array is not None
    try:
        with item.path.open("wb") as file:
            # On a Python file, NumPy would report only the number of missing items, not the reason.
            np.save(cast("Any", SimpleNamespace(write=file.write)), array, allow_pickle=False)
    except OSError as why:
        if item.path.is_file():
            item.path.unlink()
        raise Unusable(f"{item.path}: {why.strerror}") from None


def describe_differences(item: Expectation, array: Array | None, tolerance: float) -> list[str]:
    """Return how an array differs from the expected one; empty if it does not."""
    assert array is not None
    expectation_values = item.values
    if expectation_values.dtype.kind == "V" and expectation_values.dtype.itemsize == array.dtype.itemsize:
        expectation_values = expectation_values.view(array.dtype)
    if expectation_values.size != array.size:
        return [
            f"`{item.name}` has {format_count('element', array.size)}, but {item.path} has {expectation_values.size}"
        ]
    actual, right = (_widen(values).reshape(-1) for values in (array, expectation_values))
    equal = actual == right
    if tolerance:
        largest = float(np.abs(right[np.isfinite(right)]).max(initial=0))
        equal |= np.isclose(actual, right, rtol=tolerance, atol=tolerance * largest)
    equal |= (actual != actual) & (right != right)
    if equal.all():
        return []
    bad = np.flatnonzero(~equal)
    index = ", ".join(str(n) for n in np.unravel_index(int(bad[0]), array.shape))
    first = f"first [{index}]: found {actual[bad[0]]}, expected {right[bad[0]]}"
    return [f"`{item.name}` differs from {item.path} in {len(bad)} of {array.size} elements, {first}"]


def _widen(values: Array) -> Array:
    return values if values.dtype.kind in "iub" else values.astype(np.float64)
