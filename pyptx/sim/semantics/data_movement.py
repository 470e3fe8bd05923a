"""Manual: mov, shfl.sync, prmt, isspacep, cvta, mapa, getctarank."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Kind, Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.variables import GLOBAL_BASE, LOCAL_WINDOW, PARAM_BASE, SHARED_WINDOW
from pyptx.sim.semantics.vocabulary import COPY, Builder, Operation, Signature, lanes, value
from pyptx.sim.state.meetings import wrap_warp_wide
from pyptx.sim.state.memory import RANK_SHIFT, REMOTE

_WINDOW = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW, "param": PARAM_BASE}
_WINDOW_SIZE = 1 << 32


def _mov(match: Match, signature: Signature) -> Operation | None:
    (d, a), kind = signature, match.modifiers[-1]
    if a.kind is Kind.SPECIAL:
        return value(lambda v: tuple(np.array(x).astype(dtype_of(kind)) for x in v))
    if a.count and d.count:
        return value(lambda v: tuple(np.array(x) for x in v))
    if a.count:
        return value(_pack_128) if kind == "b128" else _pack(dtype_of(kind))
    if d.count:
        return _unpack(d.count, kind)
    if kind == "b128":
        return value(lambda v: (np.array(v[0]), np.array(v[1])))
    return COPY


def _pack(dtype: np.dtype[Any]) -> Operation:
    return value(lambda parts: _join(tuple(parts), 8 * parts[0].dtype.itemsize, dtype.str))


def _pack_128(parts: Value) -> tuple[Array, Array]:
    if len(parts) == 2:
        return np.array(parts[0]), np.array(parts[1])
    return _join(parts[:2], 32, "u8"), _join(parts[2:], 32, "u8")


def _join(parts: tuple[Array, ...], bits: int, dtype: str) -> Array:
    word = parts[0].astype(dtype)
    for index, part in enumerate(parts[1:], 1):
        word = word | (part.astype(dtype) << np.array(bits * index, dtype))
    return word


def _unpack(count: int, kind: str) -> Operation:
    bits = int(kind[1:]) // count
    dtype = dtype_of(f"b{bits}")

    def unpack(a: Value) -> tuple[Array, ...]:
        if kind == "b128":
            if count == 2:
                return np.array(a[0]), np.array(a[1])
            return tuple((half >> np.array(shift, half.dtype)).astype(dtype) for half in a for shift in (0, 32))
        return tuple((a >> np.array(bits * index, a.dtype)).astype(dtype) for index in range(count))

    return value(unpack)


def _cvta(match: Match, signature: Signature) -> Operation | None:
    space = match.chosen["ss"].partition("::")[0]
    offset = _WINDOW.get(space, 0)
    dtype = dtype_of(match.chosen["size"])
    if not offset:
        return COPY
    if "to" in match.modifiers:
        return value(lambda a: a - np.array(offset, dtype))
    return value(lambda a: a + np.array(offset, dtype))


def _isspacep(match: Match, signature: Signature) -> Operation | None:
    space = match.chosen["space"]
    kind = space.partition("::")[0]
    if kind in ("global", "const"):
        return lanes(partial(_is_global, kind == "const"))
    low = _WINDOW[kind]
    if space == "shared::cta":
        return lanes(partial(_is_own, low))
    return value(lambda a: (a >= low) & (a < low + _WINDOW_SIZE))


def _is_own(low: int, machine: Value, group: Lanes, address: Array) -> Array:
    first = group.select_values("pair", group.shape.pair).astype("u8") + np.uint64(low)
    return (address >= first) & (address < first + np.uint64(1 << RANK_SHIFT))


def _is_global(constant: bool, machine: Value, group: Lanes, address: Array) -> Array:
    inside = np.zeros(np.shape(address), np.bool_)
    for region in machine.memory.space.regions:
        if region.space == "const":
            inside |= (address >= region.low) & (address < region.low + region.size)
    return inside if constant else (address >= GLOBAL_BASE) & ~inside


def _mapa(match: Match, signature: Signature) -> Operation | None:
    dtype = dtype_of(match.chosen["type"])
    window = 0 if "shared::cluster" in match.modifiers else SHARED_WINDOW

    def mapa(a: Array, rank: Array) -> Array:
        offset = (a.astype("u8") - np.uint64(window)) & np.uint64((1 << RANK_SHIFT) - 1)
        return (offset + ((rank.astype("u8") + np.uint64(REMOTE)) << np.uint64(RANK_SHIFT)) + np.uint64(window)).astype(
            dtype
        )

    return value(mapa)


def _getctarank(match: Match, signature: Signature) -> Operation | None:
    window = 0 if "shared::cluster" in match.modifiers else SHARED_WINDOW

    def rank(machine: Value, group: Lanes, address: Array) -> Array:
        named_rank = ((address.astype("u8") - np.uint64(window)) >> np.uint64(RANK_SHIFT)).astype("u4")
        own = machine.read_special("%cluster_ctarank", group)
        if machine.memory.pairs:
            own = own & ~np.uint32(1) | named_rank
        return np.where(named_rank < REMOTE, own, named_rank - np.uint32(REMOTE))

    return lanes(rank)


def _prmt(match: Match, signature: Signature) -> Operation | None:
    mode = match.chosen.get("mode")
    return value(_SELECTIONS[mode] if mode else _prmt_bytes)


def _prmt_bytes(a: Array, b: Array, c: Array) -> Array:
    pair = a.astype("u8") | (b.astype("u8") << np.uint64(32))
    result = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for index in range(4):
        select = (c >> np.uint32(4 * index)).astype("u8")
        byte = (pair >> (np.uint64(8) * (select & np.uint64(7)))) & np.uint64(0xFF)
        sign = np.where(byte & np.uint64(0x80), np.uint64(0xFF), np.uint64(0))
        result |= np.where(select & np.uint64(8), sign, byte).astype("u4") << np.uint32(8 * index)
    return result


def _select_by_table(table: tuple[int, int, int, int]) -> Value:
    selectors = np.array(table, np.uint32)
    return lambda a, b, c: _prmt_bytes(a, b, selectors[c & np.uint32(3)])


_SELECTIONS = {
    "f4e": _select_by_table((0x3210, 0x4321, 0x5432, 0x6543)),
    "b4e": _select_by_table((0x5670, 0x6701, 0x7012, 0x0123)),
    "rc8": _select_by_table((0x0000, 0x1111, 0x2222, 0x3333)),
    "ecl": _select_by_table((0x3210, 0x3211, 0x3222, 0x3333)),
    "ecr": _select_by_table((0x0000, 0x1110, 0x2210, 0x3210)),
    "rc16": _select_by_table((0x1010, 0x3232, 0x1010, 0x3232)),
}


def _shfl(match: Match, signature: Signature) -> Operation | None:
    return lanes(wrap_warp_wide(partial(shuffle, match.chosen["mode"])))


def shuffle(mode: str, machine: Value, group: Lanes, a: Array, b: Array, c: Array, mask: Array | None = None) -> Value:
    """Read the value of another lane of the warp. Outside its segment, a lane reads itself and the predicate is
    false."""
    if b.ndim or c.ndim:
        source_lanes, inside = _locate_sources(mode, group, b, c)
    else:
        source_lanes, inside = group.compute_once(f"shfl {mode} {b} {c}", lambda: _locate_sources(mode, group, b, c))
    a = np.broadcast_to(a, group.n)
    if group.n == group.shape.lanes:
        return a.take(source_lanes), inside
    values = np.zeros(group.shape.lanes, a.dtype)
    values[group.sel] = a
    return values.take(source_lanes), inside


def find_shuffle_sources(mode: str, group: Lanes, b: Array, c: Array) -> Array:
    """Return the lane of its warp that each lane reads."""
    return group.shape.lane[_locate_sources(mode, group, b, c)[0]]


def _locate_sources(mode: str, group: Lanes, b: Array, c: Array) -> tuple[Array, Array]:
    """Return the lane of the batch that each lane reads, and whether it is inside its segment."""
    shape = group.shape
    lane = group.select_values("lane", shape.lane).astype("i8")
    last_lane, segment = (c & np.uint32(31)).astype("i8"), ((c >> np.uint32(8)) & np.uint32(31)).astype("i8")
    limit = (lane & segment) | (last_lane & ~segment)
    own = (b & np.uint32(31)).astype("i8")
    if mode == "idx":
        source = (lane & segment) | (own & ~segment)
    elif mode == "bfly":
        source = lane ^ own
    else:
        source = lane - own if mode == "up" else lane + own
    inside = source >= limit if mode == "up" else source <= limit
    source_lane = group.select_values("warp_base", shape.warp_base) + np.where(inside, source, lane) * shape.ctas
    return np.minimum(source_lane, shape.lanes - 1), inside


BUILDERS: dict[str, Builder] = {
    "mov": _mov,
    "shfl": _shfl,
    "prmt": _prmt,
    "isspacep": _isspacep,
    "cvta": _cvta,
    "mapa": _mapa,
    "getctarank": _getctarank,
}
