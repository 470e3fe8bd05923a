"""Manual: Control Flow Instructions. The scheduler moves lanes; nothing is computed."""

from __future__ import annotations

from pyptx.isa.model import Match
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature


def _build_nothing(match: Match, signature: Signature) -> Operation | None:
    return NOTHING


BUILDERS: dict[str, Builder] = dict.fromkeys(("bra", "brx", "call", "ret", "exit"), _build_nothing)
