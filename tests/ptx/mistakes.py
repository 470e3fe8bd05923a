"""A helper for mistakes in wrapper calls: the error is at the line of the call, with a remedy."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from typing import Any

from pyptx import PtxError
from tests.dsl.tracing import make_kernel, text_of
from tests.messages import raises


def assert_mistake(body: Callable[[], Any], rule: str, words: str, **options: Any) -> None:
    """Fail unless tracing the body raises this code with these words and a help, at the line that called the
    wrapper."""

    def wrong() -> None:
        body()

    with raises(PtxError) as excinfo:
        make_kernel(wrong, **options).ptx()
    finding = excinfo.value.diagnostics[0]
    assert finding.code == rule, excinfo.value
    assert words in text_of(excinfo.value), excinfo.value
    # The checks of the table state the remedy in the message itself.
    assert finding.help or not finding.code.startswith("PTX08"), f"no remedy: {excinfo.value}"
    assert finding.origin is not None, excinfo.value
    assert "tests/ptx" in str(finding.origin.file), excinfo.value
    place = linecache.getline(str(finding.origin.file), finding.line or 0)
    assert re.search(r"\b(ptx|smem|T)\.", place), f"{place} {excinfo.value}"
