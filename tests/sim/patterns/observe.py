"""Runs a version of a pattern and returns the checker's reports: code, severity and the lines of both places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError, Severity, Span
from pyptx.parser import parse
from tests.sim.patterns.cases import Case
from tests.sim.patterns.planted import WARNINGS, Expected

PLAIN = (("eager", 0), ("lazy", 0))
SEEDED = (*(("adversarial", seed) for seed in range(9)), *(("random", seed) for seed in range(6)))
"""Every order of the adversarial schedule, then random ones: run until a mistake is found."""
LIMIT = 100_000
_OTHER = re.compile(r"the other place: .*? at \S+?:(\d+):\d+")


@dataclass(frozen=True, slots=True)
class Sighting:
    """One finding in the form of the tables."""

    code: str
    severity: Severity
    lines: frozenset[int]


@dataclass(frozen=True, slots=True)
class Run:
    """The reports and messages of one run, and whether its results were right; None if it raised an error."""

    sightings: frozenset[Sighting]
    right: bool | None
    messages: tuple[str, ...] = ()


def _line(origin: Any) -> int:
    return origin.line if isinstance(origin, Span) else 0


def _list_sightings(diagnostics: Iterable[Diagnostic]) -> Iterator[Sighting]:
    for finding in diagnostics:
        other_lines = [int(match[1]) for note in finding.notes if (match := _OTHER.search(note))]
        yield Sighting(finding.code, finding.severity, frozenset({_line(finding.origin), *other_lines} - {0}))


def run(module: Any, case: Case, schedule: str, seed: int) -> Run:
    """Run once and collect findings; raised errors count as findings."""
    launch = case.make(np.random.default_rng(seed))
    try:
        result = sim.run(
            module, grid=case.grid, block=case.block, cluster=case.cluster, args=launch.args,
            schedule=schedule, seed=seed, max_steps=LIMIT, on_hazard="report",
        )  # fmt: skip
    except PtxError as error:
        return Run(frozenset(_list_sightings(error.diagnostics)), None, _describe(error.diagnostics))
    right = all(np.array_equal(output, expected) for output, expected in launch.outputs)
    sightings = set[Sighting]()
    for finding in result.hazards:
        lines = {_line(place.origin) for place in (finding.place, finding.other) if place is not None} - {0}
        sightings.add(Sighting(finding.rule.code, finding.severity, frozenset(lines)))
    return Run(frozenset(sightings), right, _describe([finding.diagnostic() for finding in result.hazards]))


def _describe(diagnostics: Iterable[Diagnostic]) -> tuple[str, ...]:
    """Return each finding's message and what it says of this run, in an order that does not depend on hashes."""
    return tuple(sorted("\n    ".join([str(one), *one.notes[:-1]]) for one in diagnostics))


def over(text: str, case: Case, schedules: Iterable[tuple[str, int]] = PLAIN) -> list[Run]:
    """Run one version under several schedules."""
    module = parse(text)
    return [run(module, case, schedule, seed) for schedule, seed in schedules]


def hunt(text: str, case: Case, expected: Expected) -> list[Run]:
    """Run a version with a mistake under one schedule after the other until the expected reports have occurred; if none
    are expected, under a few."""
    module, runs = parse(text), list[Run]()
    for schedule, seed in (*PLAIN, *SEEDED) if expected.reports else (*PLAIN, *SEEDED[::4]):
        runs.append(run(module, case, schedule, seed))
        if expected.reports and len(runs) >= len(PLAIN) and not _find_missing_codes(expected, _collect_sightings(runs)):
            break
    return runs


def wrong(expected: Expected, runs: Iterable[Run]) -> str:
    """Return what is wrong with the reports of a mistake, or nothing if they have exactly the expected codes."""
    sightings = _collect_sightings(runs)
    codes, expected_codes = (
        {sighting.code for sighting in sightings},
        expected.also | {code for code, _ in expected.reports},
    )
    missing = _find_missing_codes(expected, sightings)
    if missing:
        return f"{sorted(missing)} at other lines" if missing <= codes else f"{sorted(missing - codes)} missed"
    wrong_severity = {
        sighting.code
        for sighting in sightings
        if (sighting.code in WARNINGS) != (sighting.severity is Severity.WARNING)
    }
    if wrong_severity:
        return f"{sorted(wrong_severity)} at another severity"
    if codes ^ expected_codes:
        return f"also {sorted(codes - expected_codes)}, but not {sorted(expected_codes - codes)}"
    return ""


def _collect_sightings(runs: Iterable[Run]) -> set[Sighting]:
    return {sighting for execution in runs for sighting in execution.sightings}


def _find_missing_codes(expected: Expected, sightings: set[Sighting]) -> set[str]:
    """Return the codes that are not reported at the expected lines."""
    return {code for code, lines in expected.reports if not any(_is(sighting, code, lines) for sighting in sightings)}


def _is(sighting: Sighting, code: str, lines: frozenset[int]) -> bool:
    """Return whether a finding is the expected one. A hang may name the barrier's declaration besides the wait."""
    hangs = code in ("PTX0990", "PTX0991")
    return sighting.code == code and (lines <= sighting.lines if hangs else lines == sighting.lines)
