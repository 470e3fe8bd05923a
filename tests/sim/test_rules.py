"""The examples of the simulator's codes: the wrong one is reported, the right one runs."""

from __future__ import annotations

import pytest

from pyptx import sim
from pyptx.diagnostics import Rule
from pyptx.parser import parse
from tests.sim.kernels import reported


@pytest.mark.parametrize("rule", [r for r in sim.RULES if r.wrong], ids=lambda rule: rule.code)
def test_examples(rule: Rule) -> None:
    reported(rule.wrong, rule.code, block=32, max_steps=1000)
    sim.run(parse(rule.right), block=32, max_steps=1000)


def test_codes_are_distinct() -> None:
    codes = [rule.code for rule in sim.RULES]
    assert len(codes) == len(set(codes))
