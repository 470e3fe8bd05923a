"""Threads out of step at the barrier of their cluster: waits without an arrive, two arrives without a wait between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Span
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from tests.sim.kernels import kernel

START = "mov.u32 %r1, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %t, 5;\n"
ARRIVE, WAIT = "barrier.cluster.arrive;", "barrier.cluster.wait;"
HERE, THERE = " //@\n", " //&\n"
WRONG = {
    "a thread never arrived": f"@!%p2 {ARRIVE}\n{WAIT}{HERE}",
    "nobody arrived": f"{WAIT}{HERE}",
    "a thread does not arrive in the second round": f"{ARRIVE}\n{WAIT}{THERE}@!%p2 {ARRIVE}\n{WAIT}{HERE}",
    "a CTA waits twice": f"{ARRIVE}\n{WAIT}{THERE}@%p1 {WAIT}{HERE}@!%p1 {ARRIVE}\n@!%p1 {WAIT}\n",
    "a thread arrives twice": f"{ARRIVE}{THERE}@%p2 {ARRIVE}{HERE}{WAIT}\n",
    "a CTA arrives twice": f"{ARRIVE}{THERE}@%p1 {ARRIVE}{HERE}{WAIT}\n@!%p1 {ARRIVE}\n",
    "relaxed, twice": f"barrier.cluster.arrive.relaxed;{THERE}@%p2 {ARRIVE}{HERE}{WAIT}\n",
}
RIGHT = {
    "two rounds": f"{ARRIVE}\n{WAIT}\n{ARRIVE}\n{WAIT}",
    "in other instructions": f"@%p2 {ARRIVE}\n@!%p2 {ARRIVE}\n@%p1 {WAIT}\n@!%p1 {WAIT}",
    "threads that have ended": f"@%p2 ret;\n{ARRIVE}\n{WAIT}",
}


def run_kernel(body: str, schedule: str, seed: int) -> tuple[list[str], list[Finding]]:
    """Return the lines of a kernel of two clusters of two CTAs, and its findings."""
    text = kernel(START + body)
    launch: dict[str, Any] = {"grid": 4, "cluster": 2, "block": 64, "args": [np.zeros(64, np.uint32)]}
    result = sim.run(parse(text), **launch, schedule=schedule, seed=seed, on_hazard="report")
    return text.splitlines(), result.hazards


def line_of(place: object) -> int | None:
    return place.line if isinstance(place, Span) else None


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("random", 1), ("adversarial", 0), ("adversarial", 1)])
@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_who_is_out_of_step_is_reported(body: str, schedule: str, seed: int) -> None:
    lines, findings = run_kernel(body, schedule, seed)
    first_line, second_line = (
        next((n for n, line in enumerate(lines, 1) if mark in line), None) for mark in ("//@", "//&")
    )
    assert {finding.rule.code for finding in findings} == {"PTX0973"}
    places = [(line_of(finding.place.origin), finding.other and line_of(finding.other.origin)) for finding in findings]
    assert (first_line, second_line) in places


@pytest.mark.parametrize(("schedule", "seed"), [("eager", 0), ("random", 1), ("adversarial", 0), ("adversarial", 1)])
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_who_is_in_step_is_not(body: str, schedule: str, seed: int) -> None:
    assert run_kernel(body, schedule, seed)[1] == []
