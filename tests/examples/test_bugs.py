"""The gallery of bugs: each is reported with its code, at a line of its kernel, and the fixed version is clean."""

from __future__ import annotations

import numpy as np
import pytest

from examples.parts.bug import BUGS, load_bugs
from pyptx.sim.observers.checks.choice import CLASSES

BUGS_BY_CLASS = load_bugs()


def test_every_class_of_hazards_has_a_bug() -> None:
    assert set(BUGS_BY_CLASS) == set(CLASSES)
    assert [name for name, bug in BUGS_BY_CLASS.items() if int(bug.code[3:]) not in CLASSES[name]] == []


@pytest.mark.parametrize("name", BUGS_BY_CLASS)
def test_a_bug_is_reported_at_its_line_and_its_fix_is_clean(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    bug = BUGS_BY_CLASS[name]
    bug.show()
    report = capsys.readouterr().out
    assert f"{name}.py:" in report
    assert f"[{bug.code}]: " in report
    assert report.splitlines()[-1] == "with fixed=True: 0 findings"


def test_bugs_are_short() -> None:
    assert max(len(path.read_text("utf-8").splitlines()) for path in BUGS.glob("*.py")) <= 50


def test_the_fix_of_the_race_reverses() -> None:
    (result,) = [BUGS_BY_CLASS["races"].run(fixed=True).outputs["y"]]
    assert np.array_equal(result, np.arange(64, dtype=np.float32)[::-1])
