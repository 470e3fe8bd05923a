"""Each syntax code has an example that breaks it, and one that does not."""

from __future__ import annotations

import pytest

from pyptx.diagnostics import Rule, render
from pyptx.parser import parse
from pyptx.parser.rules import RULES
from tests.messages import assert_message


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_examples(rule: Rule) -> None:
    _, wrong = parse(rule.wrong, recover=True)
    assert rule.code in [finding.code for finding in wrong]
    assert_message("parser", rule.code, render(wrong[:3], rule.wrong))
    parse(rule.right)


def test_codes_are_distinct_and_of_this_layer() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert all(rule.code.startswith("PTX00") for rule in RULES)
