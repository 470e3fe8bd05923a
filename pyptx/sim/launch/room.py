"""Check, before allocating, that the CTAs that run at once fit into memory: Linux overcommits memory and kills the
process that touches too much."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pyptx.sim.base.formats import CLASSES
from pyptx.sim.execution.machine import Launch
from pyptx.sim.rules import faults

_CGROUP = Path("/sys/fs/cgroup/memory.max")
_SMALL = 1 << 26
"""What fits into any memory, so that small launches do not ask how much there is."""


def require_memory(launch: Launch, ctas: int) -> None:
    """Reject a batch of CTAs that does not fit into memory."""
    size = _estimate_size(launch, ctas)
    if size > _SMALL and size > (available := find_machine_memory()):
        threads = ctas * launch.block[0] * launch.block[1] * launch.block[2]
        text = (
            f"not enough memory to run {ctas} CTAs ({threads} threads) at once: their registers and shared memory take "
            f"{size >> 30} GiB, this machine has {available >> 30} GiB"
        )
        help = (
            "use a smaller grid: all CTAs of a cooperative grid, or of a kernel that polls global memory, run at once"
        )
        raise faults.error(faults.OUT_OF_MEMORY, launch.program.entry.function.origin, text, help=help)


def _estimate_size(launch: Launch, ctas: int) -> int:
    """Estimate the bytes of the registers and shared memory of these CTAs."""
    used, variables = launch.program.entry.rows.used, launch.program.variables
    per_thread = sum(used[letter] * np.dtype(kind).itemsize for letter, kind in CLASSES.items())
    shared = variables.find_dynamic_base() + launch.dynamic - variables.shared_base
    return ctas * (launch.block[0] * launch.block[1] * launch.block[2] * per_thread + shared)


def find_machine_memory() -> int:
    """Return the memory of this machine in bytes, or the limit of the container if that is lower."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        limit = _CGROUP.read_text().strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdecimal() else memory
