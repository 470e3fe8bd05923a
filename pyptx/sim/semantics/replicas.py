"""What `multimem` instructions do to every replica behind an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.rules import faults
from pyptx.sim.state.memory import Site


def visit_replicas(
    site: Site, lanes: Lanes, mask: Array | None, address: Any, act: Callable[[Array, list[Array]], None]
) -> None:
    """Call `act` once for each window that lanes name, with a mask of these lanes and their addresses in every
    replica."""
    addresses = np.broadcast_to(np.asarray(address, np.uint64), lanes.n)
    active = np.ones(lanes.n, np.bool_) if mask is None else mask
    objects = site.memory.multicasts
    numbers = objects.find_numbers(addresses)

    def refuse(rule: faults.Rule, number: int, why: str) -> PtxError:
        position = int(np.flatnonzero(active & (numbers == number))[0])
        text = f"`{site.instruction.full_opcode}` at {int(addresses[position]):#x}: {why}"
        note = site.memory.describe_thread(lanes, position, site.function)
        return faults.error(rule, site.origin, text, notes=(note,))

    if (numbers[active] < 0).any():
        raise refuse(faults.WRONG_SPACE, -1, "there is no multicast object")
    for number, window in enumerate(objects.windows):
        if not (numbers[active] == number).any():
            continue
        if window.problem:
            raise refuse(faults.OUT_OF_BOUNDS, number, window.problem)
        offsets = addresses - np.uint64(window.low)
        act(active & (numbers == number), [offsets + np.uint64(replica) for replica in window.replicas])


def apply_to_replicas(inner: Callable[..., None]) -> Callable[..., None]:
    """Return a function that applies `inner` to every replica."""

    def run(site: Site, lanes: Lanes, mask: Array | None, space: str, address: Any, *operands: Any) -> None:
        def run_on_replicas(active: Array, addresses: list[Array]) -> None:
            for replica_address in addresses:
                inner(site, lanes, active, space, replica_address, *operands)

        visit_replicas(site, lanes, mask, address, run_on_replicas)

    return run
