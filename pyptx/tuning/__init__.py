"""Chooses template parameters of a kernel: right on the simulator first, then the ones that cost least."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.tuning.choice import Trial, Tuned, tune
    from pyptx.tuning.requests import Cost, Request

__all__ = ["Cost", "Request", "Trial", "Tuned", "tune"]
__getattr__, __dir__ = defer_imports(__name__, {"choice": "Trial Tuned tune", "requests": "Cost Request"})
