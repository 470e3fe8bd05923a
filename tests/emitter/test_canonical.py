"""Canonical form preserves every token and comment, is stable, and leaves no freedom of layout."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyptx.emitter import STYLES, formatted
from pyptx.ir import Instruction, Statement, module_tokens, replace_statements
from pyptx.parser import parse

CORPUS = sorted((Path(__file__).parent.parent / "corpus").rglob("*.ptx"))
COMMENT = re.compile(r'"[^"\n]*"|(//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*)', re.DOTALL | re.MULTILINE)


def comments(text: str) -> list[str]:
    return [c.strip() for c in COMMENT.findall(text) if c]


def assert_canonical(text: str, style: str = "default") -> str:
    module = parse(text)
    canonical = formatted(module, style=STYLES[style])
    reparsed = parse(canonical)
    assert module_tokens(reparsed) == module_tokens(module)
    assert reparsed == module
    assert comments(canonical) == comments(text.replace("\r\n", "\n").rstrip("\0"))
    assert formatted(reparsed, style=STYLES[style]) == canonical
    assert "\n\n\n" not in canonical
    assert not re.search(r"[ \t]+$", COMMENT.sub("c", canonical), re.MULTILINE)
    return canonical


@pytest.mark.parametrize("style", list(STYLES))
def test_corpus_files_keep_tokens_and_comments(seed: int, style: str) -> None:
    for path in random.Random(seed).sample(CORPUS, min(12, len(CORPUS))):
        assert_canonical(path.read_text("utf-8"), style)


UGLY = """\
// head
.version 8.0
  .target sm_90 // t
.address_size 64


# 1 "a.cu"
/* before */ .visible .entry k(.param .u64 a, // first
   .param .u32 b)
.maxntid 128
{ // open

   .reg .b32 %r<4>; .reg .pred %p;

L:  add.s32   %r1, /* x */ %r2,
 %r3; // add
   { /* a
   b */ @%p add.s32 %r1, %r1, // one
     %r2; }
   // last

} // end
// tail

"""
NEAT = """\
// head
.version 8.0
.target sm_90  // t
.address_size 64

# 1 "a.cu"
/* before */
.visible .entry k(
    .param .u64 a, // first
    .param .u32 b
)
.maxntid 128
{  // open
    .reg .b32 %r<4>;
    .reg .pred %p;

    L:
    add.s32 %r1, /* x */ %r2,
            %r3;  // add
    {
        /* a
   b */
        @%p add.s32 %r1, %r1, // one
                %r2;
    }
    // last
}  // end
// tail
"""


def test_what_a_reader_put_there_stays_and_the_rest_is_uniform() -> None:
    assert assert_canonical(UGLY, "spaces") == NEAT


def test_comments_below_a_statement_stay_below_it() -> None:
    after = " // a\n  // b\n\n\n/* c */\n\n"

    def comment(statement: Statement) -> Statement:
        return statement.replace(layout=("", "", after)) if isinstance(statement, Instruction) else statement

    module = replace_statements(parse(".version 8.0\n.target sm_90\n.entry k() {ret;}\n"), comment)
    text = formatted(module)
    assert text.partition("{\n")[2] == "\tret;  // a\n\t// b\n\n\t/* c */\n}\n"
    assert formatted(parse(text)) == text


def test_crlf_and_a_trailing_nul_are_not_canonical() -> None:
    assert formatted(parse(UGLY.replace("\n", "\r\n") + "\0"), style=STYLES["spaces"]) == NEAT


GAPS = st.lists(st.sampled_from([" ", "\n", "\t", "\r\n", "/* c */", "// d\n", "/* e\n */", '\n# 7 "f"\n']), max_size=4)


@settings(max_examples=300)
@given(st.lists(GAPS, min_size=32, max_size=32))
def test_any_gaps_between_tokens(gaps: list[list[str]]) -> None:
    words = ".version 8.0 .target sm_90 .func f ( ) { .reg .b32 a , b ; L : @ p add .s32 a , a , b ; { } } .func g ;"
    text = "".join(f"{word} {''.join(gap)}" for word, gap in zip(words.split(" "), [*gaps, [], []], strict=False))
    assert_canonical(text)
