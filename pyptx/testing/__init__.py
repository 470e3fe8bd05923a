"""Tests of kernels for their users: `assert_matches` compares a kernel with a reference over shapes and orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyptx.lazy_names import defer_imports

if TYPE_CHECKING:
    from pyptx.testing.matching import Match, assert_matches

__all__ = ["Match", "assert_matches"]
__getattr__, __dir__ = defer_imports(__name__, {"matching": "Match assert_matches"})
