"""Splits text into tokens. Total: every text is a sequence of gaps and tokens, or raises a PtxSyntaxError with its
place.

A gap is whitespace, comments and preprocessor lines (`# 1 "a.cu"`). Knows no grammar.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from pyptx.diagnostics import Diagnostic
from pyptx.parser import rules
from pyptx.parser.errors import Failure, PtxSyntaxError
from pyptx.parser.places import make_span

_COMMENT = r"/\*[^*]*+\*++(?:[^/*][^*]*+\*++)*+/"
_LINE_MARK = r'[ \t]*+\#[ \t]*+(?:line)?[ \t]*+\d++[ \t]++"[^"\n]*+"(?:[ \t]++\d++)*+[ \t\r]*+(?=\n|\Z)'
GAP = rf"(?:(?<![^\n]){_LINE_MARK}|[ \t\r\f]++|\n(?:{_LINE_MARK})?|//[^\n]*+|{_COMMENT})*+"
TAIL = rf"(?:[ \t\r\f]*+(?:{_COMMENT}[ \t\r\f]*+)*+(?://[^\n]*+)?(?:\n|\Z))?"
"""The rest of the line after a statement's last token, if it is only a gap."""
NAME = r"(?:[A-Za-z_][\w$]*+|[$%][\w$]++)"
NUMBER = (
    r"(?:0[fF][\da-fA-F]{8}|0[dD][\da-fA-F]{16}|0[xX][\da-fA-F]++U?|0[bB][01]++U?"
    r"|\d{1,400}+\.\d*+(?:[eE][+-]?\d++)?|\.\d++(?:[eE][+-]?\d++)?+(?![\w$]|::)|\d{1,400}+[eE][+-]?\d++"
    r"|0[0-7]{0,99}+U?|[1-9]\d{0,99}+U?)"
)
"""Integers have at most 100 digits: 64 bits need 22, and Python refuses to parse thousands."""
DOTTED = r"\.[\w$]++(?:::[\w$]++)*+(?:(?<=::\d):\d++)?"
PUNCTUATION = r"<<|>>|<=|>=|==|!=|&&|\|\||[-+*%&|^!~?:;,<>=(){}@\[\]]|/(?![*/])"
_NEXT = re.compile(
    rf'({GAP})(?:(?P<NAME>{NAME})|(?P<NUMBER>{NUMBER})|(?P<DOTTED>{DOTTED})|(?P<STRING>"[^"]*+")'
    rf"|(?P<PUNCTUATION>@@DWARF|{PUNCTUATION}))?",
    re.ASCII,
)
next_token = _NEXT.match
tail_at = re.compile(TAIL).match


_PADDING = 4096


class TokenKind(StrEnum):
    """The kinds of token. DOTTED is `.word`: a directive, a modifier or a component."""

    NAME = "name"
    NUMBER = "number"
    DOTTED = "dotted"
    STRING = "string"
    PUNCTUATION = "punctuation"
    END = "end"


class Token(NamedTuple):
    """One token with its 1-based place and the gap before it. The last token of a text is END, with empty text."""

    kind: TokenKind
    text: str
    line: int
    col: int
    leading_whitespace: str = ""


def tokenize(source: str) -> list[Token]:
    """Return the tokens of a text; joining gaps and token texts restores the text."""
    out: list[Token] = []
    offset, line, line_start = 0, 1, 0
    while True:
        match = next_token(source, offset)
        assert match is not None
        gap, start = match[1], match.end(1)
        if "\n" in gap:
            line += gap.count("\n")
            line_start = source.rindex("\n", offset, start) + 1
        kind = match.lastgroup
        if kind is None:
            if start < len(source):
                if start < find_padding(source):
                    raise _convert_to_error(make_stray_failure(source, start), source)
                gap += source[start:]
            out.append(Token(TokenKind.END, "", line, start - line_start + 1, gap))
            return out
        text = match[kind]
        out.append(Token(TokenKind[kind], text, line, start - line_start + 1, gap))
        offset = match.end()
        if "\n" in text:
            line += text.count("\n")
            line_start = source.rindex("\n", start, offset) + 1


def find_padding(source: str) -> int:
    """Return the start of the trailing NULs that some compilers write; they belong to the gap there."""
    if source[-1:] not in ("\0", "\n", "\r", " ", "\t") or "\0" not in source[-_PADDING:]:
        return len(source)
    end = len(source.rstrip("\0 \t\r\n"))
    start = source.find("\0", end)
    return len(source) if start < 0 else start


def make_stray_failure(source: str, start: int) -> Failure:
    """Return the failure for the character at `start`, which does not start a token."""
    character = source[start]
    if source.startswith("/*", start):
        return Failure(rules.UNTERMINATED, start, 2, "this comment is never closed", "close it with `*/`")
    if character == '"':
        return Failure(rules.UNTERMINATED, start, 1, "this string is never closed", 'close it with `"`')
    if character in ".$%":
        return Failure(rules.STRAY, start, 1, f"`{character}` must be followed by a name")
    help = "only ASCII is allowed outside comments and strings" if ord(character) > 126 else None
    if character == "#":
        help = (
            'a comment starts with `//`; `#` is allowed only in a line marker such as `# 1 "file.cu"`, on its own line'
        )
    return Failure(rules.STRAY, start, 1, f"unexpected character {character!r}", help)


def _convert_to_error(failure: Failure, source: str) -> PtxSyntaxError:
    diagnostic: Diagnostic = failure.rule.report(
        make_span(source, failure.start, failure.length), failure.message, help=failure.help
    )
    return PtxSyntaxError(failure.message, diagnostics=(diagnostic,), source=source)
