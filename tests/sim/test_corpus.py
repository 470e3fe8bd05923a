"""The kernels of the corpus: a sample of every producer equals its references, and all have the reviewed findings,
statistics and timelines, also without a synchronization."""

from __future__ import annotations

import json
import random
import re
import zlib
from pathlib import Path

import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.ir import Module
from pyptx.parser import parse
from pyptx.sim import Hang
from pyptx.sim.observers.timeline import Stopped, Timeline
from pyptx.sim.observers.timeline.page import make_payload
from tests.digests import assert_digest
from tools.corpus import inputs, manifest
from tools.sim_corpus import list_arguments, module_of, outcome

SAMPLE = 9
"""Every n-th runnable entry; `python -m tools.sim_corpus` runs all."""
_SYNCHRONIZATION = re.compile(
    r"^[ \t]*(?:@\S+\s+)?(?:bar|barrier|fence|membar|mbarrier|griddepcontrol|cp\.async\.\w*\.?(?:wait|commit)|"
    r"wgmma\.(?:fence|wait|commit)|tcgen05\.(?:wait|commit|fence))\b[^;]*;",
    re.MULTILINE,
)
_SCHEDULES = ("eager", "lazy", "adversarial", "random")

Case = tuple[str, Path, manifest.File, manifest.Entry]
CASES: list[Case] = [
    (producer_manifest.producer, directory, item, entry)
    for directory in manifest.producers()
    for producer_manifest in [manifest.load(directory)]
    for item in producer_manifest.files
    for entry in item.entries
    if entry.run is not None
]


def name_of(case: Case) -> str:
    return f"{case[0]}-{case[2].path}-{case[3].name}"


def read(case: Case) -> str:
    return (case[1] / case[2].path).read_bytes().rstrip(b"\0").decode("utf-8", "surrogateescape")


def describe_run(module: Module, entry: manifest.Entry, name: str, max_steps: int) -> str:
    """Run an entry under a schedule that depends on the name; return its findings, statistics and timeline."""
    run = entry.run
    assert run is not None
    choice = zlib.crc32(name.encode())
    try:
        result = sim.run(
            module, entry.name, grid=run.grid, block=run.block, cluster=run.cluster, shared=run.smem,
            cooperative=run.cooperative, args=list_arguments(run, inputs.arguments(run)), check="all",
            on_hazard="report", statistics=True, timeline=True, schedule=_SCHEDULES[choice % 4], seed=choice % 3,
            max_steps=max_steps,
        )  # fmt: skip
    except PtxError as error:
        parts = [str(error)]
        if isinstance(error, Hang):
            parts.append(json.dumps(error.report.as_json()))
        if isinstance(error, Stopped):
            parts.append(describe_timeline(error.timeline))
        return "\n".join(parts)
    statistics, timeline = result.stats.statistics, result.timeline
    assert statistics is not None
    assert timeline is not None
    findings = sorted(
        "\n".join([str(item), *item.notes, json.dumps(finding.as_json())])
        for finding in result.hazards
        for item in [finding.diagnostic()]
    )
    data = json.dumps(statistics.as_json())
    return "\n".join([*findings, str(statistics), data, describe_timeline(timeline)])


def describe_timeline(timeline: Timeline) -> str:
    """Return everything that a timeline, its trace and its page show."""
    page = make_payload(timeline.recorded, timeline.hazards, timeline.marks, timeline.errors)
    return f"{timeline}\n{json.dumps([timeline.perfetto(), page])}"


@pytest.mark.parametrize("case", CASES[::SAMPLE], ids=name_of)
def test_entries_equal_their_references(case: Case) -> None:
    result = outcome(*case)
    assert result.verdict == "pass", result.why


def test_others_do_too(seed: int) -> None:
    outcomes = [outcome(*case) for case in random.Random(seed).sample(CASES, 15)]
    assert [f"{result.file} {result.entry}: {result.why}" for result in outcomes if result.verdict != "pass"] == []


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_findings_statistics_and_timeline(case: Case) -> None:
    _, directory, item, entry = case
    assert_digest(
        "runs", name_of(case), describe_run(module_of(directory / item.path), entry, name_of(case), 3_000_000)
    )


_SYNCHRONIZING = [case for case in CASES if _SYNCHRONIZATION.search(read(case))]


@pytest.mark.parametrize("case", _SYNCHRONIZING, ids=name_of)
def test_findings_without_a_synchronization(case: Case) -> None:
    text = read(case)
    places = list(_SYNCHRONIZATION.finditer(text))
    for place in random.Random(name_of(case)).sample(places, min(2, len(places))):
        name = f"{name_of(case)} without line {text.count(chr(10), 0, place.start()) + 1}"
        module = parse(text[: place.start()] + text[place.end() :])
        assert_digest("removals", name, describe_run(module, case[3], name, 20_000))
