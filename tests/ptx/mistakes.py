"""A mistake in calling a wrapper: traced, refused at the line of the call, with a remedy."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

import pytest

from pyptx import PtxError
from tests.dsl.tracing import text_of, traced


def mistaken(body: Callable[[], Any], rule: str, words: str, **options: Any) -> None:
    """Fail unless tracing the body raises this code with these words, a help, and the line that called the wrapper."""

    def wrong() -> None:
        body()

    with pytest.raises(PtxError) as caught:
        traced(wrong, **options).ptx()
    found = caught.value.diagnostics[0]
    assert found.code == rule, caught.value
    assert words in text_of(caught.value), caught.value
    # The checks of the table say what fits in the message itself.
    assert found.help or not found.code.startswith("PTX08"), f"no remedy: {caught.value}"
    assert found.origin is not None, caught.value
    assert "tests/ptx" in str(found.origin.file), caught.value
    place = linecache.getline(str(found.origin.file), found.line or 0)
    assert re.search(r"\b(ptx|smem|T)\.", place), f"{place} {caught.value}"
