"""The kernels of the corpus: a sample of every producer equals its references, and all have the reviewed findings,
statistics, timelines and outputs, also without a synchronization."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.emitter import emit
from pyptx.ir import Module
from pyptx.parser import parse
from tests.digests import assert_digest
from tests.sim.describing import describe_error, describe_result
from tools.corpus import inputs, manifest
from tools.sim_corpus import list_arguments, module_of, outcome

SAMPLE = 9
"""Every n-th runnable entry; `python -m tools.sim_corpus` runs all."""
_SYNCHRONIZATION = re.compile(
    r"^[ \t]*(?:@\S+\s+)?(?:bar|barrier|fence|membar|mbarrier|griddepcontrol|cp\.async\.\w*\.?(?:wait|commit)|"
    r"wgmma\.(?:fence|wait|commit)|tcgen05\.(?:wait|commit|fence))\b[^;]*;",
    re.MULTILINE,
)
_APPROXIMATION = re.compile(r"\.approx|\btanh\.")
SCHEDULES = ("eager", "lazy", "adversarial", "random")

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
    """Run an entry under a schedule that depends on the name; return its findings, statistics, timeline and outputs."""
    run = entry.run
    assert run is not None
    choice, values = zlib.crc32(name.encode()), inputs.arguments(run)
    try:
        result = sim.run(
            module, entry.name, grid=run.grid, block=run.block, cluster=run.cluster, shared=run.smem,
            cooperative=run.cooperative, args=list_arguments(run, values), check="all", on_hazard="report",
            statistics=True, timeline=True, schedule=SCHEDULES[choice % 4], seed=choice % 3, max_steps=max_steps,
            precision="hardware",
        )  # fmt: skip
    except PtxError as error:
        return describe_error(error)
    return describe_result(result, _list_exact(module, values.values()))


def _list_exact(module: Module, values: Iterable[Any]) -> list[NDArray[Any]]:
    """Return the arrays that have the same bits everywhere: approximations may differ between processors."""
    arrays: list[NDArray[Any]] = [value for value in values if isinstance(value, np.ndarray)]
    is_exact = not _APPROXIMATION.search(emit(module))
    return [array for array in arrays if is_exact or np.issubdtype(array.dtype, np.integer)]


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
