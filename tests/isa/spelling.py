"""Queries of the table for tests: `legal("add.sat.s32")`, `legal("...", "sm_90", "8.0")`."""

from __future__ import annotations

from pyptx.isa import lookup
from pyptx.isa.model import Match
from pyptx.isa.targets import NEWEST_PTX, find_target, parse_version


def matches(spelling: str) -> tuple[Match, ...]:
    """Return every row's match of a spelling such as `add.sat.s32`."""
    opcode, *modifiers = spelling.split(".")
    return lookup.find_matches(opcode, tuple(modifiers))


def legal(spelling: str, target: str | None = None, ptx: str | None = None) -> bool:
    """Return whether a row allows the spelling: anywhere, or on this target in this PTX version (or the newest)."""
    if target is None:
        return bool(matches(spelling))
    version = parse_version(ptx) if ptx else NEWEST_PTX
    return any(
        all(need.on(find_target(target), version) for need in match.needs)
        and not (match.form.removed and match.form.removed.on(find_target(target), version))
        for match in matches(spelling)
    )


def operands(spelling: str) -> list[str]:
    """Return the operand lists of all rows as text, such as `d:.u64, [a]`, in the notation's order."""
    return [", ".join(str(o) for o in signature) for match in matches(spelling) for signature in match.signatures]
