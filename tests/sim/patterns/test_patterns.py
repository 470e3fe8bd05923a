"""Every synchronization pattern as PTX: the right version is clean and right, every planted mistake is reported.

`python -m tools.sim_patterns` runs the same and prints the matrix.
"""

from __future__ import annotations

from collections import Counter

import pytest

from pyptx import toolchain
from tests.messages import assert_message
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.observe import hunt, over, wrong
from tests.sim.patterns.planted import FOLDER, patterns
from tools.sim_patterns import EVERY

NAMES = sorted(CASES)


def test_every_file_has_a_launch() -> None:
    assert NAMES == sorted(path.stem for path in FOLDER.glob("*.ptx")) == sorted(patterns())


def test_every_pattern_assembles() -> None:
    for pattern in patterns().values():
        assert toolchain.assemble(pattern.text).diagnostics == (), pattern.name


def test_mistakes_are_many_and_different() -> None:
    mistakes = [(p.name, m.text) for p in patterns().values() for m in p.mistakes if m.expected.reports]
    assert len(mistakes) >= 120
    assert max(Counter(mistakes).values()) == 1


def test_what_is_not_reported_has_a_reason() -> None:
    assert [
        m for p in patterns().values() for m in p.mistakes if not m.expected.reports and not m.expected.reason
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_right_version_is_clean_and_right(name: str, seed: int) -> None:
    schedules = (*EVERY, ("adversarial", seed % 1000), ("random", seed % 1000))
    runs = over(patterns()[name].text, CASES[name], schedules)
    assert [
        (schedule, execution)
        for schedule, execution in zip(schedules, runs, strict=True)
        if execution.sightings or not execution.right
    ] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_reported_at_its_lines_and_nothing_else_is(name: str) -> None:
    pattern, trouble, messages = patterns()[name], list[tuple[str, ...]](), list[str]()
    for mistake in pattern.mistakes:
        runs = hunt(mistake.text, CASES[name], mistake.expected)
        reports = sorted(
            {
                f"{sighting.code} {pattern.names(sighting.lines)}"
                for execution in runs
                for sighting in execution.sightings
            }
        )
        why = wrong(mistake.expected, runs)
        trouble += [(mistake.name, mistake.change, why, *reports)] if why else []
        messages += [f"{mistake.name}: {mistake.change}", *(f"  {text}" for text in runs[0].messages)]
    assert trouble == []
    assert_message("patterns", name, "\n".join(messages))
