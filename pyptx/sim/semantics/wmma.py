"""Manual: wmma.load, wmma.store, wmma.mma. The layout of fragments is unspecified; B is kept transposed, so that
elements which are neighbors in memory are neighbors in a register."""

from __future__ import annotations

import re
from functools import cache, partial

import numpy as np

from pyptx.isa import fragments as f
from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.semantics import warp_matrices as w
from pyptx.sim.semantics.access import load, store
from pyptx.sim.semantics.mma import accumulate, find_result_dtype
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes, memory
from pyptx.sim.state.memory import Site
from pyptx.types import ALL, from_name

_TYPES = frozenset(t.name for t in ALL)


def _wmma(match: Match, signature: Signature) -> Operation | None:
    flat = [part for m in match.modifiers for part in m.split(".")]
    shape = next(m for m in flat if re.fullmatch(r"m\d+n\d+k\d+", m))
    m, n, k = (int(v) for v in re.findall(r"\d+", shape))
    types = [t for t in flat if t in _TYPES]
    layouts = [t for t in flat if t in ("row", "col")]
    if flat[0] == "mma":
        return lanes(partial(_multiply, (m, n, k), types, frozenset(flat)))
    operand = signature[0] if flat[0] == "load" else signature[1]
    side = flat[1] if flat[0] == "load" else "c"
    rows, cols = {"a": (m, k), "b": (n, k), "c": (m, n)}[side]
    fragment = f.wmma_fragment(rows, cols, _find_bit_width(types[0]), max(1, operand.count))
    by_row = (layouts[0] == "row") != (side == "b")
    width = rows if not by_row else cols
    if flat[0] == "load":
        return memory(partial(_load, fragment, by_row, width))
    return memory(partial(_store, fragment, by_row, width))


def _find_bit_width(kind: str) -> int:
    return from_name(kind).bits


@cache
def _locate_elements(fragment: f.Fragment) -> tuple[Array, Array]:
    """Return row and column of every lane's elements, `[element, lane]`."""
    positions = [[fragment.position(lane, e) for lane in range(32)] for e in range(fragment.count)]
    return np.array([[p[0] for p in row] for row in positions]), np.array([[p[1] for p in row] for row in positions])


def _compute_offsets(
    fragment: f.Fragment, by_row: bool, width: int, lanes: Lanes, stride: Value
) -> tuple[list[Array], int]:
    """Return the byte offset of every element (of every byte, for narrower ones) in each lane, and the bytes of it."""
    row, col = _locate_elements(fragment)
    lane = lanes.shape.lane[lanes.sel]
    step = np.int64(width) if stride is None else np.broadcast_to(np.asarray(stride).astype(np.int64), lanes.n)
    together = max(1, 8 // fragment.bits)
    offsets: list[Array] = []
    for element in range(0, fragment.count, together):
        outer, inner = (row, col) if by_row else (col, row)
        offsets.append((outer[element][lane] * step + inner[element][lane]) * fragment.bits // 8)
    return offsets, max(1, fragment.bits // 8)


def _load(
    fragment: f.Fragment, by_row: bool, width: int, site: Site, lanes: Lanes, mask: Array | None, space: str,
    address: Value, outs: tuple[Array | None, ...], stride: Value = None,
) -> None:  # fmt: skip
    offsets, size = _compute_offsets(fragment, by_row, width, lanes, stride)
    per_register = fragment.register_bits // 8 // size
    dtype = np.dtype(f"u{size}")
    words = [np.zeros((lanes.n, per_register), dtype) for _ in outs]
    base = np.broadcast_to(np.asarray(address), lanes.n).astype(np.int64)
    scratch = np.empty(lanes.n, dtype)
    for index, offset in enumerate(offsets[: len(outs) * per_register]):
        load(site, lanes, None, space, (base + offset).view(np.uint64), dtype, (scratch,))
        words[index // per_register][:, index % per_register] = scratch
    for out, word in zip(outs, words, strict=True):
        if out is not None:
            out[...] = word.view(out.dtype)[:, 0]


def _store(
    fragment: f.Fragment, by_row: bool, width: int, site: Site, lanes: Lanes, mask: Array | None, space: str,
    address: Value, outs: Value, values: tuple[Array, ...], stride: Value = None,
) -> None:  # fmt: skip
    offsets, size = _compute_offsets(fragment, by_row, width, lanes, stride)
    per_register = fragment.register_bits // 8 // size
    dtype = np.dtype(f"u{size}")
    base = np.broadcast_to(np.asarray(address), lanes.n).astype(np.int64)
    for index, offset in enumerate(offsets):
        units = np.ascontiguousarray(values[index // per_register]).view(dtype).reshape(lanes.n, -1)
        part = np.ascontiguousarray(units[:, index % per_register])
        store(site, lanes, None, space, (base + offset).view(np.uint64), dtype, (part,))


def _multiply(
    size: tuple[int, int, int],
    types: list[str],
    flags: frozenset[str],
    machine: Value,
    group: Lanes,
    a: Value,
    b: Value,
    c: Value,
) -> tuple[Array, ...]:
    m, n, k = size
    dtype, ctype = types[0], types[-1]
    atype, btype = (types[1], types[2]) if len(types) == 4 else ("f16", "f16")
    parts = [w.gather_words(group, tuple(_view_raw(v) for v in operand)) for operand in (a, b, c)]
    maps = [
        f.wmma_fragment(rows, cols, _find_bit_width(kind), len(operand))
        for rows, cols, kind, operand in ((m, k, atype, a), (n, k, btype, b), (m, n, ctype, c))
    ]
    x, y, z = (
        w.decode_numbers(w.extract_elements(p, e), kind)
        for p, e, kind in zip(parts, maps, (atype, btype, ctype), strict=True)
    )
    # An f32 addend is summed in f32, also where D is f16.
    names = ctype if dtype == "f16" else dtype, atype, btype
    total = accumulate(x, y.swapaxes(1, 2), z, names, flags, machine.memory.tensor.exact, instruction="wmma")
    registers = m * n // 32 * _find_bit_width(dtype) // max(32, _find_bit_width(dtype))
    out = f.wmma_fragment(m, n, _find_bit_width(dtype), registers)
    words = w.fill_words(w.encode_numbers(total, dtype), out, registers)
    return tuple(v.view(find_result_dtype(dtype)) for v in w.scatter_words(group, words))


def _view_raw(v: Array) -> Array:
    return v.view(f"u{v.dtype.itemsize}") if v.dtype.kind in "fi" else v


BUILDERS: dict[str, Builder] = {"wmma": _wmma}
