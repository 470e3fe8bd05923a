"""The table of steps in examples/README.md: its figures are those of the account, or stand in the files.

`python -m tools.examples.ladder` stores the figures anew, and then `python -m tools.generate` writes the page.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from tools.examples import ladder
from tools.examples.figures import Figures, Subject, measure_figures, read_figures
from tools.examples.ladder import FIELD, ROWS, Row, list_steps, list_subjects
from tools.examples.times import identify_example, list_rates

_NUMBER = re.compile(r"(?<![\w,.])\d[\d,]*\d|(?<![\w,.])\d")
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.title)


def list_numbers(text: str) -> set[str]:
    """Return the numbers of a text without commas."""
    return {number.replace(",", "") for number in _NUMBER.findall(text)}


def test_stored_figures_are_those_of_the_table_and_of_the_code() -> None:
    stored = {name: (figures.code, set(figures.values)) for name, figures in read_figures().items()}
    assert stored == {str(step): (identify_example(step.name), names) for step, names in list_subjects().items()}


def test_stored_figures_are_those_of_the_account(seed: int) -> None:
    """Of two examples in each run."""
    for step in random.Random(f"{seed} ladder").sample(list(list_subjects()), 2):
        stored, measured = read_figures()[str(step)].values, measure_figures(step)
        assert stored == {name: measured[name] for name in stored}, step


@each_row
def test_other_numbers_of_a_step_stand_in_its_files(row: Row) -> None:
    texts = [subject.load_example().module.__doc__ or "" for subject in (row.before, row.after)]
    shapes = [str(subject.load_example().large.values()) for subject in (row.before, row.after)]
    known = list_numbers(" ".join([*texts, *shapes]))
    assert list_numbers(FIELD.sub("", f"{row.limit} {row.change}")) <= known


@each_row
def test_a_step_that_was_measured_to_be_slower_has_a_doubt(row: Row) -> None:
    assert row.doubt or all(rate >= before for before, rate, _ in row.list_measured())


def test_tma_takes_more_from_l2_than_the_doubt_about_clusters_says() -> None:
    rates, ring = list_rates("hopper/tma_ring"), read_figures()["hopper/tma_ring sm_90a"].values
    timed = [rate for place, rate in rates.items() if place.endswith("H200")]
    assert all(rate * 1e12 / ring["intensity"] / (132 * 1980e6) > 35 for rate in timed)


def test_a_table_shows_figures_and_rates_and_what_they_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = Subject("a", "sm_80"), Subject("b", "sm_80", 8)
    row = Row("B 02", before, after, "{before[x]:.1f} of {after[x]:,.0f}", "1", doubt="It waits.")
    monkeypatch.setattr(ladder, "read_figures", lambda: {
        "a sm_80": Figures("", {"x": 1.26}), "b sm_80 8³": Figures("", {"x": 1000.0}),
    })  # fmt: skip
    rates = {"a": {"GB/s at n 1 on G": 9.0, "GB/s at n 2 on G": 1.0}, "b": {"GB/s at n 1 on G": 8.0}}
    monkeypatch.setattr(ladder, "list_rates", rates.__getitem__)
    monkeypatch.setattr(ladder, "ROWS", (row, replace(row, is_other=True, title="B 03")))
    assert list_steps().splitlines()[2:] == [
        "| B 02 | 1.3 of 1,000 | 1 | 9 → 8 GB/s at n 1 on G |",
        "| B 03 | 1.3 of 1,000 | 1 |  |",
        "",
        "Slower than the step before: B 02, 8 instead of 9 GB/s at n 1 on G. It waits.",
    ]
