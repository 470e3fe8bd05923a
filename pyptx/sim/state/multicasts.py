"""Multicast objects: multimem addresses, each of which refers to the same bytes of several arrays, one per device.

Only `multimem` instructions access them. In the simulator all replicas are arrays of one device.
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


@dataclass(slots=True)
class Multicasts:
    """The multicast objects of a launch: first address, size, and the address of each replica."""

    windows: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list[tuple[int, int, tuple[int, ...]]])

    def find_numbers(self, address: Array) -> Array:
        """Return the number of the object that contains each address, -1 if there is none."""
        numbers = np.full(address.shape, -1)
        for number, (low, size, _) in enumerate(self.windows):
            numbers[(address >= np.uint64(low)) & (address < np.uint64(low + size))] = number
        return numbers
