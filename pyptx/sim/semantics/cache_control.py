"""Manual: prefetch, prefetchu, applypriority, discard, createpolicy. There are no caches; a policy is a number."""

from __future__ import annotations

from pyptx.isa.model import Match
from pyptx.sim.semantics.vocabulary import COPY, NOTHING, Builder, Operation, Signature, memory


def _build_nothing(match: Match, signature: Signature) -> Operation | None:
    return NOTHING


def _createpolicy(match: Match, signature: Signature) -> Operation | None:
    if "cvt" in match.modifiers:
        return COPY
    return memory(_keep_policy)


def _keep_policy(site: object, lanes: object, mask: object, *operands: object) -> None:
    """Leave the policy unchanged: only cache hints read it."""


BUILDERS: dict[str, Builder] = {
    "prefetch": _build_nothing, "prefetchu": _build_nothing, "applypriority": _build_nothing, "discard": _build_nothing,
    "createpolicy": _createpolicy,
}  # fmt: skip
