"""The page's catalog matches rules.py."""

from __future__ import annotations

from pathlib import Path

from pyptx.diagnostics import Severity
from pyptx.sim.rules import REMEDIES, RULES

PAGE = Path(__file__).parents[2] / "docs" / "hazards.md"


def test_the_page_lists_every_rule() -> None:
    rows = [
        line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| PTX09") and line.count("|") == 5
    ]
    assert rows == [
        f"| {rule.code} | {'E' if rule.severity is Severity.ERROR else 'W'} | {rule.title} | {REMEDIES[rule.code]} |"
        for rule in RULES
    ]
