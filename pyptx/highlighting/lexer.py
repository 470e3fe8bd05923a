"""The Pygments lexer for PTX: its instructions, directives, types and special registers come from the tables.

Total: anything that is not PTX becomes `Error` tokens, and the tokens cover the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from pygments import token
from pygments.lexer import Lexer

from pyptx.isa import table
from pyptx.isa.directives import find_directive
from pyptx.isa.special import find_constant, find_special_register
from pyptx.parser.lexer import DOTTED, NAME, NUMBER, PUNCTUATION
from pyptx.types import ALL

Kind = token._TokenType  # pyright: ignore[reportPrivateUsage]

_PART = re.compile(
    rf"""(?P<space>\s+) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<mark>^\#[^\n]*) | (?P<string>"[^"]*")
    | (?P<guard>@(?:[ \t]*!)?[ \t]*%?[\w$]+) | (?P<label>{NAME}(?=[ \t]*:(?!:))) | (?P<special>%\w+(?:\.[xyzw]\b)?)
    | (?P<name>{NAME}) | (?P<number>{NUMBER}) | (?P<modifier>(?<=[\w$]){DOTTED}) | (?P<dotted>{DOTTED})
    | (?P<punctuation>{PUNCTUATION}) | (?P<stray>.)""",
    re.ASCII | re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_KINDS = {
    "space": token.Whitespace,
    "comment": token.Comment,
    "mark": token.Comment.Preproc,
    "string": token.String,
    "guard": token.Name.Decorator,
    "label": token.Name.Label,
    "number": token.Number,
    "punctuation": token.Punctuation,
    "stray": token.Error,
}
_TYPES = frozenset(f".{each.name}" for each in ALL)


class PtxLexer(Lexer):
    """PTX as defined by the tables of pyptx. Pygments' own lexer has the alias `ptx`; this one takes precedence for
    file names."""

    name = "NVIDIA PTX"
    aliases = ["nvptx"]  # noqa: RUF012  Pygments reads a list
    filenames = ["*.ptx"]  # noqa: RUF012
    mimetypes = ["text/x-nvptx"]  # noqa: RUF012
    url = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
    priority = 0.6

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Kind, str]]:
        """Yield (index, kind, text) of each part."""
        for part in _PART.finditer(text):
            yield part.start(), _choose_kind(part.lastgroup or "stray", part[0]), part[0]

    @staticmethod
    def analyse_text(text: str) -> float:
        """Return how likely the text is PTX."""
        matches = [re.search(rf"^\s*\.{word}\s", text, re.MULTILINE) for word in ("version", "target")]
        return 0.5 * sum(match is not None for match in matches)


@cache
def _collect_opcodes() -> frozenset[str]:
    return frozenset(table.list_opcodes())


def _choose_kind(group: str, text: str) -> Kind:
    if group == "name":
        if text in _collect_opcodes():
            return token.Keyword
        return token.Name.Constant if find_constant(text) else token.Name
    if group == "special":
        return token.Name.Builtin if find_special_register(text) else token.Name.Variable
    if group in ("modifier", "dotted"):
        if text in _TYPES:
            return token.Keyword.Type
        return token.Keyword.Declaration if group == "dotted" and find_directive(text) else token.Name.Attribute
    return _KINDS[group]
