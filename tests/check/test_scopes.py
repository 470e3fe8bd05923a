"""BEGIN and END in comments pair across blocks."""

from __future__ import annotations

import pytest

from pyptx.check import check
from pyptx.parser import parse

FRAME = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{\n{}\nret;\n}}\n"


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("// BEGIN a\n{\n// END a\n}", []),
        ("{\n// BEGIN a\n}\n// END a", []),
        ("{\n{\n// BEGIN a\nbar.sync 0;\n// END a\n}\n}", []),
        ("{\n{\n// BEGIN a\nbar.sync 0;\n}\n}", [8]),
        ("{\nbar.sync 0;\n// END a\n}", [5]),
        ("// BEGIN a\n// BEGIN b\nbar.sync 0;\n// END a\n// END b\nbar.sync 0;", [7, 10]),
    ],
)
def test_marks_pair_across_blocks(body: str, lines: list[int]) -> None:
    findings = [(finding.code, finding.line) for finding in check(parse(FRAME.format(body)))]
    assert sorted(findings) == [("PTX0640", line) for line in lines]
