"""Parses PTX text into nodes; errors give the place, what was expected and how to fix it. Names are loaded on first
use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.parser.errors import PtxSyntaxError
    from pyptx.parser.errors import PtxSyntaxError as LexError
    from pyptx.parser.errors import PtxSyntaxError as ParseError
    from pyptx.parser.lexer import Token, TokenKind, tokenize
    from pyptx.parser.parser import parse
    from pyptx.parser.rules import RULES

__all__ = ["RULES", "LexError", "ParseError", "PtxSyntaxError", "Token", "TokenKind", "parse", "tokenize"]

_MODULE_OF = {"parse": "parser", "tokenize": "lexer", "Token": "lexer", "TokenKind": "lexer", "RULES": "rules"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f"{__name__}.{_MODULE_OF.get(name, 'errors')}")
    value = module.PtxSyntaxError if name in ("ParseError", "LexError") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
