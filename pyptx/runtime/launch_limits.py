"""Compares a launch with the limits of a device, which the driver tells."""

from __future__ import annotations

from typing import Any

from pyptx.diagnostics import PtxError
from pyptx.driver import AFTER_RESTART
from pyptx.dsl.origin import find_definition
from pyptx.runtime.bindings import call, load_api
from pyptx.runtime.planning import Plan, list_excesses
from pyptx.runtime.rules import DRIVER


def check_limits(plan: Plan, device: int, static: int = 0) -> None:
    """Raise PtxError if a launch exceeds what a device can run. `static`: bytes of static shared memory."""
    names = load_api().CUdevice_attribute
    grid, block = (
        [find_limit(getattr(names, f"CU_DEVICE_ATTRIBUTE_MAX_{part}_DIM_{axis}"), device) for axis in "XYZ"]
        for part in ("GRID", "BLOCK")
    )
    threads = find_limit(names.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, device)
    shared = find_limit(names.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device)
    problems = list_excesses(plan, grid, block, threads, shared, static)
    if problems:
        message = f"`{plan.definition.name}` on device {device}: {'; '.join(problems)}"
        raise PtxError([DRIVER.report(find_definition(plan.definition.function), message)])


_LIMITS: dict[tuple[int, int], int] = {}
AFTER_RESTART.append(_LIMITS.clear)


def find_limit(name: Any, device: int) -> int:
    """Return an attribute of a device."""
    key = int(name), device
    if key not in _LIMITS:
        _LIMITS[key] = call("cuDeviceGetAttribute", name, device)
    return _LIMITS[key]
