"""The values of special registers in every lane of a batch (manual: Special Registers)."""

from __future__ import annotations

import time

import numpy as np

from pyptx.sim.formats import Array
from pyptx.sim.lanes import Shape

Dim3 = tuple[int, int, int]

MOVING = frozenset(("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"))
"""Those that change while lanes run."""
_AXES = "xyz"


def launch_values(grid: Dim3, block: Dim3, cluster: Dim3, shared: int, dynamic: int) -> dict[str, int]:
    """Return the special registers that are equal in all lanes of a launch."""
    values = {
        "%nwarpid": 64, "%nsmid": 1, "%smid": 0, "%gridid": 0, "%is_explicit_cluster": int(cluster != (1, 1, 1)),
        "%total_smem_size": shared, "%aggr_smem_size": shared + 1024, "%dynamic_smem_size": dynamic,
        "%cluster_nctarank": cluster[0] * cluster[1] * cluster[2], "%current_graph_exec": 0, "%ntid.w": 0,
        "%nctaid.w": 0, "%nclusterid.w": 0, "%cluster_nctaid.w": 0, "%tid.w": 0, "%ctaid.w": 0, "%clusterid.w": 0,
        "%cluster_ctaid.w": 0, "%reserved_smem_offset_begin": 0, "%reserved_smem_offset_end": 1024,
        "%reserved_smem_offset_cap": 1024, "%reserved_smem_offset_0": 0, "%reserved_smem_offset_1": 0,
    }  # fmt: skip
    for at, axis in enumerate(_AXES):
        values[f"%ntid.{axis}"] = block[at]
        values[f"%nctaid.{axis}"] = grid[at]
        values[f"%cluster_nctaid.{axis}"] = cluster[at]
        values[f"%nclusterid.{axis}"] = grid[at] // cluster[at]
    return values


def thread_values(shape: Shape) -> dict[str, Array]:
    """Return the special registers that depend on the thread alone."""
    x, y, _ = shape.block
    lane = shape.lane
    ones = np.uint32(0xFFFFFFFF)
    below = (np.uint32(1) << lane) - np.uint32(1)
    values: dict[str, Array] = {
        "%tid.x": shape.thread % x, "%tid.y": shape.thread // x % y, "%tid.z": shape.thread // (x * y),
        "%laneid": lane, "%warpid": shape.thread // 32, "%lanemask_eq": below + np.uint32(1), "%lanemask_lt": below,
        "%lanemask_le": below * np.uint32(2) + np.uint32(1), "%lanemask_ge": ones - below,
        "%lanemask_gt": ones - (below * np.uint32(2) + np.uint32(1)),
    }  # fmt: skip
    return {name: made.astype(np.uint32) for name, made in values.items()}


def coordinates(numbers: Array, grid: Dim3, cluster: Dim3) -> tuple[Array, Array]:
    """Return the coordinates of CTAs in the grid and in their cluster; CTAs of a cluster have consecutive numbers."""
    size = cluster[0] * cluster[1] * cluster[2]
    which, rank = np.divmod(numbers, size)
    inside = np.array([rank % cluster[0], rank // cluster[0] % cluster[1], rank // (cluster[0] * cluster[1])])
    across = [grid[axis] // cluster[axis] for axis in range(3)]
    outer = np.array([which % across[0], which // across[0] % across[1], which // (across[0] * across[1])])
    return outer * np.array(cluster)[:, None] + inside, inside


def moving(name: str, instructions: int) -> Array:
    """Return a clock's value now: cycles are instructions, nanoseconds are real."""
    if name.startswith("%globaltimer"):
        now = time.perf_counter_ns()
        return np.array(
            now >> 32 if name.endswith("hi") else now & 0xFFFFFFFF if name.endswith("lo") else now, np.uint64
        )
    return np.array(instructions >> 32 if name.endswith("hi") else instructions, np.uint64)
