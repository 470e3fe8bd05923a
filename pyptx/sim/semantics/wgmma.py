"""Manual: wgmma. Operands are read, in shared memory and in registers, and accumulators are written when a product
lands: at once in the eager schedule, else as the schedule says, at the wait for its group at the latest."""

from __future__ import annotations

import re
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
from pyptx.sim.numerics.sparse import expand
from pyptx.sim.numerics.workspace import get_scratch
from pyptx.sim.rules import faults
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.accumulators import Accumulator, Rows, add_accumulator, find_accumulator, settle
from pyptx.sim.state.effects import WGMMA
from pyptx.sim.state.memory import Site


@dataclass(frozen=True, slots=True)
class Spelling:
    """One spelling: the sizes, the types of D, A and B, and the names of the operands behind them."""

    n: int
    k: int
    types: tuple[str, str, str]
    in_registers: bool
    sparse: bool
    saturates: bool
    names: tuple[str, ...]


def _wgmma(match: Match, signature: Signature) -> Operation | None:
    if "mma_async" not in match.modifiers:
        others = {"fence": NOTHING, "commit_group": memory(_commit), "wait_group": memory(_wait)}
        return others.get(match.modifiers[0])
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
    *given: Any,
) -> None:  # fmt: skip
    named = dict(zip(spelling.names, given, strict=True))
    effects = site.memory.effects
    if effects.lands_at_once(WGMMA):
        # What a block has gathered is what it scatters at its end.
        _multiply(spelling, site, group, outs, d, named)
        return
    _locate_operands(spelling, site, group, wg.get_groups(group), named)
    kept = {
        name: None if name == "a" and spelling.in_registers else copy_operands(value) for name, value in named.items()
    }
    land = partial(_multiply_late, spelling, site, group, kept)
    effects.issue(WGMMA, group.index[find_firsts(group)], group.shape.lanes, land)


