"""Scratch arrays: which calls share memory."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.numerics import workspace


def test_only_small_arrays_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace, "LARGEST", 4096)
    small, again, large, other = (
        workspace.get_scratch("test", shape, np.float32) for shape in ((8, 128), (1024,), (8, 129), (8, 129))
    )
    assert (small.shape, large.shape) == ((8, 128), (8, 129))
    assert small.dtype == large.dtype == np.float32
    assert np.shares_memory(small, again)
    assert not np.shares_memory(small, large)
    assert not np.shares_memory(large, other)
