"""The orders in which the example kernels run."""

from __future__ import annotations

SEEDS = range(5)
ORDERS = [("eager", 0), ("lazy", 0), *((word, seed) for word in ("random", "adversarial") for seed in SEEDS)]
"""Schedules and seeds."""
