"""Manual: st, st.bulk."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes, wrap_signal
from pyptx.sim.semantics.access import as_tuple, store
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Site


def _st(match: Match, signature: Signature) -> Operation | None:
    if "bulk" in match.modifiers:
        return memory(_clear)
    kind = match.chosen.get("vec_type", match.chosen.get("type", "b128")).rpartition(".")[2]
    dtype = np.dtype("u8") if kind == "b128" else dtype_of(kind)
    plain = partial(_store, dtype)
    if "mbarrier::complete_tx::bytes" not in match.modifiers:
        return memory(plain)
    count = 2 if kind == "b128" else max(1, signature[1].count)
    return memory(wrap_signal(plain, count * dtype.itemsize))


def _clear(
    site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Value, size: Value, *_: Value
) -> None:
    """Fill memory with zeros, eight bytes at a time."""
    active, (addresses, counts) = select_lanes(lanes, mask, address, size)
    if active is None:
        return
    word = np.zeros(1, np.uint64)
    for position, lane in enumerate(active.index):
        single = active.shape.select_range(int(lane), int(lane) + 1)
        for offset in range(0, int(counts[position]), word.itemsize):
            store(
                site,
                single,
                None,
                space or "",
                addresses[position : position + 1] + addresses.dtype.type(offset),
                word.dtype,
                (word,),
            )


def _store(
    dtype: np.dtype[Any],
    site: Site,
    lanes: Lanes,
    mask: Array | None,
    space: str,
    address: Value,
    outs: Value,
    values: Value,
    *_: Value,
) -> None:
    store(site, lanes, mask, space, address, dtype, as_tuple(values))


BUILDERS: dict[str, Builder] = {"st": _st}
