"""Launches traced kernels on the simulator: arrays become buffers, and tensors whose map the body requests get one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyptx import sim
from pyptx.diagnostics import Severity
from pyptx.dsl.run import Definition
from pyptx.ir import Function, Module
from pyptx.runtime.arguments import Array
from pyptx.sim.reports.findings import group_by_cause
from pyptx.tensormap import tensor_map

_MAP = "_tma_desc"


def create_launch(
    module: Module,
    definition: Definition,
    arrays: Mapping[str, Array],
    scalars: Mapping[str, Any],
    env: Mapping[str, int],
    **options: Any,
) -> sim.Launch:
    """Return a launch of a kernel in the module, with arrays by tensor name and scalars by parameter name."""
    entry = next(f for f in module.directives if isinstance(f, Function) and f.name == definition.name)
    tiles = dict(definition.tensors)
    args: dict[str, Any] = {}
    for param in entry.params:
        tensor = param.name.removesuffix(_MAP)
        if param.name in arrays:
            args[param.name] = arrays[param.name]
        elif param.name in scalars:
            args[param.name] = scalars[param.name]
        elif tensor in arrays:
            args[param.name] = sim.Tensor(arrays[tensor], tensor_map(tiles[tensor], dict(env), 0))
    return sim.Launch(module, definition.name, args=args, block=definition.block, cluster=definition.cluster, **options)


def simulate(launch: sim.Launch, **options: Any) -> sim.Result:
    """Run a single launch."""
    return sim.run(
        launch.module, launch.entry, args=launch.args, grid=launch.grid, block=launch.block, cluster=launch.cluster,
        shared=launch.shared, parts=launch.parts, fresh=launch.fresh, **options,
    )  # fmt: skip


def list_warnings(result: sim.Result) -> list[str]:
    """Return the text of each warning among the hazards of a run, one per cause."""
    diagnostics = [finding.diagnostic() for finding in group_by_cause(result.hazards)]
    return [f"{d}; {d.help}" for d in diagnostics if d.severity is Severity.WARNING]
