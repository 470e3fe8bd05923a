"""Every launch of the corpus passes exactly the bytes that its entry's parameters declare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.corpus import stats
from tools.corpus.manifest import File
from tools.corpus.python_producers.signatures import mismatches, parameters

FILES = list(stats.files())


@pytest.mark.parametrize(("path", "item"), FILES, ids=lambda value: value.name if isinstance(value, Path) else "")
def test_arguments_fill_the_parameters(path: Path, item: File) -> None:
    assert list(mismatches(path.read_bytes(), item.entries)) == []


def test_a_missing_argument_is_noticed() -> None:
    path, item = next((path, item) for path, item in FILES if item.entries and item.entries[0].run is not None)
    entry = item.entries[0]
    assert entry.run is not None
    shorter = replace(entry, run=replace(entry.run, arguments=entry.run.arguments[:-1]))
    assert len(list(mismatches(path.read_bytes(), (shorter,)))) == 1


def test_sizes_of_parameters() -> None:
    text = (
        ".visible .entry k(\n\t.param .u64 .ptr .align 16 a,\n.param .align 4 .b8 b[12],\n\t.param .f16 c\n)\n{ ret; }"
    )
    assert parameters(text, "k") == [8, 12, 2]
    assert parameters(".entry none()\n{ ret; }", "none") == []
