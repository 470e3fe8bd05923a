"""Which ranges of a body are entered only at their first statement, against a search."""

from __future__ import annotations

import random

import pytest

from pyptx.codegen.analysis.branches import Branches, Entries


@pytest.mark.parametrize("labels", range(10))
def test_a_range_is_closed_if_no_branch_from_outside_reaches_a_label_inside(labels: int) -> None:
    choice, size = random.Random(labels), 24
    for _ in range(20):
        places = choice.sample(range(size), labels)
        sources = {place: choice.choices(range(-1, size), k=choice.randint(1, 3)) for place in places}
        entries = Entries(Branches(sources=sources))
        for first in range(size):
            for last in range(first, size):
                inside = range(first, last + 1)
                expected = all(source in inside for place in places if place in inside for source in sources[place])
                assert entries.is_closed(first, last) == expected, (sources, first, last)
