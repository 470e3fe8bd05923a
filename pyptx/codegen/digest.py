"""Hashes of the original that a generated file stores: of its bytes, and of its tokens."""

from __future__ import annotations

import hashlib

from pyptx.ir.directives import LocDirective, Module
from pyptx.ir.nodes import Statement
from pyptx.ir.walk import module_tokens, replace_statements


def of_bytes(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def of_words(module: Module) -> str:
    """Return the hash of a module's tokens, without spacing, comments and `.loc`, which readable files omit."""

    def kept(statement: Statement) -> Statement | None:
        return None if isinstance(statement, LocDirective) else statement

    return of_bytes("\0".join(module_tokens(replace_statements(module, kept))))
