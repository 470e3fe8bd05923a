"""Mutated samples: only PtxSyntaxError ever, recovery loses nothing, both paths agree."""

from __future__ import annotations

import random
from pathlib import Path

from pyptx.emitter import emit
from pyptx.ir import module_tokens
from pyptx.parser import tokenize
from pyptx.parser.parser import Parsing, parse

SAMPLES = [
    path.read_bytes().decode("utf-8", "surrogateescape")
    for path in sorted((Path(__file__).parent / "samples").glob("*.ptx"))
]
BITS = (
    '{ } ( ) [ ] ; , : . @ ! | " /* */ // \n \0 % $ _ 0 1e 0f 0x .b32 .reg .global .entry .func ret; = + - ? é # \r <'
    " > generic( WARP_SZ 0f3F800000 .loc {ret;} L: .pragma call 1?2:3"
).split(" ")
ROUNDS = 1000


def mutated(random: random.Random, text: str) -> str:
    """Return the text after a few edits."""
    for _ in range(random.choice([1, 1, 1, 2, 3, 8])):
        at = random.randrange(len(text) + 1)
        end = at + random.choice([1, 1, 2, 5, 20, 100])
        other = random.randrange(len(text) + 1)
        text = random.choice(
            [
                text[:at] + text[end:],
                text[:at] + random.choice(BITS) + text[at:],
                text[:at] + text[at:end] + text[at:],
                text[:at] + text[other : other + 30] + text[at:],
                text[:at],
                text[:at] + chr(random.randrange(128)) + text[at + 1 :],
                "".join(line for line in text.splitlines(keepends=True) if random.random() > 0.02),
            ]
        )
    return text


def test_mutated_samples(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(ROUNDS):
        text = mutated(chance, chance.choice(SAMPLES))
        module, diagnostics = parse(text, recover=True)
        assert emit(module) == text
        grammar = Parsing(text, fast=False)
        assert grammar.module() == module or diagnostics
        assert grammar.diagnostics == list(diagnostics)
        if not diagnostics:
            assert module_tokens(module) == [token.text for token in tokenize(text)][:-1]
