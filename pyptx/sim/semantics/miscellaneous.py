"""Manual: Miscellaneous Instructions."""

from __future__ import annotations

from pyptx.isa.model import Match
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature


def _build_nothing(match: Match, signature: Signature) -> Operation | None:
    return NOTHING


BUILDERS: dict[str, Builder] = dict.fromkeys(("nanosleep", "pmevent", "trap", "brkpt", "setmaxnreg"), _build_nothing)
