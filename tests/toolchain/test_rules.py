"""Every PTX07xx code is reported for its wrong example and not for its correct one."""

from __future__ import annotations

import pytest

from pyptx.diagnostics import Diagnostic, PtxError, Rule
from pyptx.toolchain import assemble
from pyptx.toolchain.rules import RULES


def _findings(example: str) -> tuple[Diagnostic, ...]:
    try:
        if example.startswith(".version"):
            return assemble(example).diagnostics
        exec(compile(example, "<example>", "exec"), {})
    except PtxError as error:
        return error.diagnostics
    return ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_examples_do_what_the_rule_says(rule: Rule) -> None:
    findings = _findings(rule.wrong)
    assert [(d.code, d.severity) for d in findings] == [(rule.code, rule.severity)] * len(findings)
    assert findings
    assert _findings(rule.right) == ()


def test_codes_are_of_the_toolchain_and_different() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert all(code.startswith("PTX07") for code in codes)
