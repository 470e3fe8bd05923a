"""What `multimem` instructions do to every replica behind an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.memory import Site


def in_replicas(
    site: Site, lanes: Lanes, mask: Array | None, address: Any, act: Callable[[Array, list[Array]], None]
) -> None:
    """Call `act` with lanes as a mask, and their addresses in every replica; once for each object they name."""
    whole = np.broadcast_to(np.asarray(address, np.uint64), lanes.n)
    active = np.ones(lanes.n, np.bool_) if mask is None else mask
    objects = site.memory.multicasts
    numbers = objects.find_numbers(whole)
    if (numbers[active] < 0).any():
        at = int(np.flatnonzero(active & (numbers < 0))[0])
        text = f"`{site.instruction.full_opcode}` at {int(whole[at]):#x}: there is no multicast object"
        raise faults.error(
            faults.WRONG_SPACE, site.origin, text, notes=(site.memory.describe_thread(lanes, at, site.function),)
        )
    for number in range(len(objects.windows)):
        if not (numbers[active] == number).any():
            continue
        low, _, replicas = objects.windows[number]
        act(active & (numbers == number), [whole - np.uint64(low) + np.uint64(replica) for replica in replicas])


def replicated(inner: Callable[..., None]) -> Callable[..., None]:
    """Return what does to every replica what `inner` does to memory at its first address."""

    def run(site: Site, lanes: Lanes, mask: Array | None, space: str, address: Any, *rest: Any) -> None:
        def act(chosen: Array, addresses: list[Array]) -> None:
            for one in addresses:
                inner(site, lanes, chosen, space, one, *rest)

        in_replicas(site, lanes, mask, address, act)

    return run
