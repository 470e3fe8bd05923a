"""Limits of launches: exact ones are kept, and each excess is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyptx import PtxError
from pyptx.runtime.planning import Plan, check_limits, find_place
from pyptx.sim.program.shapes import LARGE_BLOCK, LARGE_GRID, MUCH_SHARED, PART_OF_CLUSTER
from tests.runtime.test_launching import plan_call, write_ranks

SHARED = 65536
"""Bytes of dynamic shared memory of the kernel, whose blocks have 32 threads, and whose clusters two blocks."""


def plan(*grid: int) -> Plan:
    return replace(plan_call(write_ranks), grid=grid)


def find_problem(plan: Plan, *limits: Any) -> tuple[str, str | None]:
    with pytest.raises(PtxError) as caught:
        check_limits(plan, "here", *limits)
    (finding,) = caught.value.diagnostics
    assert str(finding.origin) == str(find_place(plan.definition))
    return finding.message, finding.help


def test_a_launch_may_reach_every_limit() -> None:
    check_limits(plan(4, 3, 2), "here", (4, 3, 2), (32, 1, 1), 32, SHARED + 16, 16)
    check_limits(plan(4), "here", (4, 1, 1), (32, 1, 1), 32, SHARED, 0)


def test_every_excess_is_named() -> None:
    message, help = find_problem(plan(4, 3, 2), (3, 2, 1), (31, 0, 0), 31, SHARED + 15, 16)
    sizes = ("the grid's x", 3), ("the grid's y", 2), ("the grid's z", 1), ("the block's x", 31), ("the block's y", 0)
    sizes += ("the block's z", 0), ("threads of a block", 31)
    texts = [f"{subject} must not exceed {limit}, found {limit + 1}" for subject, limit in sizes]
    texts.append(f"bytes of shared memory, 16 of them static, must not exceed {SHARED + 15}, found {SHARED + 16}")
    assert message == f"`write_ranks` here: {'; '.join(texts)}"
    assert help == f"{LARGE_GRID}; {LARGE_BLOCK}; {MUCH_SHARED}"


def test_shared_memory_that_is_all_dynamic_is_called_so() -> None:
    message, help = find_problem(plan(2), (2, 1, 1), (32, 1, 1), 32, SHARED - 1, 0)
    assert message == f"`write_ranks` here: bytes of dynamic shared memory must not exceed {SHARED - 1}, found {SHARED}"
    assert help == MUCH_SHARED


def test_a_grid_consists_of_clusters() -> None:
    message, help = find_problem(plan(3, 2), (8, 8, 8), (32, 1, 1), 32, SHARED, 0)
    assert message == "`write_ranks` here: the grid 3×2 must be a multiple of the cluster 2×1×1"
    assert help == PART_OF_CLUSTER
