"""mbarrier instructions: which object each lane names, and what the instruction does to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Group, Place, Scope, Sem
from pyptx.sim.observers.checks.accesses import find_scope, find_sem, split_modifiers
from pyptx.sim.observers.checks.objects import group_by_object
from pyptx.sim.observers.checks.session import Session, locate_session
from pyptx.sim.state.memory import Site

_PENDING_BITS = 20
Inner = Callable[..., None]


def hook(step: Step, inner: Inner) -> Inner | None:
    """Return a function that runs an mbarrier instruction and reports it."""
    words = split_modifiers(step.instruction)
    scope = find_scope(words, Scope.CTA)
    match step.traits:
        case {Trait.INITIALIZES: _}:
            return partial(_init, inner)
        case {Trait.FREES: _}:
            return partial(_inval, inner)
        case {Trait.SIGNALS: "expectation"}:
            return partial(_expect, inner)
        case {Trait.SIGNALS: "completion"}:
            return partial(_complete, inner)
        case {Trait.SIGNALS: signal}:
            qualifiers = {
                "sem": find_sem(words, Sem.RELEASE), "scope": scope, "drop": signal == "drop",
                "no_complete": "noComplete" in words,
            }  # fmt: skip
            return partial(_arrive, inner, "expect_tx" in words, qualifiers)
        case {Trait.TESTS: _}:
            return partial(_wait, inner, "parity" in words, {"sem": find_sem(words, Sem.ACQUIRE), "scope": scope})
        case _:
            return None


def _init(inner: Inner, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, count: Any) -> None:
    checks, place = locate_session(site)
    objects_by_count: dict[int, list[tuple[int, int]]] = {}
    for group, object_address, number in group_by_object(checks, site, lanes, mask, space, address, count):
        objects_by_count.setdefault(number, []).append((group.first, object_address))
        for thread in group.threads[1:].tolist():
            checks.engine.mbarriers.init(thread, place, object_address, number)
    for number, objects in objects_by_count.items():
        checks.engine.mbarriers.init_all(
            [thread for thread, _ in objects], place, [object_address for _, object_address in objects], number
        )
    inner(site, lanes, mask, space, address, outs, count)


def _inval(inner: Inner, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    checks, place = locate_session(site)
    for group, object_address, _ in group_by_object(checks, site, lanes, mask, space, address):
        for thread in group.threads.tolist():
            checks.engine.mbarriers.inval(thread, place, object_address)
    inner(site, lanes, mask, space, address, outs)


def _expect(inner: Inner, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, size: Any) -> None:
    checks, place = locate_session(site)
    for group, object_address, amount in group_by_object(checks, site, lanes, mask, space, address, size):
        checks.engine.mbarriers.expect(group, place, object_address, amount)
    inner(site, lanes, mask, space, address, outs, size)


def _complete(
    inner: Inner, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, size: Any
) -> None:
    checks, place = locate_session(site)
    engine = checks.engine.mbarriers
    for group, object_address, amount in group_by_object(checks, site, lanes, mask, space, address, size):
        for thread in group.threads.tolist():
            barrier = engine.find(place, thread, object_address, "complete_tx")
            if barrier is not None:
                stamp = checks.engine.state.clocks.release(np.array([thread]))
                engine.contribute(barrier, stamp, thread, Sem.RELAXED, Scope.CLUSTER)
                engine.complete_bytes(barrier, place, thread, amount, crosses=False)
    inner(site, lanes, mask, space, address, outs, size)


def _arrive(
    inner: Inner, expects: bool, qualifiers: dict[str, Any], site: Site, lanes: Lanes, mask: Any, space: str,
    address: Any, outs: Any, operand: Any = 1,
) -> None:  # fmt: skip
    checks, place = locate_session(site)
    arrivals_by_operand: dict[int, list[tuple[Group, int]]] = {}
    for group, object_address, number in group_by_object(checks, site, lanes, mask, space, address, operand):
        arrivals_by_operand.setdefault(number, []).append((group, object_address))
    for number, arrivals in arrivals_by_operand.items():
        count, expect = (1, number) if expects else (number, 0)
        checks.engine.mbarriers.arrive_all(arrivals, place, count=count, expect=expect, **qualifiers)
    inner(site, lanes, mask, space, address, outs, operand)


def _wait(
    inner: Inner, parity: bool, qualifiers: dict[str, Any], site: Site, lanes: Lanes, mask: Any, space: str,
    address: Any, outs: Any, tokens: Any, *hint: Any,
) -> None:  # fmt: skip
    checks, place = locate_session(site)
    if mask is not None:
        mask = np.array(mask)
    try:
        inner(site, lanes, mask, space, address, outs, tokens, *hint)
    except PtxError:
        _report_missing(checks, place, site, lanes, mask, space, address)
        raise
    is_complete: Array = outs[0] if mask is None else outs[0] & mask
    if site.memory.cluster > 1 and not is_complete.all():
        for group, object_address, _ in group_by_object(
            checks, site, lanes, ~is_complete if mask is None else ~is_complete & mask, space, address
        ):
            checks.engine.mbarriers.check_own(place, group.first, object_address, "wait")
    if not is_complete.any():
        return
    passing = None if is_complete.all() else np.array(is_complete)
    for group, object_address, value in group_by_object(checks, site, lanes, passing, space, address, tokens):
        condition: dict[str, Any] = {"parity": value & 1} if parity else {"phase": value >> _PENDING_BITS}
        checks.engine.mbarriers.wait(group, place, object_address, **condition, **qualifiers)


def _report_missing(
    checks: Session, place: Place, site: Site, lanes: Lanes, mask: Any, space: str, address: Any
) -> None:
    """Report a missing mbarrier: the finding is more precise than the machine's error."""
    for group, object_address, _ in group_by_object(checks, site, lanes, mask, space, address):
        checks.engine.mbarriers.find(place, group.first, object_address, "wait")
