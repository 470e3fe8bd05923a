"""Tells the hazard engine (`pyptx.sim.hazards`) what the machine does, when a run is checked.

`listener` hears the machine's events, `instrument` adds calls to the generated code of checked runs; the other modules
each know one family of instructions. `session` knows lanes and the engine's numbers of threads.
"""

from __future__ import annotations

from pyptx.sim.observers.checks.choice import Selection, selection
from pyptx.sim.observers.checks.listener import Checks

__all__ = ["Checks", "Selection", "selection"]
