"""Parses PTX text into nodes; errors give the place, what was expected and how to fix it. Names are loaded on first
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.parser.errors import LexError, ParseError, PtxSyntaxError
    from pyptx.parser.lexer import Token, TokenKind, tokenize
    from pyptx.parser.parser import parse
    from pyptx.parser.rules import RULES

__all__ = ["RULES", "LexError", "ParseError", "PtxSyntaxError", "Token", "TokenKind", "parse", "tokenize"]

_NAMES_OF = {
    "errors": "LexError ParseError PtxSyntaxError",
    "lexer": "Token TokenKind tokenize",
    "parser": "parse",
    "rules": "RULES",
}
__getattr__, __dir__ = defer_imports(__name__, _NAMES_OF)
