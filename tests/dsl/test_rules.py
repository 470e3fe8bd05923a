"""Every rule of the Python front end is reported for its wrong example and not for its correct one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pyptx import PtxError, kernel, types
from pyptx.diagnostics import Diagnostic, Rule, render
from pyptx.dsl.rules import RULES
from tests.messages import assert_message

_HEAD = "from pyptx import ptx, reg, smem\nfrom pyptx.types import *\ndef body():\n    pass\n"


def _findings(text: str) -> Sequence[Diagnostic]:
    """Return the findings when a kernel with this body is traced and checked."""
    scope: dict[str, object] = {**vars(types)}
    exec(_HEAD + "".join(f"    {line}\n" for line in text.splitlines()), scope)
    try:
        return kernel(scope["body"]).check()  # type: ignore[arg-type]
    except PtxError as error:
        return error.diagnostics


@pytest.mark.parametrize("rule", [r for r in RULES if r.wrong], ids=lambda rule: rule.code)
def test_the_wrong_example_is_reported(rule: Rule) -> None:
    found = _findings(rule.wrong)
    assert rule.code in [d.code for d in found]
    assert_message("dsl", rule.code, render(found))


@pytest.mark.parametrize("rule", [r for r in RULES if r.right], ids=lambda rule: rule.code)
def test_the_right_example_is_not(rule: Rule) -> None:
    assert rule.code not in [d.code for d in _findings(rule.right)]


def test_codes_are_in_order_and_unique() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert all(code.startswith("PTX08") for code in codes)
