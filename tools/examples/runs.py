"""The orders in which the example kernels run, with which checks, and the findings that a run may have."""

from __future__ import annotations

from collections.abc import Sequence

from examples.parts.example import Run
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.checks.choice import CLASSES, OPTIONAL

SEEDS = range(5)
ORDERS = [("eager", 0), ("lazy", 0), *((word, seed) for word in ("random", "adversarial") for seed in SEEDS)]
"""Schedules and seeds."""
VALUES = "numerics"
"""The class that checks values. It makes matrix products complete at issue, as they do in the eager order anyway, so in
other orders it would hide mistakes."""
SPECIAL = ("PTX0992", "PTX0993")
"""Findings of runs with NaN and infinities: where the first ones are produced."""


def choose_checks(schedule: str) -> tuple[str, ...]:
    """Return all classes of checks for a schedule, except `VALUES` where it would change the order."""
    return ("all", *sorted(OPTIONAL if schedule == "eager" else OPTIONAL - {VALUES}))


def list_surprises(run: Run, schedule: str, findings: Sequence[Finding]) -> list[str]:
    """Return the findings that a run does not declare, and the codes that it declares and does not have."""
    allowed, codes = {*run.findings, *(SPECIAL if run.special else ())}, {finding.rule.code for finding in findings}
    needed = [code for code in run.findings if schedule == "eager" or int(code[3:]) not in CLASSES[VALUES]]
    return [
        *(str(finding) for finding in findings if finding.rule.code not in allowed),
        *(f"{code} is declared but not found: {run.findings[code]}" for code in needed if code not in codes),
    ]
