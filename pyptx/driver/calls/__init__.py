"""The answers to the driver's functions, one file per subject."""

from __future__ import annotations

from pyptx.driver.calls import (
    contexts,
    copies,
    devices,
    errors,
    events,
    functions,
    launches,
    memory,
    modules,
    pools,
    streams,
)
from pyptx.driver.signatures import ENTRIES

__all__ = ["ENTRIES", "SUBJECTS"]
SUBJECTS = (errors, devices, contexts, memory, pools, copies, streams, events, modules, functions, launches)
"""The modules whose functions answer calls."""
