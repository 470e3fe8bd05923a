"""Checks that an instruction is spelled as some table row allows, on the module's target and PTX version."""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.check.complaint import Complaint
from pyptx.check.corrections import find_similar, suggest_corrections
from pyptx.diagnostics import Rule, Severity, format_count
from pyptx.isa import lookup, table
from pyptx.isa.model import Match, Mismatch
from pyptx.isa.targets import FIRST_PTX, Availability, Target, Version

_FRAME = """\
.version 8.5
.target sm_90a
.address_size 64
.visible .entry k()
{{
    .reg .b32 %r<4>;
    .reg .f32 %f<4>;
    {}
    ret;
}}
"""

UNKNOWN_OPCODE = Rule(
    "PTX0101",
    "unknown instruction",
    "No PTX version has an instruction of this name.",
    _FRAME.format("addd.s32 %r0, %r1, %r2;"),
    _FRAME.format("add.s32 %r0, %r1, %r2;"),
)
ILLEGAL_MODIFIER = Rule(
    "PTX0102",
    "illegal modifier",
    "The instruction exists, but no form of it has this modifier at this position.",
    _FRAME.format("add.rn.s32 %r0, %r1, %r2;"),
    _FRAME.format("add.s32 %r0, %r1, %r2;"),
)
MISSING_MODIFIER = Rule(
    "PTX0103",
    "missing modifier",
    "Every form of the instruction needs another modifier, usually a type.",
    _FRAME.format("mul %r0, %r1, %r2;"),
    _FRAME.format("mul.lo.s32 %r0, %r1, %r2;"),
)
NOT_CANONICAL = Rule(
    "PTX0104",
    "modifiers in a nonstandard order",
    "ptxas accepts modifiers in a different order or repeated; readers and other tools may not.",
    _FRAME.format("add.ftz.rn.f32 %f0, %f1, %f2;"),
    _FRAME.format("add.rn.ftz.f32 %f0, %f1, %f2;"),
    Severity.NOTE,
)
NEWER_VERSION = Rule(
    "PTX0301",
    "needs a newer PTX version",
    "The form exists on the module's target, but only in PTX versions newer than the module's `.version`.",
    _FRAME.format("elect.sync %r0|p, -1;")
    .replace("8.5", "7.8")
    .replace("%r<4>;", "%r<4>; .reg .pred p;")
    .replace("90a", "90"),
    _FRAME.format("elect.sync %r0|p, -1;").replace("%r<4>;", "%r<4>; .reg .pred p;"),
)
OTHER_TARGET = Rule(
    "PTX0302",
    "not available on this target",
    "The form needs another architecture, or a target with the suffix `a` or `f`.",
    _FRAME.format("wgmma.fence.sync.aligned;").replace("90a", "90"),
    _FRAME.format("wgmma.fence.sync.aligned;"),
)
REMOVED = Rule(
    "PTX0303",
    "removed from this target",
    "The form was removed for newer architectures; the manual names its replacement.",
    _FRAME.format("shfl.bfly.b32 %r0, %r1, 1, 31;"),
    _FRAME.format("shfl.sync.bfly.b32 %r0, %r1, 1, 31, -1;"),
)

