"""The names of the schedules."""

from __future__ import annotations

SEEDED = ("random", "adversarial")
SCHEDULES = ("eager", "lazy", *SEEDED)
