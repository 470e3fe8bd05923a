"""Barriers, dependent launches and exits: report the scheduler's decisions to the engine."""

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
from pyptx.sim.observers.checks.accesses import split_modifiers
from pyptx.sim.observers.checks.session import Session


@cache
def _classify(modifiers: tuple[str, ...]) -> Any:
    """Return what a barrier does, by its modifiers."""
    return next(word for word in ("arrive", "red", "sync") if f".{word}" in modifiers)


def arrive_at_cta_barrier(checks: Session, step: Step, lanes: Lanes, number: int, count: int | None) -> None:
    """Report lanes that arrive at a barrier of their CTA. The engine needs whole warps: lanes that arrive separately
    are kept until the rest of their warp arrives."""
    kind = _classify(step.instruction.modifiers)
    group = checks.group_lanes(lanes)
    part = checks.find_incomplete(group)
    if part is not None:
        group = _complete_warps(checks, step, group, number, part, (count, kind))
    if len(group):
        checks.engine.barriers.bar(group, checks.find_place(step), number, count, kind)


def check_numbers(checks: Session, step: Step, lanes: Lanes, numbers: Array) -> None:
    """Report lanes of an `.aligned` barrier that name different barriers of their CTA."""
    shape = lanes.shape
    warp = shape.warp[lanes.sel]
    lowest, highest = np.full(shape.warps * shape.ctas, np.iinfo(np.int64).max), np.full(shape.warps * shape.ctas, -1)
    np.minimum.at(lowest, warp, numbers.astype(np.int64))
    np.maximum.at(highest, warp, numbers.astype(np.int64))
    apart = np.flatnonzero((lowest < highest)[warp])
    if len(apart) and Trait.ALIGNED in step.traits:
        names = f"{int(lowest[warp[apart[0]]])} and {int(highest[warp[apart[0]]])}"
        message, thread = f"lanes of one warp name barriers {names}", int(checks.threads[lanes.sel][apart[0]])
        checks.engine.state.report(
            rules.BARRIER_COUNT, checks.find_place(step), message, thread=thread, count=len(apart)
        )


def _complete_warps(
    checks: Session, step: Step, group: Group, number: int, part: Array, arrival: tuple[int | None, BarKind]
) -> Group:
    """Keep the lanes of incomplete warps; return the threads of warps that are now complete."""
    complete_threads = [group.threads[~part[group.warp_index]]]
    for index in np.flatnonzero(part).tolist():
        warp = int(group.warps[index])
        threads = group.threads[group.warp_index == index]
        earlier = checks.arriving.pop((number, warp), None)
        if earlier is not None:
            threads = np.union1d(earlier[0], threads)
            _check_join(checks, step, int(group.threads[group.warp_index == index][0]), earlier, arrival)
        if len(threads) < int(checks.engine.state.live[warp * 32 : warp * 32 + 32].sum()):
            checks.arriving[number, warp] = threads, step, *arrival
        else:
            complete_threads.append(threads)
    return Group(np.sort(np.concatenate(complete_threads)))


def _check_join(
    checks: Session, step: Step, thread: int, earlier: tuple[Array, Step, int | None, BarKind],
    arrival: tuple[int | None, BarKind],
) -> None:  # fmt: skip
    """Report lanes that join others of their warp at a barrier by another instruction or with another count. Without
    `.aligned` the instructions may differ."""
    place, other_place, state = checks.find_place(step), checks.find_place(earlier[1]), checks.engine.state
    if (
        earlier[1] is not step
        and thread >> 5 not in checks.divergent_warps
        and (Trait.ALIGNED in step.traits or Trait.ALIGNED in earlier[1].traits)
    ):
        message = "other lanes of the warp execute another barrier instruction"
        state.report(rules.DIVERGENT, place, message, thread=thread, other=other_place)
    if earlier[2] != arrival[0]:
        message = "other lanes of the warp have another count"
        state.report(rules.BARRIER_COUNT, place, message, thread=thread, other=other_place)


def synchronize_parts(checks: Session, parts: list[tuple[Step, Lanes, Array]]) -> None:
    """Synchronize lanes that met at one or several `bar.warp.sync`."""
    shape, step = parts[0][1].shape, parts[0][0]
    lanes = shape.merge([lanes for _, lanes, _ in parts])
    order = np.argsort(np.concatenate([lanes.index for _, lanes, _ in parts]))
    synchronize_warps(checks, step, lanes, np.concatenate([masks for _, _, masks in parts])[order])


def synchronize_warps(checks: Session, step: Step, lanes: Lanes, masks: Array) -> None:
    """Synchronize the lanes of a `bar.warp.sync`, by member mask."""
    for mask in np.unique(masks).tolist():
        members = lanes if (masks == mask).all() else lanes.subset(masks == mask)
        assert members is not None
        checks.engine.barriers.warp_sync(checks.group_lanes(members), checks.find_place(step), int(mask))


def arrive_at_cluster_barrier(checks: Session, step: Step, lanes: Lanes) -> None:
    """Report lanes that arrive at the barrier of their cluster."""
    sem = Sem.RELAXED if "relaxed" in split_modifiers(step.instruction) else Sem.RELEASE
    for _, group in checks.split_by_cluster(lanes):
        checks.engine.barriers.cluster_arrive(group, checks.find_place(step), sem)


def pass_cluster_barrier(checks: Session, step: Step, lanes: Lanes) -> None:
    """Report lanes that pass the barrier of their cluster."""
    for _, group in checks.split_by_cluster(lanes):
        checks.engine.barriers.cluster_wait(group, checks.find_place(step), Sem.ACQUIRE)


def launch_dependents(checks: Session, lanes: Lanes, first: Sequence[bool]) -> None:
    """Report lanes that let the dependents of their grid start; `first` says for each CTA whether they are its first
    ones: only those count. Any of several warps may be first, so only one is reported."""
    for (_, group), counts in zip(checks.split_by_cta(lanes), first, strict=True):
        if counts:
            checks.engine.sync.launch_dependents(Group(group.threads[group.warp_index == 0]))


def check_guard(checks: Session, step: Step, lanes: Lanes, skipping: Lanes) -> None:
    """Report an `.aligned` barrier whose guard differs between the lanes of a warp."""
    if Trait.ALIGNED not in step.traits:
        return
    warp = lanes.shape.warp
    arriving = lanes.subset(np.isin(warp[lanes.sel], warp[skipping.sel]))
    if arriving is not None:
        checks.check_aligned(arriving, checks.find_place(step))


def end_lanes(checks: Session, step: Step, lanes: Lanes) -> None:
    """Report exited lanes, and barriers at which only exited lanes were missing from a warp."""
    checks.engine.exit(checks.group_lanes(lanes), checks.find_place(step))
    live = checks.engine.state.live
    for (number, warp), (threads, bar, count, kind) in [*checks.arriving.items()]:
        if len(threads) == int(live[warp * 32 : warp * 32 + 32].sum()):
            del checks.arriving[number, warp]
            checks.engine.barriers.bar(Group(threads), checks.find_place(bar), number, count, kind)
