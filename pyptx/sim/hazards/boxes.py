"""Boxes of tensor copies that lie outside their tensor, and which coordinates would put them inside.

Such a box may be intended, as grids are rounded up. It is a mistake if swapped coordinates, or elements instead of
bytes, put every box inside the tensor, and the boxes do not cover the tensor as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pyptx.sim import rules
from pyptx.sim.base.events import Ints, Mask, Place
from pyptx.sim.hazards.state import Grid, State
from pyptx.tensormap import TensorMap


@dataclass(slots=True)
class Coordinates:
    """The coordinates of the boxes of one map: minimum, maximum and common divisor; the instruction, thread and
    coordinates of the first box outside."""

    low: Ints
    high: Ints
    step: Ints
    first: tuple[Place, int, Ints] | None = None
    count: int = 0


class Boxes:
    """The boxes of the tensor copies of each grid."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._coordinates: dict[tuple[int, TensorMap], Coordinates] = {}

    def record_boxes(
        self, grid: Grid, threads: Ints, place: Place, tensor: TensorMap, starts: Ints, outside: Mask | None
    ) -> None:
        """Record one box per thread. `starts` has a row of coordinates per dimension; `outside` marks the boxes without
        an element inside, None if there is none."""
        coordinates = self._coordinates.get((grid.number, tensor))
        low, high, step = starts.min(1), starts.max(1), np.gcd.reduce(starts, axis=1)
        if coordinates is None:
            coordinates = self._coordinates[grid.number, tensor] = Coordinates(low, high, step)
        else:
            coordinates.low, coordinates.high = np.minimum(coordinates.low, low), np.maximum(coordinates.high, high)
            coordinates.step = np.gcd(coordinates.step, step)
        if outside is not None and outside.any():
            if coordinates.first is None:
                first = int(np.argmax(outside))
                coordinates.first = place, int(threads[first]), starts[:, first]
            coordinates.count += int(outside.sum())

    def report_outside(self, place: Place, thread: int, tensor: TensorMap, start: Ints) -> None:
        """Report a copy that moves nothing, as its box is outside the tensor."""
        self.state.report(rules.EMPTY_COPY, place, f"{_locate_box(tensor, start)} is outside", thread=thread)

    def finish(self, grid: Grid) -> None:
        """Report the coordinates that look swapped or scaled at the end of a grid."""
        for key in [key for key in self._coordinates if key[0] == grid.number]:
            coordinates, tensor = self._coordinates.pop(key), key[1]
            cause = next(_list_causes(tensor, coordinates), None) if coordinates.first is not None else None
            if coordinates.first is not None and cause is not None:
                place, thread, start = coordinates.first
                detail = f"{_locate_box(tensor, start)} is outside, {cause[0]}"
                self.state.report(rules.LOST_BOX, place, detail, thread=thread, count=coordinates.count, help=cause[1])


def _locate_box(tensor: TensorMap, start: Ints) -> str:
    box, size = (" x ".join(map(str, values)) for values in (tensor.box, tensor.dims))
    return f"the box of {box} elements at ({', '.join(map(str, start.tolist()))}) of the {size} tensor"


def _list_causes(tensor: TensorMap, coordinates: Coordinates) -> Iterator[tuple[str, str]]:
    """Yield the corrections that put all boxes inside: description and remedy."""
    dims, box = np.array(tensor.dims), np.array(tensor.box)
    covers_all = bool(((coordinates.low <= 0) & (coordinates.high + box >= dims)).all())
    for first, second in combinations(range(len(dims)), 2) if not covers_all else ():
        order = np.arange(len(dims))
        order[[first, second]] = second, first
        if _is_inside(coordinates.low[order], coordinates.high[order], dims, box):
            yield (
                f"but all boxes would be inside with coordinates {first} and {second} swapped",
                "the coordinate of the fastest dimension comes first, in the order of the tensor map's sizes: swap "
                f"coordinates {first} and {second}",
            )
    size = tensor.dtype.bits // 8
    scale = np.array([max(size, 1), *[1] * (len(dims) - 1)])
    if (
        size > 1
        and coordinates.step[0] % (box[0] * size) == 0
        and _is_inside(coordinates.low // scale, coordinates.high // scale, dims, box)
    ):
        yield (
            f"but all boxes would be inside with coordinate 0 divided by {size}",
            f"coordinates count elements, not bytes: divide coordinate 0 by {size}",
        )


def _is_inside(low: Ints, high: Ints, dims: Ints, box: Ints) -> bool:
    return bool((low >= 0).all() and (high + box <= dims).all())
