"""Manual: st, st.bulk."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.access import as_tuple, store
from pyptx.sim.formats import Array, Value, dtype_of
from pyptx.sim.lanes import Lanes
from pyptx.sim.memory import Site
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory


def _st(match: Match, signature: Signature) -> Operation | None:
    if {"async", "bulk"} & set(match.modifiers):
        return None
    kind = match.chosen.get("vec_type", match.chosen.get("type", "b128")).rpartition(".")[2]
    return memory(partial(_store, np.dtype("u8") if kind == "b128" else dtype_of(kind)))


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
