"""Every row of the table has semantics or a reason, and each reason covers only the rows it was written for."""

from __future__ import annotations

import pytest

from pyptx.isa.lookup import match_of, spellings
from pyptx.isa.notation import form
from pyptx.sim.semantics.reasons import REASONS
from pyptx.sim.semantics.registry import find_section
from tools.sim_coverage import list_miscounts, reason, spelling, without

COMPLETE = (
    "integer extended_precision floating_point half_precision mixed_precision comparison logic data_movement load "
    "cache_control control_flow synchronization wmma mma matrix_move video"
).split()


def test_rows_without_semantics_have_a_reason() -> None:
    lacking = list(without())
    assert [spelling(match) for match, why in lacking if why is None] == []
    assert [spelling(match) for match, _ in lacking if find_section(match.form) in COMPLETE] == []
    assert list_miscounts(why for _, why in lacking) == []


@pytest.mark.parametrize(
    ("line", "sm", "is_excused"),
    [
        ("tcgen05.mma.cta_group::1.kind::other  [d@tmem:rwreg.u32]", "sm_107f", False),
        ("tcgen05.other.sync.aligned", "sm_107a", False),
        ("tcgen05.ld.sync.aligned.spcompress.b32  d:w.b32, [t@tmem:reg.u32]", "sm_100a", False),
        ("tcgen05.mma.cta_group::1.kind::ti16.other  [d@tmem:rwreg.u32]", "sm_107f", True),
        ("fabric.other", "sm_100", False),
        ("fabric.submit.other", "sm_100", True),
    ],
)
def test_a_new_row_is_not_excused_by_its_prefix(line: str, sm: str, is_excused: bool) -> None:
    row = form(line, ptx=(9, 4), sm=sm, see="")
    why = reason(match_of(row, next(spellings(row))))
    assert (why is not None) == is_excused
    if why is not None:
        # The words and the target match, but there is one row more than the reason counts.
        reasons = [entry for entry in REASONS for _ in range(entry.rows)]
        assert list_miscounts(reasons) == []
        assert len(list_miscounts([*reasons, why])) == 1
