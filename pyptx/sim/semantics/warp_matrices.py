"""Matrices spread over the lanes of warps: from registers to arrays `[warp, row, column]` and back, by the maps of
`isa.fragments`. Knows layouts and encodings, no instruction."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pyptx.isa.fragments import Fragment
from pyptx.numbers import FORMATS, is_float
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.numerics.formats import decode, encode_nan

Words = Array
"""Registers of whole warps: `[warp, register, lane]`, contiguous."""


def order_by_warp(group: Lanes) -> Array:
    """Return the lanes' positions in the group, warp by warp; the group holds whole warps of 32."""

    def make() -> Array:
        shape = group.shape
        return np.argsort(shape.warp[group.sel] * 32 + shape.lane[group.sel], kind="stable")

    return group.compute_once("warp order", make)


def gather_words(group: Lanes, registers: tuple[Array, ...]) -> Words:
    """Return operands as registers of whole warps."""
    order = order_by_warp(group)
    words = np.empty((len(order) // 32, len(registers), 32), registers[0].dtype)
    for register, values in enumerate(registers):
        lane_values = values if values.size == len(order) else np.broadcast_to(values, len(order))
        words[:, register, :] = lane_values[order].reshape(-1, 32)
    return words


def scatter_words(group: Lanes, words: Words) -> tuple[Array, ...]:
    """Return one array per register, in the order of the group's lanes."""
    order = order_by_warp(group)
    views: list[Array] = []
    for register in range(words.shape[1]):
        values = np.empty(len(order), words.dtype)
        values[order] = words[:, register, :].reshape(-1)
        views.append(values)
    return tuple(views)


@cache
def _locate_elements(fragment: Fragment, matrix: int) -> tuple[Array, Array, tuple[int, int]]:
    """Return, for every element of a matrix in row-major order, its index in the words seen as units, and its shift."""
    rows, cols = fragment.shape
    unit = max(fragment.bits, 8)
    per_register = fragment.register_bits // unit
    index = np.empty(rows * cols, np.int64)
    shift = np.empty(rows * cols, np.uint8)
    for row in range(rows):
        for col in range(cols):
            place = fragment.place(row, col, matrix)
            unit_index, bit = divmod(place.bit, unit)
            index[row * cols + col] = (place.register * 32 + place.lane) * per_register + unit_index
            shift[row * cols + col] = bit
    return index, shift, (rows, cols)


def extract_elements(words: Words, fragment: Fragment, matrix: int = 0) -> Array:
    """Return the bits of a matrix's elements, `[warp, row, column]`."""
    index, shift, shape = _locate_elements(fragment, matrix)
    units = np.ascontiguousarray(words).view(f"u{max(fragment.bits, 8) // 8}").reshape(len(words), -1)
    values = units[:, index]
    if fragment.bits < 8:
        values = (values >> shift) & np.uint8((1 << fragment.bits) - 1)
    return values.reshape(len(words), *shape)


def fill_words(values: Array, fragment: Fragment, registers: int, into: Words | None = None, matrix: int = 0) -> Words:
    """Return the registers that hold a matrix of element bits; every copy of an element is written."""
    warps = len(values)
    word = f"u{fragment.register_bits // 8}"
    words = np.zeros((warps, registers, 32), word) if into is None else into
    units = words.view(values.dtype).reshape(warps, -1)
    rows, cols = fragment.shape
    flat = values.reshape(warps, -1)
    for index, source in _list_copies(fragment, matrix, rows, cols):
        units[:, index] = flat[:, source]
    return words


@cache
def _list_copies(fragment: Fragment, matrix: int, rows: int, cols: int) -> list[tuple[Array, Array]]:
    unit = max(fragment.bits, 8)
    per_register = fragment.register_bits // unit
    pairs: list[tuple[int, int]] = []
    for row in range(rows):
        for col in range(cols):
            for place in fragment.places(row, col, matrix):
                pairs.append(((place.register * 32 + place.lane) * per_register + place.bit // unit, row * cols + col))
    return [(np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs]))]


def decode_numbers(bits: Array, kind: str, in_bytes: bool = True) -> Array:
    """Return the values of element bits as f64. `in_bytes`: formats of 4 bits are in bits 2 to 5 of a byte."""
    if kind in ("f32", "f64"):
        return bits.view(np.dtype(f"f{bits.dtype.itemsize}")).astype(np.float64, copy=False)
    if is_float(kind):
        return decode(bits >> np.uint8(2) if FORMATS[kind].bits == 4 and in_bytes else bits, kind).astype(np.float64)
    if kind in ("s8", "s32"):
        return bits.view(f"i{bits.dtype.itemsize}").astype(np.float64)
    if kind == "s4":
        return ((bits << np.uint8(4)).view(np.int8) >> 4).astype(np.float64)
    return bits.astype(np.float64)


def encode_numbers(result: Array, kind: str) -> Array:
    """Return the bits of accumulator values: f64 rounded once to f32 or f16, integers wrapped to 32 bits."""
    if kind == "s32":
        return result.astype(np.int64).astype(np.int32).view(np.uint32)
    if kind == "f64":
        return result.view(np.uint64)
    dtype: Any = np.float16 if kind == "f16" else np.float32
    bits = result.astype(dtype).view(np.uint16 if kind == "f16" else np.uint32)
    nan = np.isnan(result)
    return np.where(nan, bits.dtype.type(encode_nan(kind)), bits) if nan.any() else bits
