"""Reads tokens one by one and collects the words and gaps of the current statement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from pyptx.ir.kinds import Number
from pyptx.ir.layout import Layout, layout_of
from pyptx.ir.operands import number_value
from pyptx.parser import rules
from pyptx.parser.errors import Failure
from pyptx.parser.lexer import find_padding, make_stray_failure, next_token, tail_at


class Cursor:
    """A position in the text with one token of look-ahead: `kind` and `token` describe the next token, END at the
    end."""

    __slots__ = ("end", "gap", "gaps", "kind", "padding", "start", "taken_end", "text", "token")

    def __init__(self, text: str, offset: int = 0) -> None:
        self.text = text
        self.padding = find_padding(text)
        self.jump(offset)

    def jump(self, offset: int) -> None:
        """Move to an offset and start a statement there."""
        self.gaps: list[str] = []
        self.taken_end = offset
        self._look_at(offset)

    def _look_at(self, offset: int) -> None:
        match = next_token(self.text, offset)
        assert match is not None
        self.gap = match[1]
        self.start = match.end(1)
        kind = match.lastgroup
        if kind is None:
            if self.start >= self.padding:
                self.gap += self.text[self.start :]
                self.start = len(self.text)
            self.kind, self.token, self.end = ("END" if self.start == len(self.text) else "STRAY"), "", self.start
        else:
            self.kind, self.token, self.end = kind, match[kind], match.end()

    def skip_to(self, offset: int) -> None:
        """Move to an offset; the caller has recorded the gaps of the tokens up to it."""
        self.taken_end = offset
        self._look_at(offset)

    def take(self) -> str:
        """Take the next token into the statement."""
        token = self.token
        self.gaps.append(self.gap)
        self.taken_end = self.end
        self._look_at(self.end)
        return token

    def accept(self, token: str) -> bool:
        """Take the next token if it matches."""
        if self.token != token:
            return False
        self.take()
        return True

    def expect(self, token: str, position: str) -> None:
        """Take this token, or fail with its name."""
        if self.token == token and self.kind != "STRING":
            self.take()
        elif token == ";":
            self.fail_without_semicolon(position)
        else:
            self.fail(f"`{token}` {position}")

    def fail_without_semicolon(self, position: str, also: str = "") -> NoReturn:
        """Fail for an unterminated statement: if the next token is on a new line, the `;` is missing."""
        if self.kind != "STRAY" and ("\n" in self.gap or self.kind == "END" or self.token in ("}", "@")):
            follower = "the end of the file" if self.kind == "END" else f"`{shorten(self.token)}`"
            message = f"expected `;` {position}, found {follower}"
            raise Failure(rules.SEMICOLON, self.taken_end, 1, message, "end the statement with `;`")
        self.fail(f"{also}`;` {position}")

    def take_name(self, description: str) -> str:
        """Take a name, or fail with a description of it."""
        if self.kind != "NAME" or self.token == "_":
            self.fail(description)
        return self.take()

    def take_number(self, description: str) -> int:
        """Take an integer, keeping any spelling other than plain decimal."""
        token = self.token
        value = number_value(token) if self.kind == "NUMBER" or token == "WARP_SZ" else None
        if not isinstance(value, int):
            self.fail(description)
        self.take()
        return value if token == int.__repr__(value) else Number(value, token)

    def take_string(self, description: str) -> str:
        """Take a string and return it without quotes."""
        if self.kind != "STRING":
            self.fail(description)
        return self.take()[1:-1]

    def finish(self) -> Layout:
        """End the statement after the last token taken: the rest of its line belongs to it."""
        tail = tail_at(self.text, self.taken_end)
        assert tail is not None
        gaps, self.gaps = [*self.gaps, tail[0]], []
        if tail[0]:
            self.skip_to(tail.end())
        return layout_of(gaps)

    def fail(self, expectation: str, help: str | None = None) -> NoReturn:
        """Fail at the next token."""
        if self.kind == "STRAY":
            raise make_stray_failure(self.text, self.start)
        if self.kind == "END":
            raise Failure(
                rules.UNEXPECTED, self.taken_end, 1, f"expected {expectation}, found the end of the file", help
            )
        previous = self.text[self.taken_end - 1 : self.taken_end]
        continues_word = (
            previous and not self.gap and self.kind in ("NAME", "NUMBER") and (previous.isalnum() or previous in "._$")
        )
        if continues_word:
            begin = self.taken_end - 1
            while begin and (self.text[begin - 1].isalnum() or self.text[begin - 1] in "._$"):
                begin -= 1
            if self.text[begin].isdigit() or self.text[begin] == ".":
                word = self.text[begin : self.end]
                raise Failure(rules.NUMBER, begin, len(word), f"`{shorten(word)}` is not a valid number", _NUMBER_HELP)
        message = f"expected {expectation}, found `{shorten(self.token)}`"
        raise Failure(rules.UNEXPECTED, self.start, len(self.token), message, help)


_NUMBER_HELP = "write 12, 0x1F, 017, 0b11 (with `U` for unsigned), 1.5, 1e-3, 0f3F800000 or 0d3FF0000000000000"


def suggest_nearest(word: str, candidates: Iterable[str]) -> str | None:
    """Return the suggestion of the most similar known word, if any."""
    if not 2 < len(word) < 40:
        return None
    from difflib import get_close_matches

    near = get_close_matches(word, list(candidates), n=1)
    return f"did you mean `{near[0]}`?" if near else None


def shorten(text: str) -> str:
    """Return a token, shortened for a message."""
    first = text.partition("\n")[0]
    return first if len(first) <= 40 else f"{first[:37]}…"
