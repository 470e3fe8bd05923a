"""Tells the engine where the boxes of tensor copies lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.checks.session import checks_of
from pyptx.sim.state.memory import Site
from pyptx.tensormap import TensorMap


def copied(site: Site, lanes_of_box: Lanes, tensor: TensorMap, at: Sequence[Any], inside: Array | None) -> None:
    """Lanes copy tiles at these coordinates, one for each dimension; `inside` are the units of a single box that lie in
    the tensor, None where all do."""
    checks, place = checks_of(site)
    assert checks.grid is not None
    threads, boxes = checks.group(lanes_of_box).threads, checks.engine.boxes
    coordinates = np.array([np.broadcast_to(values, lanes_of_box.n) for values in at]).astype(np.int64)
    outside = None if inside is None else np.full(lanes_of_box.n, not inside.any())
    boxes.copied(checks.grid, threads, place, tensor, coordinates, outside)
    if outside is not None and outside.any() and "unused" in checks.selected.optional:
        boxes.report_outside(place, int(threads[0]), tensor, coordinates[:, 0])
