"""Every text is a sequence of gaps and tokens, or an error with its place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.parser import LexError, Token, TokenKind, tokenize

WORDS = "add .s32 .shared::cluster %r1 % $ _ 0x1F 0f3F800000 1.5e-3 .5 09 7U @ ! | || << :: ; { } [ ] # . 1e 0x / é"
LINE_MARK = '\n# 1 "f"\n'
PIECES = st.sampled_from(
    [*WORDS.split(), '"', '"a b"', "/* a\n*/", "/*c*/", "//c\n", LINE_MARK, " ", "\t", "\n", "\r\n", "\0", "@@DWARF"]
)
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60)


@given(TEXTS)
def test_tokens_and_gaps_are_the_whole_text(text: str) -> None:
    try:
        tokens = tokenize(text)
    except LexError as error:
        lex_error = error
    else:
        assert "".join(token.leading_whitespace + token.text for token in tokens) == text
        assert tokens[-1].kind is TokenKind.END
        assert_places(tokens, text)
        return
    assert lex_error.diagnostics
    assert 1 <= lex_error.line <= text.count("\n") + 1


def assert_places(tokens: list[Token], text: str) -> None:
    lines = text.split("\n")
    for token in tokens[:-1]:
        assert lines[token.line - 1][token.col - 1 :].startswith(token.text.partition("\n")[0])


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind.value, token.text) for token in tokenize(text)][:-1]


def test_kinds_of_tokens() -> None:
    assert kinds("@%p1 ld.global::x.2d %r1,[a+0x4U]; // c") == [
        ("punctuation", "@"), ("name", "%p1"), ("name", "ld"), ("dotted", ".global::x"), ("dotted", ".2d"),
        ("name", "%r1"), ("punctuation", ","), ("punctuation", "["), ("name", "a"), ("punctuation", "+"),
        ("number", "0x4U"), ("punctuation", "]"), ("punctuation", ";"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["1.", ".5", "1e5", "1.5E-3", "0f3F800000", "0D3ff0000000000000", "017", "0b11U", "0"])
def test_numbers_are_one_token(text: str) -> None:
    assert kinds(text) == [("number", text)]


@pytest.mark.parametrize(("text", "parts"), [("09", ["0", "9"]), ("1.5f", ["1.5", "f"]), ("5u", ["5", "u"])])
def test_what_is_no_number_falls_apart(text: str, parts: list[str]) -> None:
    assert [text for _, text in kinds(text)] == parts


def test_gaps_hold_comments_and_line_markers() -> None:
    text = '# 1 "a.cu"\n/* x */ ret // y\n  #line 2 "b" 1\n;'
    assert [(t.text, t.leading_whitespace) for t in tokenize(text)] == [
        ("ret", '# 1 "a.cu"\n/* x */ '),
        (";", ' // y\n  #line 2 "b" 1\n'),
        ("", ""),
    ]


def test_a_trailing_nul_is_gap() -> None:
    assert tokenize("ret;\n\0")[-1] == Token(TokenKind.END, "", 2, 1, "\n\0")


@pytest.mark.parametrize("end", ["\0", "\n", "\r", " ", "\t"])
def test_nuls_and_what_follows_them_are_gap_up_to_4096_characters(end: str) -> None:
    assert tokenize(f"ret;\0\0{end}")[-1].leading_whitespace == f"\0\0{end}"
    assert tokenize("ret;\0" + 4095 * end)[-1].leading_whitespace == "\0" + 4095 * end
    if end != "\0":
        with pytest.raises(LexError, match="unexpected character"):
            tokenize("ret;\0" + 4096 * end)


@pytest.mark.parametrize("text", ["# a comment\n", "#\n", "# 1\n", '# 1 "a" b\n', "#pragma once\n"])
def test_other_lines_with_a_number_sign_are_no_comments(text: str) -> None:
    with pytest.raises(LexError, match="a comment starts with `//`"):
        tokenize("ret;\n" + text)


@pytest.mark.parametrize("text", ["/* x", '"abc', "a \0 b", "é", "$", "a # b", "`"])
def test_stray_text_is_an_error_at_its_place(text: str) -> None:
    with pytest.raises(LexError) as excinfo:
        tokenize("x\n " + text)
    assert excinfo.value.line == 2
    assert excinfo.value.diagnostics[0].code in ("PTX0004", "PTX0005")
