"""Fences of threads, of proxies and of mbarrier initialization."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.hazards import Group, Hazards, Scope, Sem, Space
from pyptx.sim.observers.checks.accesses import find_scope, find_sem, split_modifiers
from pyptx.sim.observers.checks.session import find_session

Event = Callable[[Hazards, Group], None]


def hook(step: Step) -> Callable[..., None] | None:
    """Return the function that reports a fence."""
    words = split_modifiers(step.instruction)
    if step.instruction.opcode == "membar" and "proxy" not in words:
        return partial(_report_fence, partial(_fence, Sem.SC, find_scope(words, Scope.GPU)))
    if "mbarrier_init" in words:
        return partial(_report_fence, _fence_inits)
    if any(word.startswith(("proxy::tensormap", "tensormap::generic")) for word in words):
        return partial(_fence_map, "acquire" in words, find_scope(words, Scope.CTA))
    if "proxy" in words or any(word.startswith("proxy") for word in words):
        return _select_proxy_event(words)
    return partial(_report_fence, partial(_fence, find_sem(words, Sem.ACQ_REL), find_scope(words, Scope.CTA)))


def _select_proxy_event(words: set[str]) -> Callable[..., None] | None:
    """Return the function that reports a fence between the generic and the async proxy. Of the one-way pair only the
    release crosses."""
    if "alias" in words or "acquire" in words or not any(word.startswith("async") for word in words):
        return None
    spaces = [Space.SHARED, Space.GLOBAL]
    if "global" in words:
        spaces = [Space.GLOBAL]
    elif any("shared::" in word for word in words):
        spaces = [Space.SHARED]
    return partial(_report_fence, partial(_cross, spaces))


def _report_fence(event: Event, machine: Batch, lanes: Lanes, mask: Any, *operands: Any) -> None:
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is not None:
        event(checks.engine, checks.group_lanes(active))


def _fence(sem: Sem, scope: Scope, engine: Hazards, group: Group) -> None:
    engine.sync.fence(group, sem, scope)


def _cross(spaces: list[Space], engine: Hazards, group: Group) -> None:
    engine.sync.proxy_fence(group, spaces)


def _fence_inits(engine: Hazards, group: Group) -> None:
    engine.barriers.fence_inits(group)


def _fence_map(
    acquires: bool, scope: Scope, machine: Batch, lanes: Lanes, mask: Any, space: str = "", address: Any = None,
    *size: Any,
) -> None:  # fmt: skip
    """Report a fence of the tensormap proxy: an acquire names its map, a release covers the changes by its threads."""
    checks = find_session(machine)
    active = checks.select_active(lanes, mask)
    if active is None:
        return
    threads = checks.group_lanes(active).threads
    if not acquires:
        checks.engine.maps.release_edits(threads.tolist())
        return
    map_addresses = np.broadcast_to(address, lanes.n)[np.isin(lanes.index, active.index)]
    for thread, map_address in zip(threads.tolist(), map_addresses.tolist(), strict=True):
        checks.engine.maps.acquire(thread, map_address, scope)
