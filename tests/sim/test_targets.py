"""What a new target needs besides its line in `isa/targets.py`."""

from __future__ import annotations

import pytest

from pyptx.isa.limits import sm_limits
from pyptx.isa.targets import ASSEMBLED, FIRST_PTX, target
from pyptx.sim.numerics.tensor_core import CORES


@pytest.mark.parametrize("name", ASSEMBLED)
def test_every_target_that_ptxas_knows_has_limits(name: str) -> None:
    assert sm_limits(name).threads > 0


def test_every_target_with_tensor_cores_says_how_they_sum() -> None:
    assert CORES.keys() == {target(name).arch for name in FIRST_PTX if target(name).arch >= 70}
