"""The names of the schedules, and the orders of a sweep."""

from __future__ import annotations

from collections.abc import Iterator

SEEDED = ("random", "adversarial")
SCHEDULES = ("eager", "lazy", *SEEDED)
SEEDS = 5


def list_orders(seeds: int = SEEDS, first: int = 0) -> Iterator[tuple[str, int]]:
    """Yield each schedule with its seeds; schedules that ignore the seed appear once."""
    for schedule in SCHEDULES:
        for seed in range(first, first + seeds) if schedule in SEEDED else (first,):
            yield schedule, seed
