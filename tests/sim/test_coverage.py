"""Every row of the table has semantics or a reason."""

from __future__ import annotations

from tools.sim_coverage import without

COMPLETE = (
    "integer extended_precision floating_point half_precision mixed_precision comparison logic data_movement load "
    "cache_control control_flow synchronization wmma mma matrix_move video"
).split()


def test_rows_without_semantics_have_a_reason() -> None:
    lacking = [(section, spelling, why) for section, spelling, why in without()]
    assert [spelling for _, spelling, why in lacking if why is None] == []
    assert [spelling for section, spelling, _ in lacking if section in COMPLETE] == []
