"""Every rule of the Python front end is reported for its wrong example and not for its right one."""

from __future__ import annotations

import pytest

from pyptx import PtxError, kernel, types
from pyptx.diagnostics import Rule
from pyptx.dsl.rules import RULES

_HEAD = "from pyptx import ptx, reg, smem\nfrom pyptx.types import *\ndef body():\n    pass\n"


def _codes(text: str) -> set[str]:
    """Return the codes that tracing and checking a kernel with this body gives."""
    scope: dict[str, object] = {**vars(types)}
    exec(_HEAD + "".join(f"    {line}\n" for line in text.splitlines()), scope)
    try:
        return {d.code for d in kernel(scope["body"]).check()}  # type: ignore[arg-type]
    except PtxError as error:
        return {d.code for d in error.diagnostics}


@pytest.mark.parametrize("rule", [r for r in RULES if r.wrong], ids=lambda rule: rule.code)
def test_the_wrong_example_is_reported(rule: Rule) -> None:
    assert rule.code in _codes(rule.wrong)


@pytest.mark.parametrize("rule", [r for r in RULES if r.right], ids=lambda rule: rule.code)
def test_the_right_example_is_not(rule: Rule) -> None:
    assert rule.code not in _codes(rule.right)


def test_codes_are_in_order_and_unique() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert all(code.startswith("PTX08") for code in codes)
