"""Launches traced kernels on the simulator: arrays become buffers, and tensors whose map the body requests get one."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from threading import RLock
from typing import Any

from pyptx import sim
from pyptx.diagnostics import Severity
from pyptx.runtime.arrays import Array
from pyptx.runtime.planning import MAP_SUFFIX, Plan
from pyptx.sim.reports.findings import group_by_cause
from pyptx.tensormap import tensor_map

SIMULATE = "PYPTX_SIMULATE"
"""The environment variable with which calls on arrays in device memory run on the simulator."""


def is_rerouted() -> bool:
    """Tell whether the environment sends every call to the simulator."""
    return os.environ.get(SIMULATE) == "1"


def create_launch(plan: Plan, arrays: Mapping[str, Array], fresh: Sequence[Array] = ()) -> sim.Launch:
    """Return a launch of a plan on arrays by tensor name, of which those in `fresh` are uninitialized."""
    definition = plan.definition
    tiles = dict(definition.tensors)
    args: dict[str, Any] = {}
    for param in plan.find_entry().params:
        tensor = param.name.removesuffix(MAP_SUFFIX)
        if param.name in arrays:
            args[param.name] = arrays[param.name]
        elif param.name in plan.scalars:
            args[param.name] = plan.scalars[param.name]
        elif tensor in arrays:
            args[param.name] = sim.Tensor(arrays[tensor], tensor_map(tiles[tensor], dict(plan.dims), 0), tensor)
    return sim.Launch(
        plan.module, definition.name, args=args, grid=plan.grid, block=definition.block, cluster=definition.cluster,
        shared=plan.kernel_trace.dynamic_shared, parts=plan.kernel_trace.parts, fresh=fresh,
    )  # fmt: skip


def simulate(launch: sim.Launch, **options: Any) -> sim.Result:
    """Run a single launch. Threads, which may be a compiler's and not the caller's, take turns."""
    with TURN:
        return sim.run(
            launch.module, launch.entry, args=launch.args, grid=launch.grid, block=launch.block,
            cluster=launch.cluster, shared=launch.shared, parts=launch.parts, fresh=launch.fresh, **options,
        )  # fmt: skip


TURN = RLock()
"""Held by the thread whose launch runs: what the simulator keeps between runs is not made for several at once."""


def list_warnings(result: sim.Result) -> list[str]:
    """Return the text of each warning among the hazards of a run, one per cause."""
    diagnostics = [finding.diagnostic() for finding in group_by_cause(result.hazards)]
    return [f"{d}; {d.help}" for d in diagnostics if d.severity is Severity.WARNING]
