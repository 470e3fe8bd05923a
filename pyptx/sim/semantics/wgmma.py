"""Manual: wgmma. A product reads its operands, in shared memory and in registers, and writes its accumulators when it
lands: at once in the eager schedule, else when the schedule says, at the latest at the wait for its group."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.isa import fragments as f
from pyptx.isa.model import Match
from pyptx.numbers import FORMATS, compute_type_bits
from pyptx.sim.base.formats import Array, numpy_code
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import copy_operands, find_active, find_firsts
from pyptx.sim.numerics.arrays import quiet
from pyptx.sim.numerics.fast_dot import multiply
from pyptx.sim.numerics.formats import decode
from pyptx.sim.numerics.plain_dots import binary_dot, integer_dot
from pyptx.sim.numerics.products import multiply_matrices
from pyptx.sim.numerics.sparse import expand, multiply_stored
from pyptx.sim.numerics.workspace import get_scratch
from pyptx.sim.rules import faults
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.accumulators import Accumulator, Rows, add_accumulator, find_accumulator, settle
from pyptx.sim.state.effects import WGMMA
from pyptx.sim.state.memory import Site


@dataclass(frozen=True, slots=True)
class Spelling:
    """One spelling: the sizes, the types of D, A and B, and the names of the operands that follow D."""

    n: int
    k: int
    types: tuple[str, str, str]
    in_registers: bool
    sparse: bool
    saturates: bool
    names: tuple[str, ...]


def _wgmma(match: Match, signature: Signature) -> Operation | None:
    if "mma_async" not in match.modifiers:
        operations = {"fence": NOTHING, "commit_group": memory(_commit), "wait_group": memory(_wait)}
        return operations.get(match.modifiers[0])
    flat = [part for m in match.modifiers for part in m.split(".")]
    shape_match = next(re.fullmatch(r"m64n(\d+)k(\d+)", m) for m in flat if m.startswith("m64"))
    assert shape_match is not None
    types = [m for m in flat if m in FORMATS]
    names = tuple(operand.name for operand in signature)
    spelling = Spelling(
        int(shape_match[1]), int(shape_match[2]), (types[0], types[1], types[2]), bool(signature[1].count),
        "sp" in flat, "satfinite" in flat, names[1:],
    )  # fmt: skip
    return memory(partial(_issue, spelling))


def _issue(
    spelling: Spelling, site: Site, group: Lanes, mask: Any, outs: tuple[Array | None, ...], d: tuple[Array, ...],
    *arguments: Any,
) -> None:  # fmt: skip
    values_by_name = dict(zip(spelling.names, arguments, strict=True))
    effects = site.memory.effects
    if effects.lands_at_once(WGMMA):
        # The block scatters at its end the registers that it gathered at its start.
        _multiply(spelling, site, group, outs, d, values_by_name)
        return
    _locate_operands(spelling, site, group, wg.get_groups(group), values_by_name)
    operand_copies = {
        name: None if name == "a" and spelling.in_registers else copy_operands(value)
        for name, value in values_by_name.items()
    }
    land = partial(_multiply_late, spelling, site, group, operand_copies)
    effects.issue(WGMMA, group.index[find_firsts(group)], group.shape.lanes, land)


def _multiply_late(spelling: Spelling, site: Site, group: Lanes, values_by_name: dict[str, Any]) -> None:
    """Multiply with the registers' current contents, not with those that the block gathered."""
    words, (rows, factors) = site.memory.words, site.rows
    if group.positions is not None:
        settle(site.memory.accumulators, group, (site.number,), True)
    outs = _view_registers(words, group, rows)
    if spelling.in_registers:
        values_by_name = {**values_by_name, "a": _view_registers(words, group, factors)}
    _multiply(spelling, site, group, outs, outs, values_by_name)
    if group.positions is not None:
        words[np.array(rows)[:, None], group.positions] = outs


def _view_registers(words: Array, group: Lanes, rows: Rows) -> tuple[Array, ...]:
    return tuple(words[row, group.sel] for row in rows)


def _commit(site: Site, group: Lanes, mask: Any, outs: Any) -> None:
    effects = site.memory.effects
    if not effects.eager:
        effects.commit(WGMMA, find_active(group, mask), group.shape.lanes)


