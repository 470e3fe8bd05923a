"""Tests of kernels for their users: `assert_matches` compares a kernel with a reference over shapes and orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyptx.testing.matching import Match, assert_matches

__all__ = ["Match", "assert_matches"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyptx.testing import matching

    return getattr(matching, name)
