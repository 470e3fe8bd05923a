"""Manual: Tensor copy. Prefetches and priorities change nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Kind, Match
from pyptx.sim.engines import bulk
from pyptx.sim.engines.copies.reports import parse_report
from pyptx.sim.rules import faults
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory

_OVERRIDES = {
    "override::global_dim_stride": ("address", "size", "low", "high"), "override::global_dim": ("address", "size"),
    "override::global_address": ("address",),
}  # fmt: skip
_MODES = ("gather4", "scatter4", "im2col", "tile")


def _cp(match: Match, signature: Signature) -> Operation | None:
    flags = set(match.modifiers)
    if "prefetch" in flags or match.form.opcode == "applypriority":
        return NOTHING
    mode = next((name for name in _MODES for m in match.modifiers if name in m), "tile")
    changes = next((fields for name, fields in _OVERRIDES.items() if any(name in m for m in flags)), ())
    first = 4 + 2 * sum(o.kind is Kind.ADDRESS for o in signature)
    if "bulk_group" in flags:
        store = partial(bulk.store, mode, match.chosen["op"] if "reduce" in flags else "")
        return memory(partial(_copy_with_overrides, changes, first, store) if changes else store)
    extras = tuple(o.name for o in signature if o.name in ("offsets", "halo", "ctas", "policy"))
    report = parse_report(flags)
    if not changes:
        return memory(partial(bulk.load, mode, extras, report=report))
    load = partial(bulk.load, mode, (*extras, "overrides"), report=report)
    return memory(partial(_copy_with_overrides, changes, first, load))


def _copy_with_overrides(changes: tuple[str, ...], first: int, copy: Callable[..., None], *operands: Any) -> None:
    """Copy by a map whose fields `changes` come from operands, the first of which is number `first`; the coordinates
    follow."""
    end = first + len(changes)
    overrides = dict(zip(changes, operands[first:end], strict=True))
    if "size" in overrides and any(np.any(number) for number in operands[end]):
        raise faults.error(
            faults.COPY, operands[0].origin, "a copy that overrides the sizes of its map must start at coordinates 0"
        )
    copy(*operands[:first], *operands[end:], overrides)


BUILDERS: dict[str, Builder] = {"cp": _cp, "applypriority": _cp}
