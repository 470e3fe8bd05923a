"""What is reported for instructions with one wrong operand, and for samples with one other token or line, is the
reviewed text."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from pyptx.check import check
from pyptx.isa import lookup, table
from pyptx.isa.model import Kind, Match, Operand
from pyptx.parser import parse, tokenize
from tests.digests import assert_digest
from tools.isa import synthesize
from tools.isa.audit_spellings import Place, list_first_places

SAMPLES = [
    path.read_bytes().decode("utf-8", "surrogateescape")
    for path in sorted((Path(__file__).parents[1] / "parser" / "samples").glob("*.ptx"))
]
OPERANDS = (
    "q_b16_500", "q_b32_500", "q_b64_500", "q_f32_500", "q_f64_500", "q_pred_500", "!q_pred_500", "q_b32_500.x", "q_v4",
    "q_v4.y", "q_v4.b1", "-q_b32_500", "q_b32_500+4", "0", "-1", "255", "65536", "4294967296", "1.5", "0f3F800000",
    "q_global", "q_shared", "q_global+4", "-q_global", "q_texref", "q_callee", "q_label", "q_targets", "q_prototype_1",
    "q_argument", "%tid", "%tid.x", "%clock64", "%laneid", "WARP_SZ", "_", "{q_b32_500}", "{q_b32_500, q_b32_501}",
    "{q_b32_500, q_b32_501, _, 1}", "(q_argument)", "q_pred_500|q_pred_501", "q_b32_500|_", "[q_b64_500]",
    "[q_b64_500+4]", "[q_b32_500]", "[q_shared]", "[q_param]", "[q_b64_500, {q_b32_500}]", "[q_b64_500, q_b32_500]",
    "[8]", "[q_global, 0, q_b32_500]", "q_global[2]", "nobody", "[nobody]", "",
)  # fmt: skip
PARTS = 20
ROUNDS = 2000


@cache
def list_cases() -> dict[str, list[tuple[Match, tuple[Operand, ...], int]]]:
    """Return one operand of each description that rows have, with its place in a signature, by kind and type."""
    cases: dict[str, list[tuple[Match, tuple[Operand, ...], int]]] = {}
    seen = set[tuple[object, ...]]()
    for row in table.list_all_rows():
        for sequence in lookup.list_sequences(row):
            match = lookup.match_of(row, tuple((slot.name, slot.choices[-1]) for slot in sequence))
            for signature in match.signatures if list_first_places(match.needs, match.form.removed) else ():
                for position, operand in enumerate(signature):
                    description = _describe(operand)
                    if description not in seen:
                        seen.add(description)
                        name = f"{operand.kind.name.lower()} {operand.type or ''}".strip()
                        cases.setdefault(name, []).append((match, signature, position))
    return cases


def _describe(operand: Operand) -> tuple[object, ...]:
    parts = tuple((part.kind, part.type, part.count) for part in operand.parts)
    is_named = operand.kind in (Kind.LABEL, Kind.FUNCTION, Kind.VARIABLE)
    return (
        operand.kind, operand.access, operand.type, operand.count, operand.space, operand.negatable,
        operand.discardable, operand.widenable, operand.selectable, operand.minus, operand.braceable, parts,
        is_named and operand.name,
    )  # fmt: skip


def make_module(place: Place, instructions: Sequence[str]) -> str:
    """Return a module with these instructions."""
    version, arch = place.version, place.target.arch
    return "\n".join([
        f".version {version[0]}.{version[1]}", f".target {place.target.name}", ".address_size 64",
        *synthesize.module_variables(sampler=False), ".entry k(.param .b64 q_param)", "{",
        *synthesize.declarations(version, arch), ".reg .v4 .b32 q_v4;", *synthesize.function_labels(version, arch),
        *instructions, "q_label:", "ret;", "}", "",
    ])  # fmt: skip


def replace_operand(match: Match, signature: tuple[Operand, ...], position: int) -> str:
    """Return a module of instructions with other texts in place of an operand."""
    registers = synthesize.Registers()
    operands = [synthesize.operand(operand, registers) for operand in signature]
    head = ".".join((match.form.opcode, *match.modifiers))
    lists = [[*operands[:position], *([text] if text else []), *operands[position + 1 :]] for text in OPERANDS]
    place = list_first_places(match.needs, match.form.removed)[0]
    return make_module(place, [f"{head} {', '.join(words)};" for words in lists])


@pytest.mark.parametrize("kind", list_cases())
def test_the_findings_of_wrong_operands(kind: str) -> None:
    modules = [replace_operand(*case) for case in list_cases()[kind]]
    assert_digest("replacements", kind, "\n".join(map(describe_findings, modules)))


def edit_sample(draw: random.Random) -> str:
    """Return a sample with a token replaced, or with a line replaced, removed or added."""
    text, other = draw.choice(SAMPLES), draw.choice(SAMPLES)
    if draw.random() < 0.3:
        lines, new = text.splitlines(keepends=True), other.splitlines(keepends=True)
        position = draw.randrange(len(lines))
        lines[position : position + draw.randrange(2)] = draw.choices(new, k=draw.randrange(2))
        return "".join(lines)
    tokens = tokenize(text)
    position, new = draw.randrange(len(tokens)), draw.choice([*tokens, *tokenize(other)]).text
    tokens[position] = tokens[position]._replace(text=new)
    return "".join(token.leading_whitespace + token.text for token in tokens)


@pytest.mark.parametrize("part", range(PARTS))
def test_the_findings_of_edited_samples(part: int) -> None:
    draw = random.Random(part)
    texts = [edit_sample(draw) for _ in range(ROUNDS // PARTS)]
    assert_digest("replacements", f"sample {part}", "\n".join(map(describe_findings, texts)))


def describe_findings(text: str) -> str:
    """Return what is reported for a module, without its syntax errors."""
    findings = check(parse(text, recover=True)[0])
    return "\n".join(" ".join(map(str, finding.as_json().values())) for finding in findings)