def _multiply_late(spelling: Spelling, site: Site, group: Lanes, named: dict[str, Any]) -> None:
    """Multiply with what the registers hold now, not those that the block has gathered."""
    words, (rows, factors) = site.memory.words, site.rows
    if group.positions is not None:
        settle(site.memory.accumulators, group, (site.number,), True)
    outs = _view_registers(words, group, rows)
    if spelling.in_registers:
        named = {**named, "a": _view_registers(words, group, factors)}
    _multiply(spelling, site, group, outs, outs, named)
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
    named: dict[str, Any],
) -> None:  # fmt: skip
    groups = wg.get_groups(group)
    left, right = operands_of(spelling, site, group, groups, named)
    kind = numpy_code(spelling.types[0])
    keeps: Array = group.broadcast(named["scale_d"])[groups.first]
    held = _hold(site, group, groups, outs, d, kind, keeps)
    exact = site.memory.tensor.exact
    if held is not None and kind == "f4" and not exact and left.dtype == right.dtype == np.float32:
        _add(held, left, right.swapaxes(1, 2), keeps)
        return
    start = wg.load_accumulator(groups, d, kind) if held is None else held.matrix
    if not keeps.all():
        start = np.where(keeps[:, None, None], start, start.dtype.type(0))
    if len(right) < groups.count:
        right = np.tile(right, (groups.count // len(right), 1, 1))
    result = _sum_products(spelling, left, right.swapaxes(1, 2), start, exact)
    if held is not None:
        held.matrix = np.ascontiguousarray(result.astype(kind, copy=False))
        return
    for out, row in zip(outs, wg.split_registers(groups, result, kind), strict=True):
        if out is not None:
            out[...] = row.view(out.dtype)


def _hold(
    site: Site, group: Lanes, groups: wg.Groups, outs: tuple[Array | None, ...], d: tuple[Array, ...], kind: str,
    keeps: Array,
) -> Accumulator | None:  # fmt: skip
    """Return the accumulators, which registers will not have until somebody looks; None where they must have them."""
    if site.number < 0 or not groups.plain:
        return None
    store = site.memory.accumulators
    held = find_accumulator(store, site.number, group, kind)
    if held is None:
        count = 2 * len(d) * (2 if kind == "f2" else 1)
        start = wg.load_accumulator(groups, d, kind) if keeps.any() else np.empty((groups.count, 64, count), kind)
        views = tuple(out for out in outs if out is not None)
        held = Accumulator(groups, views, kind, np.ascontiguousarray(start))
        add_accumulator(store, site.number, group, held)
    held.is_dirty = True
    return held


def _add(held: Accumulator, left: Array, right: Array, keeps: Array) -> None:
    """Add the product of every warpgroup in float32. There may be one B for all warpgroups of a CTA."""
    accumulators, ctas = held.matrix, len(right)
    if not keeps.all():
        accumulators[~keeps] = 0
    with quiet():
        sums = get_scratch("wgmma", accumulators.shape, np.float32).reshape(-1, ctas, *accumulators.shape[1:])
        multiply(left.reshape(-1, ctas, *left.shape[1:]), right, sums)
        accumulators += sums.reshape(accumulators.shape)


def _sum_products(spelling: Spelling, left: Array, right: Array, start: Array, sm: int) -> Array:
    if spelling.types[1] == "b1":
        return binary_dot(left, right, start, "and")
    if spelling.types[0] == "s32":
        return integer_dot(left, right, start, satfinite=spelling.saturates)
    return multiply_matrices(left, right, start, spelling.types, instruction="wgmma", sm=sm, sparse=spelling.sparse)


def operands_of(
    spelling: Spelling, site: Site, group: Lanes, groups: wg.Groups, named: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the values of A, 64 x K, and of B, N x K."""
    places = _locate_operands(spelling, site, group, groups, named)
    right = wg.load_shared_operand(site.memory, places[-1], _raw_dtype(spelling, 2))
    if spelling.in_registers:
        left = wg.load_register_operand(
            groups, tuple(np.asarray(r).view("u4") for r in named["a"]), _raw_dtype(spelling, 1)
        )
    else:
        left = wg.load_shared_operand(site.memory, places[0], _raw_dtype(spelling, 1))
    x, y = _view_numbers(left, spelling.types[1]), _view_numbers(right, spelling.types[2])
    if spelling.sparse:
        bits = compute_type_bits(spelling.types[1])
        x = expand(
            x,
            _extract_codes(groups, named["meta"], int(named["selector"]), spelling.k, bits),
            "1:2" if bits == 32 else "2:4",
        )
    x = x if int(named.get("scale_a", 1)) == 1 else -x
    return x, y if int(named.get("scale_b", 1)) == 1 else -y


def _raw_dtype(spelling: Spelling, at: int) -> str:
    return f"u{max(compute_type_bits(spelling.types[at]), 8) // 8}"


def _locate_operands(
    spelling: Spelling, site: Site, group: Lanes, groups: wg.Groups, named: dict[str, Any]
) -> list[tuple[Array, str]]:
    """Return where the operands in shared memory lie: B's last."""
    kept = spelling.k // 2 if spelling.sparse else spelling.k
    wanted = [("a", 1, 64, kept)] if not spelling.in_registers else []
    operands: list[tuple[Array, str]] = []
    for name, at, rows, columns in [*wanted, ("b", 2, spelling.n, spelling.k)]:
        across = bool(int(named.get(f"transpose_{name}", 0)))
        width = columns // 8 if spelling.types[at] == "b1" else columns
        whole, raw = group.broadcast(named[name]), _raw_dtype(spelling, at)
        try:
            operands.append(wg.find_operand_places(site.memory, groups, whole, rows, width, raw, across, at == 2))
        except IndexError as why:
            shared = site.memory.shared
            inside = f"{shared.low:#x} … {shared.low + shared.size - 1:#x}"
            text = f"`{site.instruction.full_opcode}`: matrix {'DAB'[at]} {why}, outside {inside}"
            note = site.memory.describe_thread(group, 0, site.function)
            raise faults.error(faults.MATRIX, site.origin, text, notes=(note,)) from None
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