RULES = (
    UNKNOWN_OPCODE, ILLEGAL_MODIFIER, MISSING_MODIFIER, NOT_CANONICAL, NEWER_VERSION, OTHER_TARGET, REMOVED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a spelling in one module: the usable matches, or why there are none."""

    usable: tuple[Match, ...]
    complaint: Complaint | None


def judge_spelling(opcode: str, modifiers: tuple[str, ...], target: Target, version: Version, count: int) -> Verdict:
    """Judge a spelling (modifiers without dots) for a module header; suggestions take `count` operands."""
    matches = lookup.find_matches(opcode, modifiers)
    if not matches:
        mismatch = lookup.lookup(opcode, modifiers)
        assert isinstance(mismatch, Mismatch)
        return Verdict(
            (), _explain_misspelled(mismatch, suggest_corrections(opcode, modifiers, count, target, version))
        )
    usable = tuple(m for m in matches if find_missing_requirement(m, target, version) is None)
    if not usable:
        return Verdict((), _explain_unavailable(matches, target, version))
    return Verdict(usable, _check_order(usable[0]))


def explain_unavailable_count(
    opcode: str, modifiers: tuple[str, ...], count: int, target: Target, version: Version
) -> Complaint | None:
    """Return the target or version that has the spelling with this many operands, if the module's own does not."""
    longer = tuple(
        match
        for match in lookup.find_matches(opcode, modifiers)
        if any(len(signature) == count for signature in match.signatures)
        and find_missing_requirement(match, target, version) is not None
    )
    if not longer:
        return None
    complaint = _explain_unavailable(longer, target, version)
    spelling = f"`{_spell(opcode, modifiers)}`"
    return Complaint(
        complaint.rule,
        complaint.message.replace(spelling, f"{spelling} with {format_count('operand', count)}", 1),
        complaint.help,
    )


def find_missing_requirement(match: Match, target: Target, version: Version) -> Complaint | None:
    """Return what the module lacks for this match, or None."""
    spelling = _spell(match.form.opcode, match.modifiers)
    removal = match.form.removed
    if removal is not None and removal.on(target, version):
        sync_modifiers = ("sync", *match.modifiers)
        follows = lookup.find_matches(match.form.opcode, sync_modifiers)
        hint = f"use `{_spell(match.form.opcode, sync_modifiers)}` with a mask of lanes instead" if follows else None
        return Complaint(REMOVED, f"`{spelling}` was removed in {removal}", hint)
    for need in match.needs:
        if need.on(target, version):
            continue
        first = need.find_first_version(target)
        if first is not None:
            return Complaint(
                NEWER_VERSION,
                f"`{spelling}` needs PTX {_format_version(first)} on {target}, but the module is `.version "
                f"{_format_version(version)}`",
                f"write `.version {_format_version(first)}` or newer",
            )
        return Complaint(
            OTHER_TARGET, f"`{spelling}` is not available on {target}: it needs {need}", _suggest_suffix(need, target)
        )
    return None


def _suggest_suffix(need: Availability, target: Target) -> str | None:
    """Return the remedy if the same architecture supports it with a suffix."""
    for suffix in ("f", "a"):
        variant = Target(target.arch, suffix)
        if not target.suffix and variant.name in FIRST_PTX and need.find_first_version(variant) is not None:
            return f"write `.target {variant}`"
    return None


def _explain_unavailable(matches: tuple[Match, ...], target: Target, version: Version) -> Complaint:
    """Choose the most helpful reason: a newer PTX version is easier to get than another GPU."""
    reasons = [
        reason for m in matches for reason in [find_missing_requirement(m, target, version)] if reason is not None
    ]
    order = (NEWER_VERSION, REMOVED, OTHER_TARGET)
    return min(reasons, key=lambda reason: order.index(reason.rule))


def _explain_misspelled(complaint: Mismatch, remedies: list[tuple[str, ...]]) -> Complaint:
    if not complaint.known:
        near = find_similar(complaint.opcode, table.list_opcodes())
        hint = f"did you mean `{near}`?" if near else _NO_OPCODE
        return Complaint(UNKNOWN_OPCODE, f"unknown instruction `{complaint.opcode}`", hint)
    choices = [f"`.{word}`" for word in complaint.expected if word]
    spellings = [f"`{_spell(complaint.opcode, remedy)}`" for remedy in remedies]
    hint = f"did you mean {_format_choices(spellings)}?" if spellings else None
    if complaint.position == len(complaint.modifiers):
        hint = hint if len(choices) <= _MOST_SHOWN else None
        spelling = _spell(complaint.opcode, complaint.modifiers)
        return Complaint(
            MISSING_MODIFIER,
            f"`{spelling}` is incomplete: expected {_format_choices(choices)} next",
            hint,
            complaint.position - 1,
        )
    wrong = complaint.modifiers[complaint.position]
    before = _spell(complaint.opcode, complaint.modifiers[: complaint.position])
    if not choices:
        return Complaint(
            ILLEGAL_MODIFIER,
            f"`.{wrong}` cannot follow `{before}`, which is already complete",
            hint,
            complaint.position,
        )
    near = find_similar(wrong, complaint.expected)
    hint = hint or (f"did you mean `.{near}`?" if near else None)
    return Complaint(
        ILLEGAL_MODIFIER,
        f"`.{wrong}` cannot follow `{before}`: expected {_format_choices(choices)}",
        hint,
        complaint.position,
    )


_NO_OPCODE = "an instruction starts with its opcode, as in `mov.b32`; a label ends in `:`"


def _check_order(match: Match) -> Complaint | None:
    if match.canonical is None:
        return None
    return Complaint(NOT_CANONICAL, f"the manual writes `{_spell(match.form.opcode, match.canonical)}`")


_MOST_SHOWN = 12


def _format_choices(words: list[str]) -> str:
    if len(words) > _MOST_SHOWN:
        return f"{', '.join(words[:_MOST_SHOWN])} or one of {len(words) - _MOST_SHOWN} more"
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _spell(opcode: str, modifiers: tuple[str, ...]) -> str:
    return ".".join((opcode, *modifiers))


def _format_version(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
