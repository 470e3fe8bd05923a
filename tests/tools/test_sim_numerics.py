"""The comparison of the simulator's numbers with exact references reports no differences."""

from __future__ import annotations

import pytest

from tools import sim_numerics


def test_nothing_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert sim_numerics.main(["sim_numerics", "40"]) == 0
    output = capsys.readouterr().out
    assert "cvt.rn.satfinite.e4m3" in output
    assert "wgmma sm_90 f32.bf16" in output
    assert output.endswith("0 differ\n")
