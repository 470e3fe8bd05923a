"""Manual: mma, dense, sparse and block-scaled. Products are exact and summed in f64, then rounded once, or as the
target's tensor cores do; f64 is a chain of fused multiply-adds in the order of k; integers are exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.isa import fragments as f
from pyptx.isa.model import Match
from pyptx.numbers import FORMATS
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.numerics.formats import widen
from pyptx.sim.numerics.plain_dots import double_dot
from pyptx.sim.numerics.products import multiply_matrices, multiply_scaled_matrices
from pyptx.sim.numerics.sparse import multiply_stored
from pyptx.sim.semantics import warp_matrices as w
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes
from pyptx.types import ALL, from_name

_TYPES = frozenset(t.name for t in ALL)


def _mma(match: Match, signature: Signature) -> Operation | None:
    flat = [part for m in match.modifiers for part in m.split(".")]
    shape = next(m for m in flat if re.fullmatch(r"m\d+n\d+k\d+", m))
    size = tuple(int(v) for v in re.findall(r"\d+", shape))
    types = [m for m in flat if m in _TYPES]
    if shape == "m8n8k4" and types[1] == "f16":
        layouts = [m for m in flat if m in ("row", "col")]
        return lanes(partial(_multiply_volta, types, layouts))
    sparse = any(m.startswith("sp") for m in flat)
    kind = next((m.removeprefix("kind::") for m in flat if m.startswith("kind::")), "")
    vector = next((int(m[len("scale_vec::")]) for m in flat if m.startswith("scale_vec::")), 0)
    if not vector and "block_scale" in flat:
        vector = 1 if kind == "mxf8f6f4" else 2
    return lanes(partial(_multiply, size, types, kind, frozenset(flat), sparse, vector))


def _multiply(
    size: tuple[int, ...], types: list[str], kind: str, flags: frozenset[str], sparse: bool, vector: int,
    machine: Value, group: Lanes, a: Value, b: Value, c: Value, *extras: Value,
) -> tuple[Array, ...]:  # fmt: skip
    m, n, k = size
    dtype, atype, btype, ctype = types[:4]
    bits = [f.element_bits(from_name(t), kind or None) for t in (atype, btype)]
    in_bytes = bits[0] == 8
    stored_k = k // 2 if sparse else k
    raw = w.extract_elements(w.gather_words(group, a), f.mma_a(m, stored_k, bits[0]))
    a_values = w.decode_numbers(raw, atype, in_bytes)
    b_values = w.decode_numbers(
        w.extract_elements(w.gather_words(group, b), f.mma_b(k, n, bits[1])), btype, bits[1] == 8
    )
    find_stored = None
    if sparse:
        selector = int(extras[1])
        meta = w.gather_words(group, (extras[0],))
        expand = partial(_expand, meta=meta, k=k, bits=bits[0], selector=selector)
        find_stored = partial(expand, np.ones_like(a_values, np.bool_))
        a_values = expand(a_values)
        extras = extras[2:]
    registers = tuple(_view_raw(v) for v in c)
    c_fragment = f.mma_accumulator(m, n, from_name(ctype))
    start = w.decode_numbers(w.extract_elements(w.gather_words(group, registers), c_fragment), ctype)
    sm = machine.memory.tensor.exact
    if vector:
        for_a = _read_scales(group, extras[0], extras[1], m, vector, types[-1], f.mma_scale_a)
        for_b = _read_scales(group, extras[2], extras[3], n, vector, types[-1], f.mma_scale_b).swapaxes(1, 2)
        names = atype, btype
        multiply = partial(multiply_scaled_matrices, names=names, instruction="mma", sm=sm, sparse=sparse)
        if find_stored is None or np.isfinite(b_values).all():
            total = multiply(a_values, b_values, (for_a, for_b), start)
        else:
            # Each row of A meets other elements of B.
            partners = np.where(find_stored()[..., None], b_values[:, None], 0)
            scales = for_a[:, :, None], for_b[:, None]
            total = multiply(a_values[:, :, None], partners, scales, start[:, :, None])[:, :, 0]
    else:
        total = accumulate(a_values, b_values, start, (dtype, atype, btype), flags, sm, find_stored=find_stored)
    out = f.mma_accumulator(m, n, from_name(dtype))
    words = w.fill_words(w.encode_numbers(total, dtype), out, out.registers)
    return tuple(v.view(find_result_dtype(dtype)) for v in w.scatter_words(group, words))


def _view_raw(v: Array) -> Array:
    return v.view(f"u{v.dtype.itemsize}") if v.dtype.kind in "fi" else v


def find_result_dtype(dtype: str) -> np.dtype[Any]:
    """Return the dtype of a register that holds numbers of D."""
    return dtype_of(dtype) if FORMATS[dtype].width >= 32 else np.dtype("u4")


def accumulate(
    a_values: Array, b_values: Array, start: Array, names: tuple[str, str, str], flags: frozenset[str], sm: int,
    sparse: bool = False, instruction: str = "mma", find_stored: Callable[[], Array] | None = None,
) -> Array:  # fmt: skip
    """Return A @ B + `start` for every warp in the accumulator's type. `names` are the types of D, A and B; `sm` is the
    target whose sums are reproduced, or 0."""
    dtype = names[0]
    if find_stored is not None and dtype in ("f16", "f32"):
        multiply = partial(accumulate, names=names, flags=flags, sm=sm, instruction=instruction, sparse=True)
        return multiply_stored(multiply, a_values, b_values, start, find_stored)
    if dtype == "f64":
        mode = next((m for m in ("rz", "rm", "rp") if m in flags), "rn")
        return double_dot(a_values, b_values, start, mode)
    if sm and dtype in ("f16", "f32"):
        return multiply_matrices(a_values, b_values, start, names, instruction=instruction, sm=sm, sparse=sparse)
    if "xor" in flags:
        return a_values.sum(2)[:, :, None] + b_values.sum(1)[:, None, :] - 2 * np.matmul(a_values, b_values) + start
    total = np.matmul(a_values, b_values) + start
    return np.clip(total, -(1 << 31), (1 << 31) - 1) if dtype == "s32" and "satfinite" in flags else total


def _expand(compact_a: Array, meta: Array, k: int, bits: int, selector: int) -> Array:
    """Return A with its zeros, from the stored half and the metadata of every chunk."""
    warps, rows, _ = compact_a.shape
    lane, shift = _locate_metadata(rows, k, bits, selector)
    nibbles = (meta[:, 0, :][:, lane] >> shift) & np.uint32(15)
    low, high = (nibbles & 3).astype(np.int64), (nibbles >> 2).astype(np.int64)
    chunks = np.arange(int(nibbles.shape[2]))
    columns: list[Array]
    if bits == 32:
        columns = [2 * chunks + low // 2]
    elif bits == 4:
        columns = [8 * chunks + 2 * pair + i for pair in (low, high) for i in (0, 1)]
    else:
        columns = [4 * chunks + low, 4 * chunks + high]
    full_a = np.zeros((warps, rows, k), compact_a.dtype)
    for index, column_indices in enumerate(columns):
        np.put_along_axis(full_a, column_indices, compact_a[:, :, index :: len(columns)], axis=2)
    return full_a


@cache
def _locate_metadata(rows: int, k: int, bits: int, selector: int) -> tuple[Array, Array]:
    chunks = k // {32: 2, 16: 4, 8: 4, 4: 8}[bits]
    locations = [
        [f.mma_metadata(row, c, k=k, bits=bits, selector=selector) for c in range(chunks)] for row in range(rows)
    ]
    return np.array([[p.lane for p in row] for row in locations]), np.array(
        [[p.bit for p in row] for row in locations], np.uint32
    )


def _read_scales(
    group: Lanes, word: Array, byte_and_thread: Value, count: int, vector: int, kind: str, place: Value
) -> Array:
    """Return the scale factors of every row of A or column of B, one for each block along K."""
    byte_id, thread_id = (int(np.asarray(v).reshape(-1)[0]) for v in byte_and_thread)
    data = w.gather_words(group, (word,)).view(np.uint8).reshape(-1, 32, 4)
    locations = [
        [place(row, block, vector=vector, byte_id=byte_id, thread_id=thread_id) for block in range(vector)]
        for row in range(count)
    ]
    lane = np.array([[p.lane for p in row] for row in locations])
    byte = np.array([[p.byte for p in row] for row in locations])
    bits = data[:, lane, byte]
    return widen(bits, kind)


def _multiply_volta(
    types: list[str], layouts: list[str], machine: Value, group: Lanes, a: Value, b: Value, c: Value
) -> tuple[Array, ...]:
    """Compute four products of 8 x 8 x 4 per warp."""
    parts = [w.gather_words(group, tuple(_view_raw(v) for v in operand)) for operand in (a, b, c)]
    maps = (f.volta_a(layouts[0]), f.volta_b(layouts[1]), f.volta_accumulator(from_name(types[3])))
    out = f.volta_accumulator(from_name(types[0]))
    words: Array | None = None
    for matrix in range(4):
        x, y, z = (
            w.decode_numbers(w.extract_elements(part, fragment, matrix), kind)
            for part, fragment, kind in zip(parts, maps, ("f16", "f16", types[3]), strict=True)
        )
        total = accumulate(x, y, z, (types[0], "f16", "f16"), frozenset(), machine.memory.tensor.exact)
        codes = w.encode_numbers(total, types[0])
        words = w.fill_words(codes, out, out.registers, words, matrix)
    assert words is not None
    return tuple(v.view(find_result_dtype(types[0])) for v in w.scatter_words(group, words))


BUILDERS: dict[str, Builder] = {"mma": _mma}
