"""Hashes of the original that a generated file stores: of its bytes, and of its tokens."""

from __future__ import annotations

import hashlib

from pyptx.ir.directives import LocDirective, Module
from pyptx.ir.nodes import Statement
from pyptx.ir.walk import module_tokens, replace_statements


def hash_text(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_tokens(module: Module) -> str:
    """Return the hash of a module's tokens, without spacing, comments and `.loc`, which readable files omit."""

    def drop_location(statement: Statement) -> Statement | None:
        return None if isinstance(statement, LocDirective) else statement

    return hash_text("\0".join(module_tokens(replace_statements(module, drop_location))))
