"""The shape of a launch: grid, block, cluster and shared memory, within what the entry and its target allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.ir import Function
from pyptx.isa.limits import THREADS_PER_CTA, shared_limit
from pyptx.isa.targets import target
from pyptx.sim.program.blocks import Program
from pyptx.sim.rules import faults

Dim = int | Sequence[int]
Dim3 = tuple[int, int, int]
_MOST = {"grid": (2**31 - 1, 65535, 65535), "block": (THREADS_PER_CTA, THREADS_PER_CTA, 64)}
_MOST_BITS = 256
"""Of a number that makes sense for an option; no seed needs more."""
_MOST_CLUSTER = 16
"""CTAs of a cluster: 8 everywhere, 16 where the launch allows non-portable sizes."""


def shown_number(value: float) -> str:
    """Return a number as a message shows it: Python refuses to print integers of thousands of digits."""
    return (
        str(value)
        if isinstance(value, float) or value.bit_length() <= _MOST_BITS
        else f"a {value.bit_length()}-bit integer"
    )


def whole_number(value: Any, what: str, least: int | None = None) -> int:
    """Return an option that is a whole number; PtxError for anything else."""
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or (least is not None and number < least) or number.bit_length() > _MOST_BITS:
        wanted = "a whole number" if least is None else f"a whole number of at least {least}"
        shown = repr(value) if number is None else shown_number(number)
        raise faults.error(faults.LAUNCH_SHAPE, None, f"{what} is {shown}: {wanted} expected")
    return number


def dim3(value: Any, what: str) -> Dim3:
    """Return three numbers of one to three; PtxError for what is none of those."""
    try:
        values = [index(v) for v in value] if np.iterable(value) else [index(value)]
    except TypeError:
        values = []
    if not 1 <= len(values) <= 3 or any(v < 1 or v.bit_length() > _MOST_BITS for v in values):
        shown = ", ".join(map(shown_number, values[:4])) or repr(value)
        shown = f"({shown})" if len(values) > 1 else shown
        raise faults.error(faults.LAUNCH_SHAPE, None, f"{what} is {shown}: one to three positive numbers expected")
    values += [1] * (3 - len(values))
    return values[0], values[1], values[2]


def shaped(program: Program, grid: Dim3, block: Dim3, cluster: Dim3, shared: int) -> tuple[Dim3, Dim3, Dim3]:
    """Return the launch's dimensions, checked against the entry's own directives and the target."""
    function = program.entry.function
    directives = {d.name: d.values for d in function.directives}
    _threads(function, directives, block)
    for what, given in (("grid", grid), ("block", block)):
        for axis, number, most in zip("xyz", given, _MOST[what], strict=True):
            if number > most:
                raise _misshapen(function, f"{what} is {given}; at most {most} are possible in {axis}")
    named = directives.get("reqnctapercluster")
    if named:
        required = _three(named)
        if cluster not in ((1, 1, 1), required):
            raise _misshapen(function, f"cluster is {cluster}, the kernel requires {required}")
        cluster = required
        if "blocksareclusters" in directives:
            grid = grid[0] * cluster[0], grid[1] * cluster[1], grid[2] * cluster[2]
    elif "explicitcluster" in directives and cluster == (1, 1, 1):
        raise _misshapen(function, "the kernel is `.explicitcluster`, and no cluster is given")
    _clusters(function, directives, grid, cluster)
    _shared(program, shared)
    return grid, block, cluster


def _three(values: Sequence[Any]) -> Dim3:
    made = [int(v) for v in (*values, 1, 1)[:3]]
    return made[0], made[1], made[2]


def _threads(function: Function, directives: Mapping[str, Sequence[Any]], block: Dim3) -> None:
    if "reqntid" in directives and _three(directives["reqntid"]) != block:
        raise _misshapen(function, f"block is {block}, the kernel requires {_three(directives['reqntid'])}")
    threads, most = block[0] * block[1] * block[2], THREADS_PER_CTA
    if threads > most:
        raise _misshapen(function, f"a block of {threads} threads; at most {most} are possible")
    x, y, z = _three(directives.get("maxntid", (most,)))
    if threads > x * y * z:
        raise _misshapen(function, f"a block of {threads} threads; the kernel's `.maxntid` allows {x * y * z}")


def _clusters(function: Function, directives: Mapping[str, Sequence[Any]], grid: Dim3, cluster: Dim3) -> None:
    size = cluster[0] * cluster[1] * cluster[2]
    if size > _MOST_CLUSTER:
        raise _misshapen(function, f"a cluster of {size} CTAs; at most {_MOST_CLUSTER} are possible")
    rank = directives.get("maxclusterrank")
    if rank and size > int(rank[0]):
        raise _misshapen(function, f"a cluster of {size} CTAs; the kernel's `.maxclusterrank` allows {rank[0]}")
    if any(g % c for g, c in zip(grid, cluster, strict=True)):
        raise _misshapen(function, f"grid {grid} is no multiple of the cluster {cluster}")


def _shared(program: Program, shared: int) -> None:
    """Refuse more shared memory than any machine has that runs the module."""
    static = program.variables.dynamic_base() - program.variables.shared_base
    code = next((name for name in program.module.target.targets if name.startswith("sm_")), "sm_90")
    most = shared_limit(target(code))
    if static + shared > most:
        text = (
            f"{static + shared} bytes of shared memory, {static} of them declared; a CTA of {code} has at most {most}"
        )
        raise _misshapen(program.entry.function, text)


def _misshapen(function: Function, text: str) -> PtxError:
    return faults.error(faults.LAUNCH_SHAPE, function.origin, text)
