"""Compares a launch with the limits of a device, which the driver tells."""

from __future__ import annotations

from functools import cache

from pyptx.driver import AFTER_RESTART
from pyptx.runtime import planning
from pyptx.runtime.bindings import call, load_api
from pyptx.runtime.planning import Plan


def check_limits(plan: Plan, device: int, static: int = 0) -> None:
    """Raise PtxError if a launch exceeds what a device can run. `static`: bytes of static shared memory."""
    planning.check_limits(plan, f"on device {device}", *_list_limits(device), static)


@cache
def _list_limits(device: int) -> tuple[list[int], list[int], int, int]:
    """Return the largest grid and block, and how many threads and bytes of shared memory a block can have."""
    names = load_api().CUdevice_attribute

    def find(name: str) -> int:
        return call("cuDeviceGetAttribute", getattr(names, f"CU_DEVICE_ATTRIBUTE_MAX_{name}"), device)

    grid, block = ([find(f"{part}_DIM_{axis}") for axis in "XYZ"] for part in ("GRID", "BLOCK"))
    return grid, block, find("THREADS_PER_BLOCK"), find("SHARED_MEMORY_PER_BLOCK_OPTIN")


AFTER_RESTART.append(_list_limits.cache_clear)
