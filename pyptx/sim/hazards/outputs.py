"""Which bytes of a buffer were never written."""

from __future__ import annotations

import numpy as np

from pyptx.sim.base.events import Mask
from pyptx.sim.hazards.shadow import SIZES, Shadow


def find_written_bytes(shadow: Shadow) -> Mask:
    """Tell, for each byte of a buffer, whether any access wrote it."""
    is_written = np.zeros((shadow.granules, SIZES[0]), np.bool_)
    for level, size in enumerate(SIZES):
        granules = np.flatnonzero(shadow.level == level)
        if len(granules):
            cells = (granules[:, None] << level) + np.arange(1 << level)
            is_written[granules] = (shadow.get_cells(level).write[cells] != 0).repeat(size, axis=1)
    return is_written.reshape(-1)[: shadow.size]
