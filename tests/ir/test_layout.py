"""Layouts are shared, and the table that shares them is bounded."""

from __future__ import annotations

from pyptx.ir import layout
from pyptx.ir.layout import layout_of


def test_equal_gaps_share_one_layout_until_there_are_many() -> None:
    first = layout_of(("// first", "\n"))
    assert layout_of(["// first", "\n"]) is first
    assert layout_of(("x" * 1024, "")) is not layout_of(("x" * 1024, ""))
    for number in range(1 << 14):
        assert layout_of((f"// {number}", "\n")) == (f"// {number}", "\n")
    assert 0 < len(layout._interned) <= 1 << 14  # pyright: ignore[reportPrivateUsage]
    again = layout_of(("// first", "\n"))
    assert again == first
    assert again is not first
