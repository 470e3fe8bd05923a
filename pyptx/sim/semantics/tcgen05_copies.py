"""Manual: tcgen05.cp and tcgen05.shift: from shared to tensor memory, and rows of tensor memory by one lane."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.descriptors import Tcgen05Descriptor
from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.issuing import issue_operation, select_lanes
from pyptx.sim.semantics.tcgen05_places import find_pair, make_place_error, make_unallocated_error
from pyptx.sim.semantics.vocabulary import Operation, memory
from pyptx.sim.state import warpgroups as wg
from pyptx.sim.state.memory import Site
from pyptx.sim.state.tracing import is_only_traced, record_touch

_ROWS = np.arange(128)
_LANES: dict[str, tuple[Array, int]] = {
    "128x256b": (_ROWS, 32),
    "128x128b": (_ROWS, 16),
    "4x256b": (np.arange(4) * 32, 32),
    "64x128b.warpx2::02_13": (np.stack([_ROWS[:64], _ROWS[:64] + 64]), 16),
    "64x128b.warpx2::01_23": (np.stack([_ROWS[:64] + (_ROWS[:64] & 32), _ROWS[:64] + (_ROWS[:64] & 32) + 32]), 16),
    "32x128b.warpx4": (_ROWS.reshape(4, 32), 16),
}
"""By shape and multicast, the lanes of every copy of the rows, and the bytes of a row."""
_SHIFTED_COLUMNS = 8


def build_operation(match: Match, pair: bool) -> Operation:
    """Return the operation of a copy or a shift."""
    flat = [part for m in match.modifiers for part in m.split(".")]
    if flat[0] == "shift":
        return memory(partial(_issue, pair, _shift))
    shape = next(m for m in flat if m[0].isdigit())
    layout = ".".join([shape, *(m for m in flat if m.startswith("warpx"))])
    source = next((m for m in flat if m.startswith(("b6x16", "b4x16"))), "")
    return memory(partial(_issue, pair, partial(_copy, layout, int(source[1]) if source else 8)))


def _issue(
    pair: bool, execute: Any, site: Site, group: Lanes, mask: Any, space: str, address: Any, outs: Any, *operands: Any
) -> None:
    active, values = select_lanes(group, mask, address, *operands)
    if active is not None:
        issue_operation(site, active, tuple(values), partial(_run, pair, execute, site))


def _run(pair: bool, execute: Any, site: Site, active: Lanes, values: tuple[Any, ...]) -> None:
    for position, issuer in bulk.split_lanes(active):
        ctas = find_pair(site, issuer) if pair else (int(issuer.cta[0]),)
        try:
            for cta in ctas:
                execute(site, cta, *(int(value[position]) for value in values))
        except (ValueError, IndexError) as why:
            raise make_place_error(site, issuer, 0, why) from None


def _check_allocated(site: Site, cta: int, column: int, count: int) -> None:
    if not site.memory.tensor.are_allocated(np.array([cta]), np.array([column]), np.array([column + count - 1])).all():
        raise make_unallocated_error(column, column + count - 1)


def _copy(layout: str, bits: int, site: Site, cta: int, address: int, descriptor: int) -> None:
    """Copy the rows of a descriptor; every CTA of a pair copies from its own shared memory."""
    lanes, size = _LANES[layout]
    first, column = address >> 16, address & 0xFFFF
    if first >= (32 if layout == "4x256b" else 1):
        raise ValueError(f"`.{layout}` cannot start at lane {first}")
    _check_allocated(site, cta, column, size // 4)
    shared_descriptor = Tcgen05Descriptor.decode(descriptor)
    rows = wg.load_shared_matrix(site.memory, cta, shared_descriptor, lanes.shape[-1], size, "u1", False, 2 * bits)
    words = np.ascontiguousarray(rows if bits == 8 else _unpack(rows, bits)).view(np.uint32)
    record_touch(site.memory.trace, cta, lanes + first, column, size // 4, writes=True)
    if is_only_traced(site.memory.trace):
        return
    site.memory.tensor.cells[cta][lanes + first, column : column + size // 4] = words


def _unpack(rows: Array, bits: int) -> Array:
    """Return 16 bytes for every 16 elements of 4 or 6 bits and their padding: 4-bit ones in bits 2 to 5."""
    parts = rows.reshape(len(rows), -1, 16)
    if bits == 4:
        low, high = (parts[..., :8] & np.uint8(15)) << np.uint8(2), parts[..., :8] >> np.uint8(4) << np.uint8(2)
        return np.stack([low, high], axis=-1).reshape(rows.shape)
    bit_stream = np.unpackbits(np.ascontiguousarray(parts[..., :12]), axis=-1, bitorder="little")
    codes = np.packbits(bit_stream.reshape(*parts.shape[:-1], 16, 6), axis=-1, bitorder="little")
    return codes.reshape(rows.shape)


def _shift(site: Site, cta: int, address: int) -> None:
    """Copy 32 bytes of the next lane to every lane of a quarter but the last."""
    first, column = address >> 16, address & 0xFFFF
    if first % 32 or first >= 128:
        raise ValueError(f"the rows to shift must start at a multiple of 32 lanes, not at {first}")
    _check_allocated(site, cta, column, _SHIFTED_COLUMNS)
    for writes in (False, True):
        record_touch(site.memory.trace, cta, first + np.arange(32), column, _SHIFTED_COLUMNS, writes=writes)
    if is_only_traced(site.memory.trace):
        return
    part = site.memory.tensor.cells[cta][first : first + 32, column : column + _SHIFTED_COLUMNS]
    part[:-1] = part[1:].copy()
