"""Manual: Tensor copy. Prefetches and priorities change nothing; copies that report on what they move are left out."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Kind, Match
from pyptx.sim import bulk, rules
from pyptx.sim.copies.overrides import NAMES
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory

_MODES = ("gather4", "scatter4", "im2col", "tile")


def _cp(match: Match, signature: Signature) -> Operation | None:
    flags = set(match.modifiers)
    if "prefetch" in flags or match.form.opcode == "applypriority":
        return NOTHING
    if any("report::validity" in m for m in flags):
        return None
    mode = next((name for name in _MODES for m in match.modifiers if name in m), "tile")
    names = tuple(o.name for o in signature if o.kind is not Kind.ADDRESS)
    changes = tuple(name for name in names if name in NAMES)
    if "bulk_group" in flags:
        store = partial(bulk.store, mode, match.chosen["op"] if "reduce" in flags else "")
        return memory(partial(_overridden, changes, names, store) if changes else store)
    extras = tuple(name for name in names if name in ("offsets", "halo", "ctas", "policy"))
    if not changes:
        return memory(partial(bulk.load, mode, extras))
    return memory(partial(_overridden, changes, names, partial(bulk.load, mode, (*extras, "overrides"))))


def _overridden(changes: tuple[str, ...], names: tuple[str, ...], copy: Callable[..., None], *given: Any) -> None:
    """Copy by a map with some fields from operands, which come last, together; the copy's own are in their order."""
    first = len(given) - len(names)
    named = dict(zip(names, given[first:], strict=True))
    overrides = {name: named.pop(name) for name in changes}
    if "size" in overrides and any(np.any(at) for at in named["at"]):
        raise rules.error(rules.COPY, given[0].origin, "a copy that overrides sizes of its map starts at coordinates 0")
    copy(*given[:first], *named.values(), overrides)


BUILDERS: dict[str, Builder] = {"cp": _cp, "applypriority": _cp}
