"""The collector of cycles is left as it was found."""

from __future__ import annotations

import gc

from pyptx.ir.collection import without_collector


def test_the_collector_rests_inside_and_runs_again_after() -> None:
    assert gc.isenabled()
    with without_collector():
        assert not gc.isenabled()
        with without_collector():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
