"""Manual: tcgen05: allocation, loads and stores, commit. Waits and fences change nothing: every operation has been done
when its instruction has run."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.isa.fragments.tensor_memory import tmem_registers
from pyptx.isa.model import Match
from pyptx.sim import bulk, rules
from pyptx.sim.access import as_tuple, store
from pyptx.sim.engines import chosen, objects, told
from pyptx.sim.formats import Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Site
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory

_U4 = np.dtype("u4")


def _tcgen05(match: Match, signature: Signature) -> Operation | None:
    flags, name = set(match.modifiers), match.modifiers[0]
    if "cta_group::2" in flags or name in ("cp", "shift") or "exclusive" in flags:
        return None
    if name == "commit":
        return memory(_commit) if not any("::32b" in m for m in flags) else None
    if name == "alloc":
        return memory(_alloc)
    if name == "dealloc":
        return memory(_dealloc)
    if name in ("ld", "st"):
        return _move(match, flags, name == "ld")
    return NOTHING


def _move(match: Match, flags: set[str], loads: bool) -> Operation | None:
    shape = next(m for m in match.modifiers if re.fullmatch(r"\d+x\d+b(x2)?", m))
    if "red" in flags or any("spcompress" in m for m in flags) or shape == "16x32bx2":
        return None
    num = int(match.chosen["num"][1:])
    return memory(partial(_load if loads else _store, shape, num, any("16b" in m for m in flags)))


@cache
def _places(shape: str, num: int, packed: bool) -> tuple[Array, Array]:
    """Return the lane and column, from the address on, of every register of every lane."""
    fragment = tmem_registers(shape, num)
    found = np.array([[fragment.position(lane, at) for at in range(fragment.count)] for lane in range(32)])
    return found[:, :, 0], found[:, :, 1] * (2 if packed else 1)


def _cells(shape: str, num: int, packed: bool, site: Site, group: Lanes, address: Any) -> tuple[Array, Array, Array]:
    """Return CTA, lane and column of every register of every lane, `[lane of the group, register]`."""
    whole = np.broadcast_to(address, group.n).astype(np.int64)
    rows, columns = _places(shape, num, packed)
    lane = group.shape.lane[group.sel]
    row, column = (whole >> 16)[:, None] + rows[lane], (whole & 0xFFFF)[:, None] + columns[lane]
    quarter = group.shape.thread[group.sel] // 32 % 4
    wrong = (row >> 5 != quarter[:, None]).any(1)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        first = 32 * int(quarter[at])
        text = f"lane {row[at].max()}; warp {quarter[at]} of its warpgroup reaches lanes {first} … {first + 31}"
        raise wrong_place(site, group, at, text)
    ok = site.memory.tensor.allocated(group.cta, column.min(1), column.max(1) + packed)
    if not ok.all():
        at = int(np.flatnonzero(~ok)[0])
        raise wrong_place(site, group, at, f"columns {column[at].min()} … {column[at].max()} are not allocated")
    return group.cta[:, None], row, column


def wrong_place(site: Site, group: Lanes, at: int, why: str) -> PtxError:
    """Return the error of an access to tensor memory."""
    text = f"`{site.instruction.full_opcode}`: {why}"
    return rules.error(rules.TENSOR, site.origin, text, notes=(site.memory.place(group, at, site.function),))


def _load(
    shape: str,
    num: int,
    packed: bool,
    site: Site,
    group: Lanes,
    mask: Any,
    space: str,
    address: Any,
    outs: Any,
    *_: Any,
) -> None:
    cta, row, column = _cells(shape, num, packed, site, group, address)
    cells = site.memory.tensor.cells
    made = cells[cta, row, column]
    if packed:
        made = made & np.uint32(0xFFFF) | cells[cta, row, column + 1] << np.uint32(16)
    for out, values in zip(outs, made.T, strict=True):
        if out is not None:
            out[...] = values


def _store(
    shape: str,
    num: int,
    packed: bool,
    site: Site,
    group: Lanes,
    mask: Any,
    space: str,
    address: Any,
    outs: Any,
    *given: Any,
) -> None:
    cta, row, column = _cells(shape, num, packed, site, group, address)
    cells = site.memory.tensor.cells
    words = np.stack([np.broadcast_to(v, group.n) for v in as_tuple(given[-1])], axis=1).astype(np.uint32)
    if packed:
        cells[cta, row, column + 1] = words >> np.uint32(16)
        words = words & np.uint32(0xFFFF)
    cells[cta, row, column] = words


def _first_of_warps(group: Lanes) -> list[int]:
    """Return the position of one lane of each warp."""
    return np.unique(group.shape.warp[group.sel], return_index=True)[1].tolist()


def _alloc(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, columns: Any) -> None:
    where, counts = (np.broadcast_to(v, group.n) for v in (address, columns))
    for at in _first_of_warps(group):
        count, one = int(counts[at]), group.shape.of(group.index[at : at + 1])
        if count not in (32, 64, 128, 256, 512):
            raise wrong_place(site, group, at, f"{count} columns: a power of two from 32 to 512 is needed")
        first = site.memory.tensor.allocate(int(one.cta[0]), count)
        if first is None:
            raise wrong_place(site, group, at, f"no {count} columns in a row are free, and nothing would free them")
        store(site, one, None, space, where[at : at + 1], _U4, (np.array([first], _U4),))


def _dealloc(site: Site, group: Lanes, mask: Any, outs: Any, address: Any, columns: Any) -> None:
    where, counts = (np.broadcast_to(v, group.n) for v in (address, columns))
    for at in _first_of_warps(group):
        if not site.memory.tensor.free(int(group.cta[at]), int(where[at]) & 0xFFFF, int(counts[at])):
            raise wrong_place(site, group, at, f"columns from {int(where[at]) & 0xFFFF} on are not allocated")


def _commit(site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, ctas: Any = None) -> None:
    some, (where, named) = chosen(group, mask, address, np.array(0) if ctas is None else ctas)
    if some is None:
        return
    offsets = objects(site, some, space, where)
    if ctas is not None:
        every = [bulk.everywhere(site, one, int(offsets[at]), int(named[at])) for at, one in bulk.one_by_one(some)]
        offsets = np.concatenate(every)
    told(site, some, lambda m: m.arrive(m.rows(offsets), np.ones(len(offsets), np.int64)))


BUILDERS: dict[str, Builder] = {"tcgen05": _tcgen05}
