"""The losslessness tests, on hand-written samples of every construct and on the corpus."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from pyptx.emitter import emit
from pyptx.ir import Instruction, Module, replace_statements, strip_layout, visit
from pyptx.parser import tokenize
from pyptx.parser.parser import Parsing, parse
from tests import lossless

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.ptx"))
CORPUS = sorted((Path(__file__).parents[1] / "corpus").rglob("*.ptx"))


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_samples_lose_nothing(path: Path) -> None:
    text = read(path)
    assert lossless.byte_identity(text) is None
    assert lossless.token_identity(text) is None
    assert lossless.restyling_keeps_meaning(text) is None
    assert lossless.edit_locality(text) is None


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_fast_path_says_what_the_grammar_says(path: Path) -> None:
    text = read(path)
    fast, slow = Parsing(text).parse_module(), Parsing(text, fast=False).parse_module()
    assert fast == slow
    assert list_layouts(fast) == list_layouts(slow)


@pytest.mark.parametrize("rate", [0.05, 0.5])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_fast_path_finds_the_same_places_after_other_gaps(path: Path, rate: float, seed: int) -> None:
    chance = random.Random(seed)
    gaps = (" ", "\t", "\n", "\n\n", " // comment\n  ")
    text = "".join(
        token.leading_whitespace + (chance.choice(gaps) if chance.random() < rate else "") + token.text
        for token in tokenize(read(path).replace("\n", "\n\n"))
    )
    slow, fast = Parsing(text, fast=False), Parsing(text)
    assert list_layouts(fast.parse_module()) == list_layouts(slow.parse_module())
    assert not fast.diagnostics
    assert not slow.diagnostics


def test_instructions_spaced_alike_share_a_layout() -> None:
    lines = ".version 8.0\n.target sm_90\n.entry k()\n{\n    ret;\n    add.s32 %a, %b, 1;\n    add.s32 %c, %d, 2;\n}\n"
    _, first, second = [node for node in visit(parse(lines)) if isinstance(node, Instruction)]
    assert first.layout is second.layout is not None


def list_layouts(module: Module) -> list[object]:
    """Return the fields that equality ignores: layouts and places."""
    return [(getattr(s, "layout", None), getattr(s, "closing", None), s.origin) for s in visit(module)]


@pytest.mark.skipif(not CORPUS, reason="no corpus in this checkout")
def test_the_corpus_is_printed_byte_for_byte() -> None:
    for path in CORPUS:
        assert lossless.byte_identity(read(path)) is None, path


@pytest.mark.skipif(not CORPUS, reason="no corpus in this checkout")
def test_the_corpus_loses_nothing(seed: int) -> None:
    for path in random.Random(seed).sample(CORPUS, min(40, len(CORPUS))):
        text = read(path)
        assert lossless.token_identity(text) is None, path
        assert lossless.restyling_keeps_meaning(text) is None, path
        assert list_layouts(Parsing(text).parse_module()) == list_layouts(Parsing(text, fast=False).parse_module()), (
            path
        )


@pytest.mark.skipif(not CORPUS, reason="no corpus in this checkout")
def test_edits_in_the_corpus_stay_where_they_are(seed: int) -> None:
    for path in random.Random(seed).sample(CORPUS, min(15, len(CORPUS))):
        assert lossless.edit_locality(read(path)) is None, path


def without_modifiers(module: Module) -> str:
    return emit(replace_statements(module, lambda s: s.replace(modifiers=()) if isinstance(s, Instruction) else s))


def operands_reversed(module: Module) -> str:
    return emit(
        replace_statements(module, lambda s: s.replace(operands=s.operands[::-1]) if isinstance(s, Instruction) else s)
    )


def without_guards(module: Module) -> str:
    return emit(replace_statements(module, lambda s: s.replace(predicate=None) if isinstance(s, Instruction) else s))


BROKEN = [without_modifiers, operands_reversed, without_guards]


@pytest.mark.parametrize("wrong_emitter", BROKEN, ids=lambda wrong_emitter: wrong_emitter.__name__)
def test_a_broken_emitter_is_seen(wrong_emitter: lossless.Emit) -> None:
    text = read(Path(__file__).parent / "samples" / "predicates.ptx")
    assert lossless.byte_identity(text, wrong_emitter) is not None
    assert lossless.restyling_keeps_meaning(text, wrong_emitter) is not None
    assert lossless.edit_locality(text, wrong_emitter) is not None


def test_an_emitter_that_replays_the_source_is_seen() -> None:
    text = read(Path(__file__).parent / "samples" / "predicates.ptx")
    assert lossless.byte_identity(text, lambda module: text) is None
    assert lossless.edit_locality(text, lambda module: text) is not None


def test_an_emitter_that_forgets_layouts_is_seen() -> None:
    text = read(Path(__file__).parent / "samples" / "comments.ptx")
    assert lossless.byte_identity(text, lambda module: emit(strip_layout(module))) is not None


def test_restyled_text_is_stable() -> None:
    for path in SAMPLES:
        canonical = lossless.restyle(read(path))
        assert lossless.restyle(canonical) == canonical
        assert emit(parse(canonical)) == canonical
