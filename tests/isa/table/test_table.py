"""The facts of the tables change only together with their digests: ptxas is asked about few modules before PTX 3.0, and
knows neither meanings nor sections of the manual."""

from __future__ import annotations

import pytest

from pyptx.isa import directives, lookup, reading, special, table
from pyptx.isa.limits import sm_limits
from pyptx.isa.targets import ASSEMBLED, FIRST_PTX, PTX_VERSIONS, RENAMED
from tests.digests import assert_digest


@pytest.mark.parametrize("opcode", sorted({row.opcode for row in table.list_all_rows()}))
def test_rows_of_an_opcode(opcode: str) -> None:
    rows = [row for row in table.list_all_rows() if row.opcode == opcode]
    facts = [(r.line, sorted(r.choices.items()), r.see, r.available, r.removed, r.quirk) for r in rows]
    words = [
        [(name, text) for name, text in kind().items() if name.split(".")[0] == opcode]
        for kind in (table.meanings, table.traits)
    ]
    assert_digest("rows", opcode, "\n".join(map(repr, [*facts, *words])))


def test_other_facts_of_the_manual() -> None:
    facts = {
        "special registers": special.SPECIAL_REGISTERS,
        "constants": special.CONSTANTS,
        "directives": directives.DIRECTIVES,
        "pragmas": directives.PRAGMAS,
        "state spaces": sorted(lookup.STATE_SPACES),
        "targets": [PTX_VERSIONS, *FIRST_PTX.items(), ASSEMBLED, RENAMED],
        "dotted names": sorted(reading.DOTTED_NAMES),
        "repeatable modifiers": sorted(reading.REPEATABLE),
        "limits": [(name, sm_limits(name)) for name in ASSEMBLED],
    }
    for name, items in facts.items():
        assert_digest("facts", name, "\n".join(map(repr, items)))
