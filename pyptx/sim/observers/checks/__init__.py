"""Report the events of a checked run to the hazard engine (`pyptx.sim.hazards`).

`listener` receives the machine's events, `instrument` adds calls to the generated code of checked runs; each other
module knows one family of instructions. `session` maps lanes to the engine's thread numbers.
"""

from __future__ import annotations

from pyptx.sim.observers.checks.choice import Selection, parse_choice
from pyptx.sim.observers.checks.listener import Checks

__all__ = ["Checks", "Selection", "parse_choice"]
