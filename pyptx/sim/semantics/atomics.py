"""Manual: atom, red. Lanes with the same address update it in lane order."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import wrap_signal
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import encode_exact, flush, round_to_format
from pyptx.sim.semantics.floating_point import make_extreme
from pyptx.sim.semantics.replicas import apply_to_replicas
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Mixed, Site

_BY_ONE: dict[str, Callable[[int, int, int], int]] = {
    "exch": lambda old, b, c: b,
    "inc": lambda old, b, c: 0 if old >= b else old + 1,
    "dec": lambda old, b, c: b if old == 0 or old > b else old - 1,
    "cas": lambda old, b, c: c if old == b else old,
}
"""The operations that have no ufunc, on plain integers: for many lanes at few addresses."""

Update = Callable[..., Array]
"""Returns the new value from the old one and the operands."""
Watch = Callable[[str, Site, Lanes, Array, Array, Array, Array], None]
"""Receives sums: their type, the instruction, its lanes, the positions of the current lanes, and their old values,
addends and results."""

_INTEGER: dict[str, Update] = {
    "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "min": np.minimum,
    "max": np.maximum, "exch": lambda old, b: b,
    "inc": lambda old, b: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1)),
    "cas": lambda old, b, c: np.where(old == b, c, old),
}  # fmt: skip
_AT_ONCE = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}
"""Operations whose order does not matter if the old value is unused."""


def _build_atomic(match: Match, signature: Signature) -> Operation | None:
    kind = match.chosen.get("type") or match.modifiers[-1]
    op = match.chosen.get("op", "cas" if "cas" in match.modifiers else "exch" if "exch" in match.modifiers else "add")
    op = op.partition(".")[0]
    if kind == "b128":
        return memory(partial(_exchange_wide, op))
    vector = int(match.chosen["vec"][1:]) if "vec" in match.chosen else 1
    keeps = "noftz" in match.modifiers or any(m.startswith("shared") for m in match.modifiers)
    run, signals = make_reduction(op, kind, vector, flush=not keeps), "mbarrier::complete_tx::bytes" in match.modifiers
    return memory(wrap_signal(run, dtype_of(kind).itemsize) if signals else run)


def _multimem(match: Match, signature: Signature) -> Operation | None:
    return memory(apply_to_replicas(make_reduction("add", match.modifiers[-1], 1)))


def make_reduction(op: str, kind: str, vector: int, *, flush: bool = True) -> Callable[..., None]:
    """Return a function that updates memory, lane by lane. Sums of f32 flush subnormal numbers except in shared memory;
    at a generic address, whose memory is unknown here, they do."""
    dtype, update = _choose_update(op, kind, flush)
    is_float = "f" in kind
    at_once = None if is_float else _AT_ONCE.get(op)
    sums = kind if op == "add" and is_float else ""
    return partial(_run, _Atomic(update, at_once, _BY_ONE.get(op), dtype, vector, sums))


def watch_sums(function: Callable[..., Any] | None, watch: Watch) -> Callable[..., None] | None:
    """Return an update of memory that reports its floating-point sums; None for other operations."""
    op = getattr(function, "args", (None,))[0]
    if not isinstance(op, _Atomic) or not op.sums:
        return None
    return partial(_run, replace(op, watch=watch))


@dataclass(frozen=True, slots=True)
class _Atomic:
    """An operation in three forms, for speed: on arrays, by a ufunc whose order does not matter, and by lane. `sums` is
    the floating-point type of a sum, which `watch` receives."""

    update: Update
    at_once: np.ufunc | None
    by_one: Callable[[int, int, int], int] | None
    dtype: np.dtype[Any]
    vector: int
    sums: str = ""
    watch: Watch | None = None


def _choose_update(op: str, kind: str, flushes: bool) -> tuple[np.dtype[Any], Update]:
    """Return the dtype that an operation works on and its update; f16 and bf16 pairs are updated by halves, f32
    and f64 only added."""
    if kind in ("f32", "f64"):
        if kind == "f32" and flushes:
            return dtype_of(kind), lambda old, b: flush(flush(old) + flush(b))
        return dtype_of(kind), np.add
    name = kind.removesuffix("x2")
    if name in ("f16", "bf16"):
        return dtype_of(kind), partial(_round_narrow, op, name)
    return dtype_of(kind), _INTEGER[op]


def _round_narrow(op: str, name: str, old: Array, b: Array) -> Array:
    x, y = (widen(np.ascontiguousarray(v).view("u2"), name) for v in (old, b))
    result = x + y if op == "add" else make_extreme(greater=op == "max", nan=False)(x, y)
    return encode_exact(round_to_format(result, name, "rn"), name).view(old.dtype)


def _run(
    op: _Atomic, site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Value, *operands: Value
) -> None:
    if mask is not None:
        active = np.flatnonzero(mask)
        if not len(active):
            return
        if len(active) < lanes.n:
            _run_active(active, op, site, lanes, space, address, outs, *operands)
            return
    try:
        region, offsets = site.memory.resolve(site, space, lanes, address, op.dtype.itemsize * op.vector, "rw")
    except Mixed:
        for part in site.memory.split(address):
            _run(op, site, lanes, part, space, address, outs, *operands)
        return
    index = np.broadcast_to(offsets >> (op.dtype.itemsize.bit_length() - 1), lanes.n)
    used = operands[: 2 if op.update is _INTEGER["cas"] else 1]
    for element in range(op.vector):
        values = [np.broadcast_to(_select_element(o, element, op.vector), lanes.n) for o in used]
        out = outs[element] if outs else None
        view = region.view(op.dtype, element)
        if out is None and op.at_once is not None:
            op.at_once.at(view, index, values[0])
            continue
        old = update_in_turn(
            op, view, index, values, None if op.watch is None else partial(op.watch, op.sums, site, lanes)
        )
        if out is not None:
            out[...] = old


def _select_element(operand: Value, element: int, vector: int) -> Value:
    return operand[element] if isinstance(operand, tuple) and vector > 1 else operand


def _run_active(
    active: Array, op: _Atomic, site: Site, lanes: Lanes, space: str, address: Value, outs: Value, *operands: Value
) -> None:
    def select(v: Value) -> Value:
        if isinstance(v, tuple):
            return tuple(select(x) for x in v)
        return v[active] if isinstance(v, np.ndarray) and v.ndim else v

    subset = lanes.shape.select_index(lanes.index[active])
    results = tuple(None if out is None else np.empty(subset.n, out.dtype) for out in outs)
    _run(op, site, subset, None, space, select(address), results, *[select(o) for o in operands])
    for out, result in zip(outs, results, strict=True):
        if out is not None:
            out[active] = result


def update_in_turn(
    op: _Atomic, view: Array, index: Array, values: list[Array], report_turn: Callable[..., None] | None = None
) -> Array:
    """Update elements lane by lane; return each lane's old value. Lanes with different addresses run together; if many
    lanes share few addresses, each address processes its lanes instead. `report_turn` receives every turn: its
    lanes, old values, operands and results."""
    order = np.argsort(index, kind="stable")
    sorted_index = index[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = sorted_index[1:] != sorted_index[:-1]
    if fresh.all():
        old = view[index]
        new = view[index] = op.update(old, *values)
        if report_turn is not None:
            report_turn(np.arange(len(order)), old, values[0], new)
        return old
    starts = np.flatnonzero(fresh)
    lengths = np.diff(np.append(starts, len(order)))
    old = np.empty(len(order), view.dtype)
    if len(starts) < lengths.max() and (op.at_once is not None or op.by_one is not None):
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            lanes_of_turn = order[start : start + length]
            element = index[lanes_of_turn[0]]
            old[lanes_of_turn], view[element] = _apply_in_turn(op, view[element], [v[lanes_of_turn] for v in values])
        return old
    turn = np.arange(len(order)) - np.repeat(starts, lengths)
    for number in range(int(lengths.max())):
        lanes_of_turn = order[turn == number]
        current = view[index[lanes_of_turn]]
        old[lanes_of_turn] = current
        new = view[index[lanes_of_turn]] = op.update(current, *[v[lanes_of_turn] for v in values])
        if report_turn is not None:
            report_turn(lanes_of_turn, current, values[0][lanes_of_turn], new)
    return old


def _apply_in_turn(op: _Atomic, first: Value, values: list[Array]) -> tuple[Any, Any]:
    """Return each lane's old value at one address, and the final value."""
    if op.at_once is not None:
        steps = op.at_once.accumulate(np.concatenate([[first], values[0].astype(op.dtype)]), dtype=op.dtype)
        return steps[:-1], steps[-1]
    assert op.by_one is not None
    old: list[int] = []
    now = int(first)
    last = values[-1].astype(op.dtype).tolist()
    for b, c in zip(values[0].astype(op.dtype).tolist(), last, strict=True):
        old.append(now)
        now = op.by_one(now, b, c)
    return old, now


def _exchange_wide(
    op: str, site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Value, *operands: Value
) -> None:
    """Exchange or compare-and-swap 128 bits, lane by lane."""
    active = np.arange(lanes.n) if mask is None else np.flatnonzero(mask)
    addresses = np.broadcast_to(np.asarray(address), lanes.n)
    parts = [[np.broadcast_to(h, lanes.n) for h in o] for o in operands if isinstance(o, tuple)]
    for position in active:
        lane = lanes.shape.select_index(lanes.index[position : position + 1])
        region, offsets = site.memory.resolve(site, space, lane, addresses[position : position + 1].copy(), 16, "rw")
        view = region.view(np.dtype("u8"), 0)
        start = int(np.broadcast_to(offsets, 1)[0]) >> 3
        old = view[start : start + 2].copy()
        if op == "exch" or all(old[h] == parts[0][h][position] for h in (0, 1)):
            view[start : start + 2] = [parts[-1][h][position] for h in (0, 1)]
        for half, out in enumerate(outs):
            if out is not None:
                out[position] = old[half]


BUILDERS: dict[str, Builder] = {"atom": _build_atomic, "red": _build_atomic, "multimem": _multimem}
