"""Operations that CTAs issue alike are judged at once where nothing is wrong, and one after the other otherwise: both
ways find the same."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.hazards.tiles import Tiles
from tests.sim.patterns.cases import CASES, Case
from tests.sim.patterns.planted import patterns

NAMES = (
    "tma_ring", "tma_store", "multicast", "overwrite", "issuer_fence", "tensormap", "stmatrix", "cp_async_wgmma",
    "wgmma_ring", "wgmma_shared", "wgmma_registers", "tcgen05_mma", "tcgen05_st", "tcgen05_cp", "tcgen05_relaxed",
)  # fmt: skip
SAMPLE = 3
CTAS = 4


def run_grid(text: str, case: Case, schedule: str) -> list[str]:
    """Return all findings in a grid several times as large, in which all CTAs have the same output."""
    launch = case.make(np.random.default_rng(0))
    try:
        result = sim.run(
            parse(text), grid=case.grid * CTAS, block=case.block, cluster=case.cluster, args=launch.args,
            schedule=schedule, max_steps=100_000, on_hazard="report",
        )  # fmt: skip
    except PtxError as error:
        return [str(error)]
    return sorted(json.dumps(finding.as_json()) for finding in result.hazards)


def never(*arguments: Any) -> None:
    """Disable judging at once."""


@pytest.mark.parametrize("name", NAMES)
def test_both_ways_find_the_same(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = patterns()[name]
    sample = random.Random(seed).sample(pattern.mistakes, min(SAMPLE, len(pattern.mistakes)))
    versions = [
        (text, schedule) for text in (pattern.text, *(m.text for m in sample)) for schedule in ("eager", "lazy")
    ]
    batch = [run_grid(text, CASES[name], schedule) for text, schedule in versions]
    monkeypatch.setattr(Tiles, "compare", never)
    alone = [run_grid(text, CASES[name], schedule) for text, schedule in versions]
    assert batch == alone


def test_what_is_right_is_judged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = set[bool]()
    whole = Tiles.compare

    def watch(tiles: Tiles, *arguments: Any) -> Any:
        verdict = whole(tiles, *arguments)
        outcomes.add(verdict is not None)
        return verdict

    monkeypatch.setattr(Tiles, "compare", watch)
    for name in ("tma_ring", "wgmma_ring", "tcgen05_mma"):
        outcomes.clear()
        run_grid(patterns()[name].text, CASES[name], "eager")
        assert outcomes == {True}, name


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_a_product_of_a_tile_with_a_part_of_it_reads_all_bytes_of_the_tile(schedule: str) -> None:
    text = patterns()["tcgen05_mma"].text
    text = text.replace("add.u64 %b, %a, 256;", "mov.b64 %b, %a;").replace("4608", "4096")
    assert run_grid(text, CASES["tcgen05_mma"], schedule) == []


def test_a_product_that_an_odd_lane_issues_is_that_lanes() -> None:
    pattern = patterns()["tcgen05_mma"]
    text = next(mistake.text for mistake in pattern.mistakes if mistake.name == "reader_waits")
    findings = [
        json.loads(line)
        for line in run_grid(text.replace("%issues, %t, 128", "%issues, %t, 129"), CASES["tcgen05_mma"], "eager")
    ]
    products = [item["other"]["agent"] for item in findings if item["code"] == "PTX0935"]
    assert products == [{"cta": 0, "warp": 4, "lane": 1, "engine": "tcgen05"}]
