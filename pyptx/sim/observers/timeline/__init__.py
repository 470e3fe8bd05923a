"""The timeline of a simulated run: what every warp and engine did, in logical time, and its exports."""

from __future__ import annotations

from pyptx.sim.observers.timeline.timeline import Stopped, Timeline

__all__ = ["Stopped", "Timeline"]
