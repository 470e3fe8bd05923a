"""Report to the engine where the boxes of tensor copies are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.checks.session import locate_session
from pyptx.sim.state.memory import Site
from pyptx.tensormap import TensorMap


def record_boxes(
    site: Site, lanes_of_box: Lanes, tensor: TensorMap, start: Sequence[Any], inside: Array | None
) -> None:
    """Record the tiles that lanes copy at these coordinates, one row per dimension; `inside` are the units of a single
    box inside the tensor, None if all are."""
    checks, place = locate_session(site)
    assert checks.grid is not None
    threads, boxes = checks.group_lanes(lanes_of_box).threads, checks.engine.boxes
    coordinates = np.array([np.broadcast_to(values, lanes_of_box.n) for values in start]).astype(np.int64)
    outside = None if inside is None else np.full(lanes_of_box.n, not inside.any())
    boxes.record_boxes(checks.grid, threads, place, tensor, coordinates, outside)
    if outside is not None and outside.any() and "unused" in checks.selection.optional:
        boxes.report_outside(place, int(threads[0]), tensor, coordinates[:, 0])
