"""The values of special registers in every lane of a batch (manual: Special Registers)."""

from __future__ import annotations

import numpy as np

from pyptx.isa.limits import WARP_SIZE, find_shared_start, sm_limits
from pyptx.isa.targets import Target
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Shape

Dim3 = tuple[int, int, int]

MOVING = frozenset(("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"))
"""The special registers that change while lanes run."""
WORKSPACE = ("%envreg1", "%envreg2")
"""The upper and lower half of the address by which a cooperative grid synchronizes, 0 for other grids."""
_AXES = "xyz"
_LACKING = (
    ("%pm", "a performance counter counts what a profiler has configured"),
    ("%envreg", "the driver sets it, but CUDA launches do not use it"),
    ("%reserved_smem_offset_1", "the driver chooses it"),
    ("%percta", "the driver places this memory"),
    ("%locality_domain", "the simulator models one SM without locality domains"),
)
_OF_MACHINE = ("%nwarpid", "%total_smem_size", "%aggr_smem_size")


def explain_missing_value(name: str, target: Target) -> str | None:
    """Return why a special register has no value in the simulator, None if it has one."""
    if name in WORKSPACE:
        return None
    reason = next((why for start, why in _LACKING if name.startswith(start)), None)
    if reason is None and name.startswith(_OF_MACHINE) and not _compute_machine_values(target, 0):
        return f"the limits of {target} are not known"
    return reason


def compute_launch_values(
    grid: Dim3, block: Dim3, cluster: Dim3, explicit: bool, shared: int, dynamic: int, target: Target
) -> dict[str, int]:
    """Return the special registers that are equal in all lanes of a launch. `explicit`: the launch or the kernel
    requests clusters; `shared`: bytes of shared memory, `dynamic` of them dynamic."""
    vectors = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
    values = {
        "%nsmid": 1, "%smid": 0, "%is_explicit_cluster": int(explicit), "%dynamic_smem_size": dynamic,
        "%cluster_nctarank": cluster[0] * cluster[1] * cluster[2], "%current_graph_exec": 0,
        **{f"%{name}.w": 0 for name in vectors}, **_compute_machine_values(target, shared),
    }  # fmt: skip
    for dimension, axis in enumerate(_AXES):
        values[f"%ntid.{axis}"] = block[dimension]
        values[f"%nctaid.{axis}"] = grid[dimension]
        values[f"%cluster_nctaid.{axis}"] = cluster[dimension]
        values[f"%nclusterid.{axis}"] = grid[dimension] // cluster[dimension]
    return values


def _compute_machine_values(target: Target, shared: int) -> dict[str, int]:
    """Return the values that depend on the machine; none for a target with unknown limits."""
    try:
        limits = sm_limits(target.name)
    except ValueError:
        return {}
    unit, system_size = limits.shared_granularity, limits.reserved_shared
    total = -(-shared // unit) * unit
    begin = 0 if find_shared_start(target.arch) else total
    return {
        "%nwarpid": limits.threads // WARP_SIZE, "%total_smem_size": total, "%aggr_smem_size": total + system_size,
        "%reserved_smem_offset_begin": begin, "%reserved_smem_offset_end": begin + system_size,
        "%reserved_smem_offset_cap": begin + system_size, "%reserved_smem_offset_0": begin + 64 * (target.arch >= 100),
    }  # fmt: skip


def compute_thread_values(shape: Shape) -> dict[str, Array]:
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
    return {name: array.astype(np.uint32) for name, array in values.items()}


def compute_coordinates(numbers: Array, grid: Dim3, cluster: Dim3) -> tuple[Array, Array]:
    """Return the coordinates of CTAs in the grid and in their cluster; CTAs of a cluster have consecutive numbers."""
    size = cluster[0] * cluster[1] * cluster[2]
    cluster_number, rank = np.divmod(numbers, size)
    inside = np.array([rank % cluster[0], rank // cluster[0] % cluster[1], rank // (cluster[0] * cluster[1])])
    across = [grid[axis] // cluster[axis] for axis in range(3)]
    outer = np.array(
        [cluster_number % across[0], cluster_number // across[0] % across[1], cluster_number // (across[0] * across[1])]
    )
    return outer * np.array(cluster)[:, None] + inside, inside


def read_clock(name: str, instructions: int) -> int:
    """Return the value of a clock: an instruction takes one cycle, and a cycle one nanosecond, so that runs repeat."""
    return (
        instructions >> 32
        if name.endswith("hi")
        else instructions & 0xFFFFFFFF
        if name.endswith(("lo", "clock"))
        else instructions
    )
