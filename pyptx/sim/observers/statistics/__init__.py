"""Performance hints of a run: bank conflicts, coalescing, instruction mix, bytes, overlap of engines. Nothing here is
timing."""

from __future__ import annotations

from pyptx.sim.observers.statistics.report import Statistics

__all__ = ["Statistics"]
