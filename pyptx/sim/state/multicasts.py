"""Multicast objects: multimem addresses, each of which refers to the same bytes of several arrays, one per device.

Only `multimem` instructions access them. In `sim.run` all replicas are arrays of one device.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.rules import faults


@dataclass(frozen=True, slots=True)
class Multicast:
    """An argument: arrays of the same size, the replicas of one multimem address."""

    arrays: Sequence[Array]

    def __post_init__(self) -> None:
        arrays = self.arrays
        if not (isinstance(arrays, Sequence) and arrays and all(isinstance(array, np.ndarray) for array in arrays)):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"sim.Multicast: expected a list of arrays, one per device, found {reprlib.repr(arrays)}"
            raise faults.error(faults.ARGUMENTS, None, text)


@dataclass(frozen=True, slots=True)
class Window:
    """Addresses of a multicast object, and where they begin in each replica; or why no replica can be accessed."""

    low: int
    size: int
    replicas: tuple[int, ...] = ()
    problem: str = ""


@dataclass(slots=True)
class Multicasts:
    """The multicast objects of a launch."""

    windows: list[Window] = field(default_factory=list[Window])

    def contains(self, address: int) -> bool:
        """Return whether an address belongs to a multicast object."""
        return any(window.low <= address < window.low + window.size for window in self.windows)

    def find_numbers(self, address: Array) -> Array:
        """Return the number of the window that contains each address, -1 if there is none."""
        numbers = np.full(address.shape, -1)
        for number, window in enumerate(self.windows):
            is_inside = (address >= np.uint64(window.low)) & (address < np.uint64(window.low + window.size))
            numbers[is_inside] = number
        return numbers
