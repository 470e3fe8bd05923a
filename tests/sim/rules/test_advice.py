"""What the advice about a hang says, at the limits of what it depends on."""

from __future__ import annotations

import pytest

from pyptx.sim.rules.advice import PHASES, advise_cycle, advise_phase, describe_absent, describe_phase

LESS = (
    "`expect_tx` expects 64 bytes and 63 arrived: lower it, or let the missing copy signal this mbarrier; "
    "out-of-bounds parts of a TMA box still count"
)
MORE = (
    "let `expect_tx` expect the 65 bytes that arrived instead of 64, or let the copy that delivered too many signal "
    "another mbarrier"
)


@pytest.mark.parametrize(
    ("pending", "tx", "text"),
    [
        (2, 1, LESS), (2, -1, MORE), (2, 0, PHASES), (0, 0, PHASES),
        (1, 0, "`mbarrier.init` counts 2 arrivals, of which 1 occurred: correct the count, or let the other 1 arrive"),
    ],
)  # fmt: skip
def test_the_advice_about_a_phase_names_what_it_lacks(pending: int, tx: int, text: str) -> None:
    assert advise_phase(pending, 2, tx, 64) == text


@pytest.mark.parametrize(
    ("phase", "pending", "tx", "text"),
    [
        (0, 2, 0, "2 of 2 arrivals missing"),
        (1, 2, 0, "2 of 2 arrivals missing, phase 0 completed; phase 1 has not begun"),
        (1, 1, 0, "1 of 2 arrivals missing"), (1, 2, 1, "2 of 2 arrivals missing, 63 bytes arrived, 64 expected"),
        (1, 0, -1, "65 bytes arrived, 64 expected"), (1, 0, 0, "complete"),
    ],
)  # fmt: skip
def test_the_description_of_a_phase_lists_what_it_lacks(phase: int, pending: int, tx: int, text: str) -> None:
    assert describe_phase(phase, pending, 2, tx, 64) == text


def test_only_waits_of_one_kind_have_advice_about_their_cycle() -> None:
    assert advise_cycle({"mbarrier"}).startswith("let one of these waits pass first")
    assert advise_cycle({"bar"}).startswith("let all warps reach these barriers in one order")
    assert advise_cycle({"bar", "mbarrier"}) == advise_cycle(()) == ""


def test_one_absent_thread_has_not_arrived() -> None:
    assert [describe_absent("thread", count) for count in (1, 2)] == [
        "1 thread has not arrived", "2 threads have not arrived"
    ]  # fmt: skip
