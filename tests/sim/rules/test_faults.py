"""The examples of the simulator's codes: the wrong one is reported, the correct one runs."""

from __future__ import annotations

import pytest

from pyptx import sim
from pyptx.diagnostics import Rule, Severity
from pyptx.parser import parse
from pyptx.sim import hazards
from tests.messages import assert_message
from tests.sim.kernels import assert_reported

STEPS = 200_000


@pytest.mark.parametrize("rule", [r for r in (*sim.RULES, *hazards.RULES) if r.wrong], ids=lambda rule: rule.code)
def test_examples(rule: Rule) -> None:
    check = "strict,numerics" if rule.severity is Severity.WARNING else "all"
    error = assert_reported(rule.wrong, rule.code, block=32, max_steps=STEPS, check=check)
    assert_message("sim", rule.code, str(error))
    sim.run(parse(rule.right), block=32, max_steps=STEPS, check=check)


def test_codes_are_distinct() -> None:
    codes = [rule.code for rule in sim.RULES]
    assert len(codes) == len(set(codes))