def _wait(site: Site, group: Lanes, mask: Any, outs: Any, newest: Any) -> None:
    effects = site.memory.effects
    if not effects.eager:
        effects.wait(WGMMA, find_active(group, mask), group.shape.lanes, int(newest))


def _multiply(
    spelling: Spelling, site: Site, group: Lanes, outs: tuple[Array | None, ...], d: tuple[Array, ...],
    values_by_name: dict[str, Any],
) -> None:  # fmt: skip
    groups = wg.get_groups(group)
    a_values, b_values = read_operands(spelling, site, group, groups, values_by_name)
    kind = numpy_code(spelling.types[0])
    accumulates: Array = group.broadcast(values_by_name["scale_d"])[groups.first]
    accumulators = _hold_accumulators(site, group, groups, outs, d, kind, accumulates)
    exact = site.memory.tensor.exact
    if accumulators is not None and kind == "f4" and not exact and a_values.dtype == b_values.dtype == np.float32:
        _add(accumulators, a_values, b_values.swapaxes(1, 2), accumulates)
        return
    start = wg.load_accumulator(groups, d, kind) if accumulators is None else accumulators.matrix
    if not accumulates.all():
        start = np.where(accumulates[:, None, None], start, start.dtype.type(0))
    if len(b_values) < groups.count:
        b_values = np.tile(b_values, (groups.count // len(b_values), 1, 1))
    find_stored = partial(_find_stored, spelling, groups, values_by_name) if spelling.sparse else None
    result = _sum_products(spelling, a_values, b_values.swapaxes(1, 2), start, exact, find_stored)
    if accumulators is not None:
        accumulators.matrix = np.ascontiguousarray(result.astype(kind, copy=False))
        return
    for out, row in zip(outs, wg.split_registers(groups, result, kind), strict=True):
        if out is not None:
            out[...] = row.view(out.dtype)


def _hold_accumulators(
    site: Site, group: Lanes, groups: wg.Groups, outs: tuple[Array | None, ...], d: tuple[Array, ...], kind: str,
    accumulates: Array,
) -> Accumulator | None:  # fmt: skip
    """Return the accumulators, which registers receive only when they are read; None if they must have them now."""
    if site.number < 0 or not groups.plain:
        return None
    store = site.memory.accumulators
    accumulators = find_accumulator(store, site.number, group, kind)
    if accumulators is None:
        count = 2 * len(d) * (2 if kind == "f2" else 1)
        start = wg.load_accumulator(groups, d, kind) if accumulates.any() else np.empty((groups.count, 64, count), kind)
        views = tuple(out for out in outs if out is not None)
        accumulators = Accumulator(groups, views, kind, np.ascontiguousarray(start))
        add_accumulator(store, site.number, group, accumulators)
    else:
        accumulators.is_dirty = True
    return accumulators


def _add(target: Accumulator, a_values: Array, b_values: Array, accumulates: Array) -> None:
    """Add the product of every warpgroup in float32. There may be one B for all warpgroups of a CTA."""
    accumulators, ctas = target.matrix, len(b_values)
    if not accumulates.all():
        accumulators[~accumulates] = 0
    with quiet():
        sums = get_scratch("wgmma", accumulators.shape, np.float32).reshape(-1, ctas, *accumulators.shape[1:])
        multiply(a_values.reshape(-1, ctas, *a_values.shape[1:]), b_values, sums)
        accumulators += sums.reshape(accumulators.shape)


def _sum_products(
    spelling: Spelling, a_values: Array, b_values: Array, start: Array, sm: int,
    find_stored: Callable[[], Array] | None,
) -> Array:  # fmt: skip
    if spelling.types[1] == "b1":
        return binary_dot(a_values, b_values, start, "and")
    if spelling.types[0] == "s32":
        return integer_dot(a_values, b_values, start, satfinite=spelling.saturates)
    multiply = partial(
        multiply_matrices, names=spelling.types, instruction="wgmma", sm=sm, sparse=find_stored is not None
    )
    if find_stored is None:
        return multiply(a_values, b_values, start)
    return multiply_stored(multiply, a_values, b_values, start, find_stored)


def _find_stored(spelling: Spelling, groups: wg.Groups, values_by_name: dict[str, Any]) -> Array:
    """Return which elements of a sparse A are stored."""
    return _expand(spelling, groups, values_by_name, np.ones((groups.count, 64, spelling.k // 2), np.bool_))


def _expand(spelling: Spelling, groups: wg.Groups, values_by_name: dict[str, Any], stored: Array) -> Array:
    """Return a sparse A with elements that are not stored."""
    bits = compute_type_bits(spelling.types[1])
    codes = _extract_codes(groups, values_by_name["meta"], int(values_by_name["selector"]), spelling.k, bits)
    return expand(stored, codes, "1:2" if bits == 32 else "2:4")


def read_operands(
    spelling: Spelling, site: Site, group: Lanes, groups: wg.Groups, values_by_name: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the values of A, 64 x K, and of B, N x K."""
    places = _locate_operands(spelling, site, group, groups, values_by_name)
    b_raw = wg.load_shared_operand(site.memory, places[-1], _find_raw_dtype(spelling, 2))
    if spelling.in_registers:
        a_raw = wg.load_register_operand(
            groups, tuple(np.asarray(r).view("u4") for r in values_by_name["a"]), _find_raw_dtype(spelling, 1)
        )
    else:
        a_raw = wg.load_shared_operand(site.memory, places[0], _find_raw_dtype(spelling, 1))
    x, y = _view_numbers(a_raw, spelling.types[1]), _view_numbers(b_raw, spelling.types[2])
    if spelling.sparse:
        x = _expand(spelling, groups, values_by_name, x)
    x = x if int(values_by_name.get("scale_a", 1)) == 1 else -x
    return x, y if int(values_by_name.get("scale_b", 1)) == 1 else -y


def _find_raw_dtype(spelling: Spelling, index: int) -> str:
    return f"u{max(compute_type_bits(spelling.types[index]), 8) // 8}"


def _locate_operands(
    spelling: Spelling, site: Site, group: Lanes, groups: wg.Groups, values_by_name: dict[str, Any]
) -> list[tuple[Array, str]]:
    """Return the places of the operands in shared memory, B's last."""
    a_columns = spelling.k // 2 if spelling.sparse else spelling.k
    shapes = [("a", 1, 64, a_columns)] if not spelling.in_registers else []
    operands: list[tuple[Array, str]] = []
    for name, index, rows, columns in [*shapes, ("b", 2, spelling.n, spelling.k)]:
        across = bool(int(values_by_name.get(f"transpose_{name}", 0)))
        width = columns // 8 if spelling.types[index] == "b1" else columns
        descriptors, raw = group.broadcast(values_by_name[name]), _find_raw_dtype(spelling, index)
        try:
            operands.append(
                wg.find_operand_places(site.memory, groups, descriptors, rows, width, raw, across, index == 2)
            )
        except wg.Outside as why:
            text = f"`{site.instruction.full_opcode}`: matrix {'DAB'[index]} {why}"
            note = site.memory.describe_thread(group, 0, site.function)
            raise faults.error(faults.MATRIX, site.origin, text, notes=(note,), help=why.help) from None
    return operands


def _view_numbers(raw: Array, kind: str) -> Array:
    if kind == "b1":
        return np.unpackbits(raw, axis=-1, bitorder="little")
    if kind in ("s8", "u8"):
        return raw.view(np.int8) if kind == "s8" else raw
    return decode(raw, kind)


def _extract_codes(groups: wg.Groups, meta: Array, selector: int, k: int, bits: int) -> Array:
    """Return the four bits of metadata of every chunk of every row of A."""
    words = groups.gather((meta,), "u4")[0]
    by_lane = words.transpose(0, 4, 1, 2, 3, 5).reshape(groups.count, wg.THREADS)
    lane, bit = _locate_metadata(k // (2 if bits == 32 else 4), bits, selector)
    return ((by_lane[:, lane] >> bit) & np.uint32(15)).astype(np.uint8)


@cache
def _locate_metadata(chunks: int, bits: int, selector: int) -> tuple[Array, Array]:
    locations = [[f.wgmma_metadata(row, c, bits=bits, selector=selector) for c in range(chunks)] for row in range(64)]
    return np.array([[p.lane for p in row] for row in locations]), np.array(
        [[p.bit for p in row] for row in locations], np.uint32
    )


BUILDERS: dict[str, Builder] = {"wgmma": _wgmma}
