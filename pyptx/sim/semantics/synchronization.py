"""Manual: membar, fence, vote, match, activemask, redux, elect, griddepcontrol. Barriers that make lanes wait are the
scheduler's; warp-wide instructions run when their members are together."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.semantics.floating_point import make_canonical_nan, make_extreme
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, lanes
from pyptx.sim.state.meetings import wrap_warp_wide


def _build_nothing(match: Match, signature: Signature) -> Operation | None:
    return NOTHING


def collect_warp_bits(group: Lanes, predicate: Array) -> Array:
    """Return, for every lane, a mask of the lanes of its warp in this group whose predicate is true."""
    shape = group.shape
    warp, lane = group.select_values("warp", shape.warp), group.select_values("lane", shape.lane)
    weights = np.where(predicate, (np.uint64(1) << lane.astype("u8")).astype(np.float64), 0.0)
    return np.bincount(warp, weights=weights, minlength=shape.warps * shape.ctas).astype("u4")[warp]


def _vote(match: Match, signature: Signature) -> Operation | None:
    mode = "ballot" if "ballot" in match.modifiers else match.chosen["mode"]
    return lanes(wrap_warp_wide(partial(_count_votes, mode)))


def _count_votes(mode: str, machine: Value, group: Lanes, a: Array, mask: Array | None = None) -> Array:
    a = np.broadcast_to(a, group.n)
    members = collect_warp_bits(group, np.ones(group.n, np.bool_))
    if mask is not None:
        members = members & mask
    true_lanes = collect_warp_bits(group, a) & members
    if mode == "ballot":
        return true_lanes
    if mode == "any":
        return true_lanes != 0
    return true_lanes == members if mode == "all" else (true_lanes == members) | (true_lanes == 0)


def _activemask(match: Match, signature: Signature) -> Operation | None:
    return lanes(lambda machine, group: collect_warp_bits(group, np.ones(group.n, np.bool_)))


def _match(match: Match, signature: Signature) -> Operation | None:
    return lanes(wrap_warp_wide(_match_all if "all" in match.modifiers else _match_any))


def _compare_in_warp(group: Lanes, a: Array, mask: Array) -> Array:
    """Return, for every lane, a mask of the members of its warp that have the same value."""
    shape = group.shape
    a, mask = np.broadcast_to(a, group.n), np.broadcast_to(mask, group.n)
    warp, lane = group.select_values("warp", shape.warp), group.select_values("lane", shape.lane).astype("i8")
    table = np.zeros((shape.warps * shape.ctas, 32), a.dtype)
    is_member = np.zeros(table.shape, np.bool_)
    table[warp, lane], is_member[warp, lane] = a, True
    equal = (table[warp] == a[:, None]) & is_member[warp]
    weights = np.uint64(1) << np.arange(32, dtype=np.uint64)
    return (equal * weights).sum(1).astype("u4") & mask


def _match_any(machine: Value, group: Lanes, a: Array, mask: Array) -> Array:
    return _compare_in_warp(group, a, mask)


def _match_all(machine: Value, group: Lanes, a: Array, mask: Array) -> tuple[Array, Array]:
    members = collect_warp_bits(group, np.ones(group.n, np.bool_)) & mask
    all_equal = _compare_in_warp(group, a, mask) == members
    return np.where(all_equal, members, np.uint32(0)), all_equal


def _redux(match: Match, signature: Signature) -> Operation | None:
    op, kind = match.chosen["op"], match.modifiers[-1]
    function: Any = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                     "xor": np.bitwise_xor}[op]  # fmt: skip
    if kind == "f32":
        function = make_extreme(greater=op == "max", nan="NaN" in match.modifiers)
    return lanes(wrap_warp_wide(partial(_reduce, function, "abs" in match.modifiers)))


def _reduce(function: Value, absolute: bool, machine: Value, group: Lanes, a: Array, mask: Array) -> Array:
    """Reduce over the members of each lane's mask; lanes of one warp with different masks are separate groups."""
    shape = group.shape
    a = np.broadcast_to(np.abs(a) if absolute else a, group.n)
    key = group.select_values("warp", shape.warp).astype("i8") << 32 | np.broadcast_to(mask, group.n)
    _, group_of_lane = np.unique(key, return_inverse=True)
    order = np.argsort(group_of_lane, kind="stable")
    starts = np.flatnonzero(np.diff(group_of_lane[order], prepend=-1))
    if isinstance(function, np.ufunc):
        return function.reduceat(a[order], starts).astype(a.dtype)[group_of_lane]
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    result = a[order][starts].copy()
    for number in range(1, 32):
        has_rank = rank == number
        if has_rank.any():
            groups = group_of_lane[order][has_rank]
            result[groups] = function(result[groups], a[order][has_rank])
    return np.where(np.isnan(result), make_canonical_nan("f4"), result)[group_of_lane]


def _elect(match: Match, signature: Signature) -> Operation | None:
    return lanes(wrap_warp_wide(_elect_leader))


def _elect_leader(machine: Value, group: Lanes, mask: Array) -> tuple[Array, Array]:
    members = collect_warp_bits(group, np.ones(group.n, np.bool_)) & mask
    lowest = members & (~members + np.uint32(1))
    leader = np.bitwise_count(lowest - np.uint32(1)).astype("u4")
    return leader, group.select_values("lane", group.shape.lane) == leader


def _griddep(match: Match, signature: Signature) -> Operation | None:
    return NOTHING


BUILDERS: dict[str, Builder] = {
    "membar": _build_nothing, "fence": _build_nothing, "vote": _vote, "activemask": _activemask, "match": _match,
    "redux": _redux, "elect": _elect, "griddepcontrol": _griddep, "bar": _build_nothing, "barrier": _build_nothing,
}  # fmt: skip
