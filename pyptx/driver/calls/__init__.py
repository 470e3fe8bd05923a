"""The answers to the driver's functions, one file per subject."""

from __future__ import annotations

from pyptx.driver.calls import (
    captures,
    contexts,
    copies,
    devices,
    errors,
    events,
    functions,
    graph_nodes,
    graphs,
    launches,
    linking,
    memory,
    modules,
    multicasts,
    pools,
    sharing,
    streams,
    tensor_maps,
    user_objects,
    virtual_memory,
)
from pyptx.driver.signatures import ENTRIES

__all__ = ["ENTRIES", "SUBJECTS"]
SUBJECTS = (
    errors,
    devices,
    contexts,
    memory,
    pools,
    copies,
    streams,
    events,
    modules,
    linking,
    functions,
    launches,
    captures,
    graphs,
    graph_nodes,
    tensor_maps,
    user_objects,
    virtual_memory,
    multicasts,
    sharing,
)
"""The modules whose functions answer calls."""
