"""Rows are available, and vectors as wide, exactly where ptxas has them."""

from __future__ import annotations

import random

import pytest

from pyptx.isa import table
from tools.isa import audit_availability

VECTORS = 30


@pytest.mark.parametrize("part", [0, 1])
def test_every_row_is_available_where_ptxas_has_it(seed: int, part: int) -> None:
    targets = audit_availability.TARGETS[part::2]
    expected = audit_availability.expect_offers(table.list_all_rows(), random.Random(seed), targets)
    assert len(set(expected.values())) == 2
    assert audit_availability.disagreements(expected) == []


def test_vectors_have_the_widths_that_ptxas_takes(seed: int) -> None:
    draw = random.Random(seed)
    vectors = [row for row in table.list_all_rows() if audit_availability.has_vectors(row)]
    # Most are textures, which are alike.
    kinds = [[row for row in vectors if (row.opcode == "tex") == texture] for texture in (False, True)]
    expected = audit_availability.expect_acceptance([row for kind in kinds for row in draw.sample(kind, VECTORS)], draw)
    assert len(set(expected.values())) == 2
    assert audit_availability.disagreements(expected) == []
