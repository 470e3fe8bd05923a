"""Detection of hazards in a run: races, missing fences, results used too early, misused barriers.

A separate library: the machine reports events in order and queries the findings. It imports nothing from the machine.
docs/hazards.md lists the calls.
"""

from __future__ import annotations

from pyptx.sim.base.events import (
    Access,
    Bytes,
    Family,
    Movement,
    Place,
    Scope,
    Sem,
    Space,
    atomic,
    load,
    store,
    tensor_cells,
)
from pyptx.sim.hazards.engine import Hazards
from pyptx.sim.hazards.groups import Group
from pyptx.sim.reports.findings import Agent, Finding, Ledger, show
from pyptx.sim.rules import RULES

__all__ = [
    "RULES", "Access", "Agent", "Bytes", "Family", "Finding", "Group", "Hazards", "Ledger", "Movement", "Place",
    "Scope", "Sem", "Space", "atomic", "load", "show", "store", "tensor_cells",
]  # fmt: skip
