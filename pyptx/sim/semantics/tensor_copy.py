"""Manual: Tensor copy. Prefetches and priorities change nothing; overriding fields of a map is not simulated."""

from __future__ import annotations

from functools import partial

from pyptx.isa.model import Match
from pyptx.sim import bulk
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, memory

_MODES = ("gather4", "scatter4", "im2col", "tile")


def _cp(match: Match, signature: Signature) -> Operation | None:
    flags = set(match.modifiers)
    if "prefetch" in flags or match.form.opcode == "applypriority":
        return NOTHING
    if any("override" in m or "report::validity" in m for m in flags):
        return None
    mode = next((name for name in _MODES for m in match.modifiers if name in m), "tile")
    if "bulk_group" in flags:
        return memory(partial(bulk.store, mode, match.chosen["op"] if "reduce" in flags else ""))
    extras = tuple(o.name for o in signature if o.name in ("offsets", "halo", "ctas", "policy"))
    return memory(partial(bulk.load, mode, extras))


BUILDERS: dict[str, Builder] = {"cp": _cp, "applypriority": _cp}
