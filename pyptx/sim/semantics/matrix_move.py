"""Manual: ldmatrix, stmatrix, movmatrix. Every row is 16 bytes at the address of one lane."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from pyptx.isa import fragments as f
from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.semantics import warp_matrices as w
from pyptx.sim.semantics.access import as_tuple, load, store
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes, memory
from pyptx.sim.state.memory import Site

_U4 = np.dtype("u4")


def _ldmatrix(match: Match, signature: Signature) -> Operation | None:
    flags = set(match.modifiers)
    shape = next(m for m in match.modifiers if m.startswith("m") and "n" in m)
    count = int(match.chosen["num"][1:])
    fragment = f.ldmatrix(shape, count, trans="trans" in flags)
    packing = next(
        (
            bits
            for name, bits in (("b6x16_p32", 6), ("b4x16_p64", 4), ("s4", 4))
            if any(name in m.split(".") for m in match.modifiers)
        ),
        0,
    )
    return memory(partial(_load_rows, fragment, shape, count, packing, "s4" in flags))


def _load_rows(
    fragment: f.Fragment, shape: str, count: int, packing: int, signed: bool,
    site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    rows = count * (16 if shape == "m16n16" else 8)
    gives_address = lanes.shape.lane[lanes.sel] < rows
    parts = tuple(np.zeros(lanes.n, np.uint32) for _ in range(4))
    load(site, lanes, gives_address, "shared", address, _U4, parts)
    data = np.ascontiguousarray(w.gather_words(lanes, parts).swapaxes(1, 2)).view(np.uint8)
    if packing:
        data = _unpack(data, packing, signed)
    units = data.view(f"u{fragment.bits // 8}").reshape(len(data), -1)
    registers = np.ascontiguousarray(units[:, _index_sources(fragment, shape)]).view(np.uint32)
    words = registers.reshape(len(data), 32, -1).swapaxes(1, 2)
    for out, values in zip(outs, w.scatter_words(lanes, words), strict=True):
        if out is not None:
            out[...] = values


@cache
def _index_sources(fragment: f.Fragment, shape: str) -> Array:
    """Return, for every lane and element, the element's index among all rows of a warp."""
    width = 128 // fragment.bits
    index = np.empty((32, fragment.count), np.int64)
    for lane in range(32):
        for element in range(fragment.count):
            row, col, matrix = fragment.position3(lane, element)
            index[lane, element] = f.ldmatrix_row_lane(shape, matrix, row) * width + col
    return index


def _unpack(data: Array, bits: int, signed: bool) -> Array:
    """Spread 16 elements of 4 or 6 bits at the start of each row over its 16 bytes."""
    result = np.empty_like(data)
    words = data.astype(np.uint16)
    for index in range(16):
        byte, shift = divmod(index * bits, 8)
        pair = words[..., byte] | (words[..., byte + 1] << np.uint16(8))
        value = ((pair >> np.uint16(shift)) & np.uint16((1 << bits) - 1)).astype(np.uint8)
        result[..., index] = ((value << np.uint8(4)).view(np.int8) >> 4).view(np.uint8) if signed else value
    return result


def _stmatrix(match: Match, signature: Signature) -> Operation | None:
    shape = next(m for m in match.modifiers if m.startswith("m") and "n" in m)
    count = int(match.chosen["num"][1:])
    return memory(partial(_store_rows, f.stmatrix(shape, count, trans="trans" in match.modifiers), count))


def _store_rows(
    fragment: f.Fragment, count: int, site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value,
    outs: Value, values: tuple[Array, ...],
) -> None:  # fmt: skip
    words = w.gather_words(lanes, values).swapaxes(1, 2)
    units = np.ascontiguousarray(words).view(f"u{fragment.bits // 8}").reshape(len(words), -1)
    rows = np.zeros((len(words), 32 * 128 // fragment.bits), units.dtype)
    rows[:, _index_targets(fragment).reshape(-1)] = units
    parts = w.scatter_words(lanes, rows.view(np.uint32).reshape(len(words), 32, 4).swapaxes(1, 2))
    gives_address = lanes.shape.lane[lanes.sel] < 8 * count
    store(site, lanes, gives_address, "shared", address, _U4, parts)


@cache
def _index_targets(fragment: f.Fragment) -> Array:
    width = 128 // fragment.bits
    index = np.empty((32, fragment.count), np.int64)
    for lane in range(32):
        for element in range(fragment.count):
            row, col, matrix = fragment.position3(lane, element)
            index[lane, element] = f.stmatrix_row_lane(matrix, row) * width + col
    return index


def _movmatrix(match: Match, signature: Signature) -> Operation | None:
    return lanes(_transpose)


def _transpose(machine: Value, group: Lanes, a: Value) -> Array:
    halves = w.gather_words(group, as_tuple(a)).view(np.uint16).reshape(-1, 64)
    source = np.array(
        [2 * word + half for lane in range(32) for word, half in (f.movmatrix_source(lane, e) for e in (0, 1))]
    )
    words = np.ascontiguousarray(halves[:, source]).view(np.uint32).reshape(-1, 1, 32)
    return w.scatter_words(group, words)[0]


BUILDERS: dict[str, Builder] = {"ldmatrix": _ldmatrix, "stmatrix": _stmatrix, "movmatrix": _movmatrix}
