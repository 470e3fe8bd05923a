"""What `multimem` instructions do to every replica behind an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.memory import Site


def visit_replicas(
    site: Site, lanes: Lanes, mask: Array | None, address: Any, act: Callable[[Array, list[Array]], None]
) -> None:
    """Call `act` once for each object that lanes name, with a mask of these lanes and their addresses in every
    replica."""
    addresses = np.broadcast_to(np.asarray(address, np.uint64), lanes.n)
    active = np.ones(lanes.n, np.bool_) if mask is None else mask
    objects = site.memory.multicasts
    numbers = objects.find_numbers(addresses)
    if (numbers[active] < 0).any():
        position = int(np.flatnonzero(active & (numbers < 0))[0])
        text = f"`{site.instruction.full_opcode}` at {int(addresses[position]):#x}: there is no multicast object"
        raise faults.error(
            faults.WRONG_SPACE, site.origin, text, notes=(site.memory.describe_thread(lanes, position, site.function),)
        )
    for number in range(len(objects.windows)):
        if not (numbers[active] == number).any():
            continue
        low, _, replicas = objects.windows[number]
        act(active & (numbers == number), [addresses - np.uint64(low) + np.uint64(replica) for replica in replicas])


def apply_to_replicas(inner: Callable[..., None]) -> Callable[..., None]:
    """Return a function that applies `inner` to every replica."""

    def run(site: Site, lanes: Lanes, mask: Array | None, space: str, address: Any, *operands: Any) -> None:
        def run_on_replicas(active: Array, addresses: list[Array]) -> None:
            for replica_address in addresses:
                inner(site, lanes, active, space, replica_address, *operands)

        visit_replicas(site, lanes, mask, address, run_on_replicas)

    return run
