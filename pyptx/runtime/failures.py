"""What the driver refused, as diagnostics that name the kernel, where it is defined, and what to do."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from pyptx.diagnostics import PtxError
from pyptx.runtime.bindings import CallError
from pyptx.runtime.planning import Plan, find_place, write_extents
from pyptx.runtime.rules import DRIVER

FAULTS = frozenset((700, 702, 710, 714, 715, 716, 717, 718, 719))
"""Codes of kernels that failed while they ran, after which their context is unusable."""
_RESOURCES = frozenset((701, 720, 912))
_CAPTURE_ISOLATION = 905


@contextmanager
def explain_failures(plan: Plan) -> Generator[None]:
    """Turn what the driver refuses while a plan runs into a PtxError."""
    try:
        yield
    except CallError as why:
        raise make_error(plan, why) from None


def make_error(plan: Plan, why: CallError) -> PtxError:
    """Return the error for a call that failed while a plan was launched."""
    definition = plan.definition
    shape = f"grid {write_extents(plan.grid)}, block {write_extents(definition.block)}"
    if definition.cluster != (1, 1, 1):
        shape += f", clusters of {write_extents(definition.cluster)}"
    notes = [f"the launch: {shape}, {plan.kernel_trace.dynamic_shared} bytes of dynamic shared memory"]
    help = f"{definition.name}.simulate(…) with the same arguments checks the kernel on the CPU and finds the cause"
    if why.code in FAULTS:
        notes.append("launches are asynchronous: an earlier launch, perhaps of another kernel, may be the cause")
        notes.append("the context is lost: no launch of this process works on this device any more")
    elif why.code in _RESOURCES:
        help = f"{definition.name}.resources(…) lists what a CTA needs; use a smaller block, cluster or grid"
    elif why.code == _CAPTURE_ISOLATION:
        help = "a capture cannot wait for the stream of an array: make the arrays in the stream that is captured"
    message = f"`{definition.name}` cannot be launched: {why}"
    return PtxError([DRIVER.report(find_place(definition), message, notes=notes, help=help)])
