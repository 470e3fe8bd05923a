"""Which mbarrier object each lane of an instruction names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import locate_objects, select_lanes
from pyptx.sim.hazards import Group
from pyptx.sim.observers.checks.session import Session
from pyptx.sim.state.memory import Site


def group_by_object(
    checks: Session, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, operand: Any = 0
) -> Iterator[tuple[Group, int, int]]:
    """Yield the lanes of a CTA that name one object with one operand: their group, the object's address, the
    operand."""
    active, (addresses, values) = select_lanes(lanes, mask, address, operand)
    if active is None:
        return
    offsets = locate_objects(site, active, space, addresses)
    shape = active.shape
    inside = offsets - shape.shared_base[active.sel]
    if (inside == inside[0]).all() and (values == values[0]).all():
        for slot, group in checks.split_by_cta(active):
            yield group, slot * shape.shared_stride + int(inside[0]), int(values[0])
        return
    threads = checks.threads[active.sel]
    keys = np.stack([offsets, values.astype(np.int64), active.cta])
    unique_keys, key_of_lane = np.unique(keys, axis=1, return_inverse=True)
    for number, (offset, value) in enumerate(unique_keys[:2].T.tolist()):
        yield Group(threads[key_of_lane.reshape(-1) == number]), offset, value
