"""Runs PTX on a CPU, from an `ir.Module`. Names are loaded on first use, NumPy with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.sim.arguments import Pointer, Struct, Tensor
    from pyptx.sim.hazards.graph import Hang
    from pyptx.sim.images.objects import Sampler, Surface, Texture
    from pyptx.sim.launch import run
    from pyptx.sim.linking import link
    from pyptx.sim.machine import Stats
    from pyptx.sim.multicasts import Multicast
    from pyptx.sim.results import Result
    from pyptx.sim.rules import RULES
    from pyptx.sim.stepping import Machine
    from pyptx.sim.streams import Launch, stream
    from pyptx.sim.sweeping import Trial, sweep

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
    "run": "launch",
    "Result": "results",
    "Stats": "machine",
    "Machine": "stepping",
    "Hang": "hazards.graph",
    "Launch": "streams",
    "link": "linking",
    "stream": "streams",
    "sweep": "sweeping",
    "Trial": "sweeping",
    "Multicast": "multicasts",
    "Pointer": "arguments",
    "Struct": "arguments",
    "Tensor": "arguments",
    "RULES": "rules",
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
