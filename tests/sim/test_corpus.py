"""A sample of the corpus: kernels of every producer run and equal their references."""

from __future__ import annotations

import random

import pytest

from tools.corpus import manifest
from tools.sim_corpus import outcome

SAMPLE = 9
"""Every n-th runnable entry; `python -m tools.sim_corpus` runs all."""

_CASES = [
    (producer_manifest.producer, directory, item, entry)
    for directory in manifest.producers()
    for producer_manifest in [manifest.load(directory)]
    for item in producer_manifest.files
    for entry in item.entries
    if entry.run is not None
]


@pytest.mark.parametrize("case", _CASES[::SAMPLE], ids=lambda case: f"{case[0]}-{case[2].path}-{case[3].name}")
def test_entries_equal_their_references(case: tuple[str, object, manifest.File, manifest.Entry]) -> None:
    result = outcome(*case)  # pyright: ignore[reportArgumentType]
    assert result.verdict == "pass", result.why


def test_others_do_too(seed: int) -> None:
    outcomes = [outcome(*case) for case in random.Random(seed).sample(_CASES, 15)]
    assert [f"{result.file} {result.entry}: {result.why}" for result in outcomes if result.verdict != "pass"] == []
