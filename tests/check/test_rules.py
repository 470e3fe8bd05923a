"""Every code that `check` can report has a wrong and a correct example, and `check` agrees with both."""

from __future__ import annotations

import pytest

from pyptx.check import RULES, check
from pyptx.diagnostics import Rule, Severity, render
from pyptx.parser import parse
from pyptx.toolchain import validate
from tests.messages import assert_message


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_wrong_example_is_reported_and_the_right_one_is_clean(rule: Rule) -> None:
    findings = [d for d in check(parse(rule.wrong), unused=True) if d.code == rule.code]
    assert findings, f"{rule.code} is not reported"
    assert all(d.line > 0 for d in findings)
    assert_message("check", rule.code, render(check(parse(rule.wrong), unused=True), rule.wrong))
    assert [d.message for d in check(parse(rule.right)) if d.severity is Severity.ERROR] == []
    assert rule.code not in [d.code for d in check(parse(rule.right), unused=True)]


SILENT_IN_PTXAS = {"PTX0620", "PTX0630"}
"""ptxas reports excess shared memory only when it compiles, and never reports a tensor map without cvta."""


@pytest.mark.parametrize(
    "rule",
    [r for r in RULES if r.severity is Severity.ERROR and r.code not in SILENT_IN_PTXAS],
    ids=lambda rule: rule.code,
)
def test_ptxas_agrees_with_the_examples(rule: Rule) -> None:
    assert validate(rule.wrong), f"ptxas accepts the wrong example of {rule.code}"
    assert not [d for d in validate(rule.right) if d.severity is Severity.ERROR]


def test_codes_are_unique_and_sorted() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
