"""Mutated samples raise only PtxSyntaxError, recovery loses nothing, both paths agree, and errors are the reviewed
ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pyptx.emitter import emit
from pyptx.ir import module_tokens
from pyptx.parser import tokenize
from pyptx.parser.parser import Parsing, parse
from tests.digests import assert_digest
from tools.audit_fuzz import mutate

SAMPLES = [
    path.read_bytes().decode("utf-8", "surrogateescape")
    for path in sorted((Path(__file__).parent / "samples").glob("*.ptx"))
]
ROUNDS = 1000


def test_mutated_samples(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(ROUNDS):
        text = mutate(chance.choice(SAMPLES), chance)
        module, diagnostics = parse(text, recover=True)
        assert emit(module) == text
        grammar = Parsing(text, fast=False)
        assert grammar.parse_module() == module or diagnostics
        assert grammar.diagnostics == list(diagnostics)
        if not diagnostics:
            assert module_tokens(module) == [token.text for token in tokenize(text)][:-1]


@pytest.mark.parametrize("part", range(25))
def test_the_errors_of_mutated_samples(part: int) -> None:
    draw = random.Random(part)
    texts = [mutate(draw.choice(SAMPLES), draw) for _ in range(ROUNDS // 25)]
    findings = [error.as_json() for text in texts for error in parse(text, recover=True)[1]]
    assert_digest("errors", str(part), "\n".join(str(list(finding.values())) for finding in findings))
