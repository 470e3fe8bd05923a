"""A CPU simulator of PTX modules. Names, and NumPy with them, are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
_MODULE_OF = {
    "run": "launch.run",
    "Result": "launch.results",
    "Stopped": "observers.timeline",
    "Stats": "launch.results",
    "Machine": "launch.stepping",
    "Hang": "reports.graph",
    "Launch": "launch.streams",
    "link": "program.linking",
    "stream": "launch.streams",
    "sweep": "launch.sweeping",
    "Trial": "launch.sweeping",
    "Multicast": "state.multicasts",
    "Pointer": "launch.arguments",
    "Struct": "launch.arguments",
    "Tensor": "launch.arguments",
    "RULES": "rules.faults",
    "Sampler": "images.objects",
    "Surface": "images.objects",
    "Texture": "images.objects",
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
