"""Manual: multimem.ld_reduce, .st, .red, on replicas that lie in one device's memory, taken in order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.numbers import is_float
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.numerics.extremes import maximum, minimum
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.rounding import encode
from pyptx.sim.semantics.access import as_tuple, load, store
from pyptx.sim.semantics.atomics import make_reduction
from pyptx.sim.semantics.replicas import apply_to_replicas, visit_replicas
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Site
from pyptx.types import from_name

_INTEGER: dict[str, np.ufunc] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}  # fmt: skip
Fold = Callable[[list[Array]], Array]


def _multimem(match: Match, signature: Signature) -> Operation | None:
    flat = [part for m in match.modifiers for part in m.split(".")]
    kind, name = flat[-1], flat[0]
    vector = next((int(part[1:]) for part in flat if part in ("v2", "v4", "v8")), 1)
    if name == "st":
        return memory(apply_to_replicas(partial(_store, np.dtype(f"u{from_name(kind).bits // 8}"))))
    op = next(part for part in flat if part in _INTEGER)
    if name == "red":
        return memory(apply_to_replicas(make_reduction(op, kind, vector)))
    element, packed = _split_type(kind)
    wide = next((part.removeprefix("acc::") for part in flat if part.startswith("acc::")), element)
    fold = (
        _fold_integers(op, kind) if element[0] in "usb" and element[1:].isdigit() else _fold_floats(op, element, wide)
    )
    return memory(partial(_reduce, fold, element, packed))


def _split_type(kind: str) -> tuple[str, int]:
    name, _, count = kind.rpartition("x")
    return (name, int(count)) if name and count.isdigit() else (kind, 1)


def _fold_integers(op: str, kind: str) -> Fold:
    dtype = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{from_name(kind).bits // 8}")

    def fold(values: list[Array]) -> Array:
        result = values[0].view(dtype)
        for value in values[1:]:
            result = _INTEGER[op](result, value.view(dtype))
        return result.view(values[0].dtype)

    return fold


def _fold_floats(op: str, name: str, wide: str) -> Fold:
    """Return the fold of a format; sums are rounded to `wide` after each replica, and to the format at the end."""

    def fold(values: list[Array]) -> Array:
        if op != "add":
            return _select_extreme(op, name, values)
        total = widen(values[0], name)
        for value in values[1:]:
            total = total + widen(value, name)
            total = widen(encode(total, wide), wide)
        return encode(total, name, satfinite=name.startswith("e")).view(values[0].dtype)

    return fold


def _select_extreme(op: str, name: str, values: list[Array]) -> Array:
    if name in ("f16", "bf16"):
        return (minimum if op == "min" else maximum)(*values, name=name)
    best = widen(values[0], name)
    for value in values[1:]:
        best = (np.fmin if op == "min" else np.fmax)(best, widen(value, name))
    return encode(best, name).view(values[0].dtype)


def _store(
    dtype: np.dtype[Any], site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Value,
    values: Value,
) -> None:  # fmt: skip
    parts = [np.asarray(value) for value in as_tuple(values)]
    raw = tuple(v.view(f"u{v.dtype.itemsize}").astype(dtype) for v in parts)
    store(site, lanes, mask, space, address, dtype, raw)


def _reduce(
    fold: Fold, name: str, packed: int, site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value,
    outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    """Load every replica's elements, fold them in the order of the replicas, and write the results."""
    size = from_name(name).bits // 8
    register = np.dtype(f"u{size * packed}")
    view = dtype_of(name) if is_float(name) else np.dtype(f"u{size}")

    def reduce_replicas(active: Array, addresses: list[Array]) -> None:
        replica_values: list[tuple[Array, ...]] = []
        for replica_address in addresses:
            parts = tuple(np.zeros(lanes.n, register) for _ in outs)
            load(site, lanes, active, space, replica_address, register, parts)
            replica_values.append(parts)
        for index, out in enumerate(outs):
            if out is None:
                continue
            result = fold([parts[index].view(view) for parts in replica_values]).view(register)
            raw = result.astype(f"u{out.dtype.itemsize}").view(out.dtype)
            out[active] = raw[active]

    visit_replicas(site, lanes, mask, address, reduce_replicas)


BUILDERS: dict[str, Builder] = {"multimem": _multimem}
