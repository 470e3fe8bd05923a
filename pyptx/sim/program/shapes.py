"""Checks the shape of a launch: grid, block, cluster and shared memory, against the entry and its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError, format_count
from pyptx.ir import Function
from pyptx.isa.limits import LARGEST_BLOCK, LARGEST_GRID, THREADS_PER_CTA, shared_limit
from pyptx.isa.targets import find_target
from pyptx.sim.program.blocks import Program
from pyptx.sim.rules import faults

Dim = int | Sequence[int]
Dim3 = tuple[int, int, int]
_MOST = {"grid": LARGEST_GRID, "block": LARGEST_BLOCK}
LARGE_GRID, LARGE_BLOCK = (
    "put the largest extent in x, or let each CTA do more",
    "use a smaller block and a larger grid",
)
PART_OF_CLUSTER = "round the grid up, and let the extra CTAs exit"
MUCH_SHARED = "use fewer stages or smaller tiles"
"""What to do about a launch that exceeds a limit."""
_MOST_BITS = 256
"""The widest integer that an option accepts."""
_MOST_CLUSTER = 16
"""CTAs of a cluster: 8 on every target, 16 if the launch allows non-portable sizes."""


def format_number(value: float) -> str:
    """Format a number for a message; Python refuses to print integers of thousands of digits."""
    return (
        str(value)
        if isinstance(value, float) or value.bit_length() <= _MOST_BITS
        else f"an integer of {value.bit_length()} bits"
    )


def check_integer(value: Any, option: str, least: int) -> int:
    """Return an option as an integer. Raise PtxError for anything else."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or number < least or number.bit_length() > _MOST_BITS:
        text = repr(value) if number is None else format_number(number)
        raise faults.error(
            faults.LAUNCH_SHAPE, None, f"{option}: expected an integer of at least {least}, found {text}"
        )
    return number


def parse_dim3(value: Any, option: str) -> Dim3:
    """Return one to three positive integers padded to three. Raise PtxError for anything else."""
    try:
        values = [index(v) for v in value] if np.iterable(value) else [index(value)]
    except TypeError:
        values = []
    if not 1 <= len(values) <= 3 or any(v < 1 or v.bit_length() > _MOST_BITS for v in values):
        text = ", ".join(map(format_number, values[:4])) or repr(value)
        text = f"({text})" if len(values) > 1 else text
        raise faults.error(
            faults.LAUNCH_SHAPE, None, f"{option}: expected one to three positive integers, found {text}"
        )
    values += [1] * (3 - len(values))
    return values[0], values[1], values[2]


def check_shape(program: Program, grid: Dim3, block: Dim3, cluster: Dim3, shared: int) -> tuple[Dim3, Dim3, Dim3]:
    """Return the launch's dimensions after checking them against the entry's directives and the target."""
    function = program.entry.function
    directives = {d.name: d.values for d in function.directives}
    _check_threads(function, directives, block)
    _check_limits(function, "block", block)
    cluster_values = directives.get("reqnctapercluster")
    if cluster_values:
        kernel_cluster = _pad_to_dim3(cluster_values)
        if cluster not in ((1, 1, 1), kernel_cluster):
            raise _make_shape_error(function, f"cluster is {cluster}, but the kernel requires {kernel_cluster}")
        cluster = kernel_cluster
        if "blocksareclusters" in directives:
            grid = grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2]
    elif "explicitcluster" in directives and cluster == (1, 1, 1):
        raise _make_shape_error(function, "the kernel is `.explicitcluster`, but the launch specifies no cluster")
    _check_limits(function, "grid", grid)
    _check_cluster(function, directives, grid, cluster)
    _check_shared(program, shared)
    return grid, block, cluster


def _check_limits(function: Function, option: str, sizes: Dim3) -> None:
    for axis, number, limit in zip("xyz", sizes, _MOST[option], strict=True):
        if number > limit:
            help = LARGE_GRID if option == "grid" else LARGE_BLOCK
            raise _make_shape_error(function, f"{option} is {sizes}, but the limit in {axis} is {limit}", help)


def _pad_to_dim3(values: Sequence[Any]) -> Dim3:
    sizes = [int(v) for v in (*values, 1, 1)[:3]]
    return sizes[0], sizes[1], sizes[2]


def _check_threads(function: Function, directives: Mapping[str, Sequence[Any]], block: Dim3) -> None:
    if "reqntid" in directives and _pad_to_dim3(directives["reqntid"]) != block:
        raise _make_shape_error(
            function, f"block is {block}, but the kernel requires {_pad_to_dim3(directives['reqntid'])}"
        )
    threads, limit = block[0] * block[1] * block[2], THREADS_PER_CTA
    if threads > limit:
        raise _make_shape_error(function, f"the block has {threads} threads, but the limit is {limit}", LARGE_BLOCK)
    x, y, z = _pad_to_dim3(directives.get("maxntid", (limit,)))
    if threads > x * y * z:
        count = format_count("thread", threads)
        raise _make_shape_error(function, f"the block has {count}, but the kernel's `.maxntid` allows {x * y * z}")


def _check_cluster(function: Function, directives: Mapping[str, Sequence[Any]], grid: Dim3, cluster: Dim3) -> None:
    size = cluster[0] * cluster[1] * cluster[2]
    if size > _MOST_CLUSTER:
        raise _make_shape_error(function, f"the cluster has {size} CTAs, but the limit is {_MOST_CLUSTER}")
    rank = directives.get("maxclusterrank")
    if rank and size > int(rank[0]):
        count = format_count("CTA", size)
        raise _make_shape_error(
            function, f"the cluster has {count}, but the kernel's `.maxclusterrank` allows {rank[0]}"
        )
    if any(g % c for g, c in zip(grid, cluster, strict=True)):
        raise _make_shape_error(function, f"grid {grid} is not a multiple of the cluster {cluster}", PART_OF_CLUSTER)


def _check_shared(program: Program, shared: int) -> None:
    """Raise PtxError for more shared memory than the target has."""
    static = program.variables.find_dynamic_base() - program.variables.shared_base
    code = next((name for name in program.module.target.targets if name.startswith("sm_")), "sm_90")
    limit = shared_limit(find_target(code))
    if static + shared > limit:
        size = static + shared
        text = f"a CTA has {size} bytes of shared memory, {static} of them declared, but the limit on {code} is {limit}"
        raise _make_shape_error(program.entry.function, text, MUCH_SHARED)


def _make_shape_error(function: Function, text: str, help: str | None = None) -> PtxError:
    return faults.error(faults.LAUNCH_SHAPE, function.origin, text, help=help)
