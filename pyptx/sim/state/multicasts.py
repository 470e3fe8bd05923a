"""Multicast objects: addresses behind which the same bytes of several arrays lie, one for each device.

Only `multimem` instructions reach them; here every replica is an array of one device's memory.
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
    """An argument: arrays of one size, the replicas behind one multimem address."""

    arrays: Sequence[Array]

    def __post_init__(self) -> None:
        arrays = self.arrays
        if not (isinstance(arrays, Sequence) and arrays and all(isinstance(array, np.ndarray) for array in arrays)):  # pyright: ignore[reportUnnecessaryIsInstance]
            text = f"a sim.Multicast of {reprlib.repr(arrays)}: a list of arrays, one for each device, is expected"
            raise faults.error(faults.ARGUMENTS, None, text)


@dataclass(slots=True)
class Multicasts:
    """The multicast objects of a launch: first address, size, and where each replica lies."""

    windows: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list[tuple[int, int, tuple[int, ...]]])

    def find_numbers(self, address: Array) -> Array:
        """Return the number of the object that contains each address, -1 for none."""
        numbers = np.full(address.shape, -1)
        for number, (low, size, _) in enumerate(self.windows):
            numbers[(address >= np.uint64(low)) & (address < np.uint64(low + size))] = number
        return numbers
