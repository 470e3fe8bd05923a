"""Tells the hazard engine (`pyptx.sim.hazards`) what the machine does, when a run is checked.

`session` knows lanes and the engine's numbers of threads; the other modules each know one family of instructions.
Generated code of checked runs calls them; that of unchecked runs does not know them.
"""

from __future__ import annotations

from pyptx.sim.observers.checks.choice import Selection, selection
from pyptx.sim.observers.checks.session import Checks

__all__ = ["Checks", "Selection", "selection"]
