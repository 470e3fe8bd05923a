"""Manual: ld, ld.global.nc, ldu. Cache operators, hints and orderings change no value in program order."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.semantics.access import load
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Site


def _ld(match: Match, signature: Signature) -> Operation | None:
    kind = match.chosen.get("vec_type", match.chosen.get("type", "b128")).rpartition(".")[2]
    dtype = np.dtype("u8") if kind == "b128" else dtype_of(kind)
    return memory(partial(_load, np.dtype(f"u{dtype.itemsize}") if dtype.kind == "f" else dtype))


def _load(
    dtype: np.dtype[Any],
    site: Site,
    lanes: Lanes,
    mask: Array | None,
    space: str,
    address: Value,
    outs: Value,
    *_: Value,
) -> None:
    views = tuple(_view_raw(out) for out in outs)
    load(site, lanes, mask, space, address, dtype, views)


def _view_raw(out: Array | None) -> Array | None:
    return out.view(f"u{out.dtype.itemsize}") if out is not None and out.dtype.kind == "f" else out


BUILDERS: dict[str, Builder] = {"ld": _ld, "ldu": _ld}
