"""Barriers, dependent launches and exits: what the decisions of the scheduler mean to the engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim import rules
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Group, Sem
from pyptx.sim.hazards.barriers import BarKind
from pyptx.sim.observers.checks.accesses import words_of
from pyptx.sim.observers.checks.session import Session


@cache
def _classify(modifiers: tuple[str, ...]) -> Any:
    """Return what a barrier does, by its modifiers."""
    return next(word for word in ("arrive", "red", "sync") if f".{word}" in modifiers)


def cta_barrier(checks: Session, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
    """Lanes arrive at a barrier of their CTA. The engine is told of whole warps: lanes that come apart are kept until
    the rest of their warp is there."""
    kind = _classify(step.instruction.modifiers)
    group = checks.group(lanes)
    part = checks.incomplete(group)
    if part is not None:
        group = _complete_warps(checks, step, group, number, part, (count, kind))
    if len(group):
        checks.engine.barriers.bar(group, checks.place(step), number, count, kind)


def numbered(checks: Session, step: Step, lanes: Lanes, numbers: Array) -> None:
    """Lanes come to barriers of their CTA by these numbers: those of a warp that promises to be whole name one."""
    shape = lanes.shape
    warp = shape.warp[lanes.sel]
    least, most = np.full(shape.warps * shape.ctas, np.iinfo(np.int64).max), np.full(shape.warps * shape.ctas, -1)
    np.minimum.at(least, warp, numbers.astype(np.int64))
    np.maximum.at(most, warp, numbers.astype(np.int64))
    apart = np.flatnonzero((least < most)[warp])
    if len(apart) and Trait.ALIGNED in step.traits:
        names = f"{int(least[warp[apart[0]]])} and {int(most[warp[apart[0]]])}"
        message, thread = f"lanes of one warp name barriers {names}", int(checks.threads[lanes.sel][apart[0]])
        checks.engine.state.report(rules.BARRIER_COUNT, checks.place(step), message, thread=thread, count=len(apart))


def _complete_warps(
    checks: Session, step: Step, group: Group, number: int, part: Array, how: tuple[int | None, BarKind]
) -> Group:
    """Keep the lanes of incomplete warps, and return the threads of warps that are whole now."""
    whole = [group.threads[~part[group.warp_index]]]
    for at in np.flatnonzero(part).tolist():
        warp = int(group.warps[at])
        mine = group.threads[group.warp_index == at]
        before = checks.arriving.pop((number, warp), None)
        if before is not None:
            mine = np.union1d(before[0], mine)
            _check_join(checks, step, int(group.threads[group.warp_index == at][0]), before, how)
        if len(mine) < int(checks.engine.state.live[warp * 32 : warp * 32 + 32].sum()):
            checks.arriving[number, warp] = mine, step, *how
        else:
            whole.append(mine)
    return Group(np.sort(np.concatenate(whole)))


def _check_join(
    checks: Session, step: Step, thread: int, before: tuple[Array, Step, int | None, BarKind],
    how: tuple[int | None, BarKind],
) -> None:  # fmt: skip
    """Lanes come to a barrier at which others of their warp are: without `.aligned`, by any instruction."""
    place, other, state = checks.place(step), checks.place(before[1]), checks.engine.state
    if (
        before[1] is not step
        and thread >> 5 not in checks.parted
        and (Trait.ALIGNED in step.traits or Trait.ALIGNED in before[1].traits)
    ):
        message = "other lanes of the warp execute another barrier instruction"
        state.report(rules.DIVERGENT, place, message, thread=thread, other=other)
    if before[2] != how[0]:
        message = "other lanes of the warp have another count"
        state.report(rules.BARRIER_COUNT, place, message, thread=thread, other=other)


def warp_barriers(checks: Session, gone: list[tuple[Step, Lanes, Array]]) -> None:
    """Lanes go on behind one or several instructions, at which they met."""
    shape, step = gone[0][1].shape, gone[0][0]
    lanes = shape.merged([lanes for _, lanes, _ in gone])
    order = np.argsort(np.concatenate([lanes.index for _, lanes, _ in gone]))
    warp_barrier(checks, step, lanes, np.concatenate([masks for _, _, masks in gone])[order])


def warp_barrier(checks: Session, step: Step, lanes: Lanes, masks: Array) -> None:
    """Lanes go on behind a `bar.warp.sync`."""
    for mask in np.unique(masks).tolist():
        chosen = lanes if (masks == mask).all() else lanes.subset(masks == mask)
        assert chosen is not None
        checks.engine.barriers.warp_sync(checks.group(chosen), checks.place(step), int(mask))


def cluster_arrives(checks: Session, step: Step, lanes: Lanes) -> None:
    """Lanes arrive at the barrier of their cluster."""
    sem = Sem.RELAXED if "relaxed" in words_of(step.instruction) else Sem.RELEASE
    for _, group in checks.by_cluster(lanes):
        checks.engine.barriers.cluster_arrive(group, checks.place(step), sem)


def cluster_waited(checks: Session, step: Step, lanes: Lanes) -> None:
    """Lanes go on behind the barrier of their cluster."""
    for _, group in checks.by_cluster(lanes):
        checks.engine.barriers.cluster_wait(group, checks.place(step), Sem.ACQUIRE)


def launches_dependents(checks: Session, lanes: Lanes, first: Sequence[bool]) -> None:
    """Lanes let the dependents of their grid start; `first`: those of this CTA, which count, are the first to do so.
    Of several warps any may come first, so that only one of them counts."""
    for (_, group), counts in zip(checks.by_cta(lanes), first, strict=True):
        if counts:
            checks.engine.sync.launch_dependents(Group(group.threads[group.warp_index == 0]))


def parts(checks: Session, step: Step, lanes: Lanes, others: Lanes) -> None:
    """The guard of a barrier lets some lanes come to it and others pass by."""
    if Trait.ALIGNED not in step.traits:
        return
    warp = lanes.shape.warp
    passing = lanes.subset(np.isin(warp[lanes.sel], warp[others.sel]))
    if passing is not None:
        checks.aligned(passing, checks.place(step))


def exits(checks: Session, step: Step, lanes: Lanes) -> None:
    """Lanes end. Those of their warps that came to a barrier without them are whole now."""
    checks.engine.exit(checks.group(lanes), checks.place(step))
    live = checks.engine.state.live
    for (number, warp), (threads, bar, count, kind) in [*checks.arriving.items()]:
        if len(threads) == int(live[warp * 32 : warp * 32 + 32].sum()):
            del checks.arriving[number, warp]
            checks.engine.barriers.bar(Group(threads), checks.place(bar), number, count, kind)
