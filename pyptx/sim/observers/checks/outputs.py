"""Output elements that were never written when the grid ends: of uninitialized arrays always, of others if
`check="outputs"` is selected and some elements were written."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.hazards import Space
from pyptx.sim.hazards.outputs import find_written_bytes
from pyptx.sim.observers.checks.session import Session


def report_unwritten(checks: Session, name: str, address: int, array: Array, help: str) -> None:
    """Report elements of an array that were never written."""
    assert checks.grid is not None
    shadow_memory = checks.engine.state.find_shadow(Space.GLOBAL, checks.grid, address)
    if shadow_memory is None or not shadow_memory[0].written:
        return
    shadow, base = shadow_memory
    is_written = find_written_bytes(shadow)[address - base :][: array.nbytes].reshape(array.size, array.itemsize).all(1)
    missing = np.flatnonzero(~is_written)
    if len(missing):
        index = ", ".join(str(int(coordinate)) for coordinate in np.unravel_index(int(missing[0]), array.shape))
        checks.engine.numerics.report_unwritten(checks.grid.place, name, f"[{index}]", len(missing), array.size, help)
