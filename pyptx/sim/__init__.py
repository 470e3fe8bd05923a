"""A CPU simulator of PTX modules. Names, and NumPy with them, are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.sim.images.objects import Sampler, Surface, Texture
    from pyptx.sim.launch.arguments import Pointer, Struct, Tensor
    from pyptx.sim.launch.results import Result, Stats
    from pyptx.sim.launch.run import run
    from pyptx.sim.launch.stepping import Machine
    from pyptx.sim.launch.streams import Launch, stream
    from pyptx.sim.launch.sweeping import Trial, sweep
    from pyptx.sim.observers.timeline import Stopped
    from pyptx.sim.program.linking import link
    from pyptx.sim.reports.graph import Hang
    from pyptx.sim.rules.faults import RULES
    from pyptx.sim.state.multicasts import Multicast

__all__ = [
    "RULES",
    "Hang",
    "Launch",
    "Machine",
    "Multicast",
    "Pointer",
    "Result",
    "Sampler",
    "Stats",
    "Stopped",
    "Struct",
    "Surface",
    "Tensor",
    "Texture",
    "Trial",
    "link",
    "run",
    "stream",
    "sweep",
]
_NAMES_OF = {
    "images.objects": "Sampler Surface Texture",
    "launch.arguments": "Pointer Struct Tensor",
    "launch.results": "Result Stats",
    "launch.run": "run",
    "launch.stepping": "Machine",
    "launch.streams": "Launch stream",
    "launch.sweeping": "Trial sweep",
    "observers.timeline": "Stopped",
    "program.linking": "link",
    "reports.graph": "Hang",
    "rules.faults": "RULES",
    "state.multicasts": "Multicast",
}
__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF)
