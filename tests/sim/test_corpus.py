"""A sample of the corpus: kernels of every producer run and equal their references."""

from __future__ import annotations

import pytest

from tools.corpus import manifest
from tools.sim_corpus import outcome

SAMPLE = 9
"""Every so many-th runnable entry; `python -m tools.sim_corpus` runs all."""

_CASES = [
    (made.producer, directory, item, entry)
    for directory in manifest.producers()
    for made in [manifest.load(directory)]
    for item in made.files
    for entry in item.entries
    if entry.run is not None
]


@pytest.mark.parametrize("case", _CASES[::SAMPLE], ids=lambda case: f"{case[0]}-{case[2].path}-{case[3].name}")
def test_entries_equal_their_references(case: tuple[str, object, manifest.File, manifest.Entry]) -> None:
    found = outcome(*case)  # pyright: ignore[reportArgumentType]
    assert found.verdict == "pass", found.why


def test_most_of_the_sample_runs() -> None:
    verdicts = [outcome(*case).verdict for case in _CASES[4::40]]
    assert verdicts.count("pass") >= 0.7 * len(verdicts)
