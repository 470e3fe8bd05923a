"""Check, before allocating, that the CTAs that run at once fit into memory: Linux overcommits memory and kills the
process that touches too much."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from pyptx.isa.limits import WARP_SIZE
from pyptx.sim.base.formats import CLASSES
from pyptx.sim.execution.machine import Launch
from pyptx.sim.hazards.stamps import KINDS
from pyptx.sim.rules import faults

_CGROUP = Path("/sys/fs/cgroup/memory.max")
_MEMORY = Path("/proc/meminfo")
_SMALL = 1 << 26
"""What fits into any memory, so that small launches do not ask how much there is."""
_LANE, _CTA = 190, 500
"""Bytes of a thread besides registers and local memory, and of a CTA besides shared memory, measured as the peak of
processes with up to 8192 CTAs of 1 to 1024 threads."""
_CHECKED_LANE, _CHECKED_CTA = 100, 3000
"""What checks add."""
_CLOCK = 4 * KINDS
"""Bytes that the checks keep in each warp for every thread of its cluster."""


def require_memory(launch: Launch, ctas: int) -> None:
    """Reject a batch of CTAs that does not fit into memory."""
    size = estimate_size(launch, ctas)
    if size > _SMALL and size > (available := find_free_memory()):
        threads = ctas * launch.block[0] * launch.block[1] * launch.block[2]
        text = (
            f"not enough memory to run {ctas} CTAs ({threads} threads) at once: they take {size >> 30} GiB, this "
            f"machine has {available >> 30} GiB free"
        )
        help = (
            "use a smaller grid: all CTAs of a cooperative grid, or of a kernel that polls global memory, run at once"
        )
        raise faults.error(faults.OUT_OF_MEMORY, launch.program.entry.function.origin, text, help=help)


def estimate_size(launch: Launch, ctas: int) -> int:
    """Estimate the bytes that these CTAs take."""
    entry, variables = launch.program.entry, launch.program.variables
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    per_thread = sum(entry.rows.used[letter] * np.dtype(kind).itemsize for letter, kind in CLASSES.items())
    per_thread += entry.frame.size + _LANE
    per_cta = variables.find_dynamic_base() + launch.dynamic - variables.shared_base + _CTA
    if launch.tracker is not None:
        warps = -(-threads // WARP_SIZE)
        per_thread += _CHECKED_LANE
        per_cta += _CHECKED_CTA + warps * threads * launch.cluster_size * _CLOCK
    return ctas * (threads * per_thread + per_cta)


def find_free_memory() -> int:
    """Return the bytes that this machine can still give to processes, or the limit of the container if that is
    lower."""
    match = re.search(r"^MemAvailable: +(\d+) kB$", _read(_MEMORY), re.MULTILINE)
    memory = int(match[1]) << 10 if match else os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _read(_CGROUP).strip()
    return min(memory, int(limit)) if limit.isdecimal() else memory


def _read(path: Path) -> str:
    """Return the text of a file of the system; nothing if the system does not have it."""
    try:
        return path.read_text()
    except OSError:
        return ""
