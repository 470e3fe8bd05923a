"""The limits of one streaming multiprocessor of each architecture, from NVIDIA's headers: CCCL's
`cuda/__device/arch_traits.h` and the runtime's `cuda_occupancy.h` (CUDA 13.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from pyptx.isa.targets import RENAMED, Target, find_target

WARP_SIZE = 32
KIB = 1024
THREADS_PER_CTA = 1024
LARGEST_BLOCK = THREADS_PER_CTA, THREADS_PER_CTA, 64
LARGEST_GRID = 2**31 - 1, 65535, 65535
REGISTERS = 65536
REGISTERS_PER_THREAD = 255
REGISTER_UNIT = 8
"""Threads get a multiple of this many registers."""
STATIC_SHARED = 48 * KIB


@dataclass(frozen=True, slots=True)
class SmLimits:
    """Limits of one SM, sizes in bytes. `shared` is the total of all CTAs of an SM, `shared_per_cta` the maximum that
    one may request (opt-in), `reserved_shared` the additional system reservation per CTA; `barriers` counts the named
    barriers of all CTAs together, None if they do not limit residency (before sm_90)."""

    shared: int
    shared_per_cta: int
    threads: int
    ctas: int
    barriers: int | None = None
    reserved_shared: int = KIB
    shared_granularity: int = 128
    registers: int = REGISTERS
    registers_per_thread: int = REGISTERS_PER_THREAD
    register_granularity: int = 256
    partitions: int = 4
    threads_per_cta: int = THREADS_PER_CTA


_BY_ARCH = {
    75: SmLimits(64 * KIB, 64 * KIB, 1024, 16, reserved_shared=0, shared_granularity=256),
    80: SmLimits(164 * KIB, 163 * KIB, 2048, 32),
    86: SmLimits(100 * KIB, 99 * KIB, 1536, 16),
    87: SmLimits(164 * KIB, 163 * KIB, 1536, 16),
    88: SmLimits(100 * KIB, 99 * KIB, 1536, 16),
    89: SmLimits(100 * KIB, 99 * KIB, 1536, 24),
    90: SmLimits(228 * KIB, 227 * KIB, 2048, 32, 64),
    100: SmLimits(228 * KIB, 227 * KIB, 2048, 32, 64),
    103: SmLimits(228 * KIB, 227 * KIB, 2048, 32, 32),
    107: SmLimits(228 * KIB, 227 * KIB, 1024, 16, 16),
    110: SmLimits(228 * KIB, 227 * KIB, 1536, 24, 24),
    120: SmLimits(100 * KIB, 99 * KIB, 1536, 24, 24),
    121: SmLimits(100 * KIB, 99 * KIB, 1536, 24, 24),
}
# sm_107: `arch_traits.h` says 228 KiB, `cuda_occupancy.h` knows a 328 KiB setting; the smaller is always safe.


def sm_limits(name: str) -> SmLimits:
    """Return the limits of a target (`sm_90a` and `sm_90` are the same machine); ValueError for one without a row."""
    arch = RENAMED.get(find_target(name).arch, find_target(name).arch)
    if arch not in _BY_ARCH:
        targets = ", ".join(f"sm_{number}" for number in _BY_ARCH)
        raise ValueError(f"no limits are known for {name}; known targets: {targets}")
    return _BY_ARCH[arch]


def find_shared_start(arch: int) -> int:
    """Return the offset of a CTA's own shared memory in its window. From sm_90 on, ptxas 13.5 places the part that the
    system reserves in front of it, and counts it in `.nv.shared.<kernel>`; before, behind it."""
    return KIB if arch >= 90 else 0


def static_shared_limit(target: Target) -> int:
    """Return how many bytes of statically sized shared variables ptxas accepts: 48 KiB, or the full limit of a CTA on
    targets with the suffix `a` (measured with ptxas 13.5)."""
    if target.suffix != "a":
        return STATIC_SHARED
    return sm_limits(target.name).shared_per_cta


def shared_limit(target: Target) -> int:
    """Return the maximum shared memory of a CTA on any machine that runs code for a target: code without a suffix also
    runs on later machines."""
    own = RENAMED.get(target.arch, target.arch)
    able = [limits for arch, limits in _BY_ARCH.items() if arch == own or (arch > own and not target.suffix)]
    return max(limits.shared_per_cta for limits in able or _BY_ARCH.values())


def entry_registers(directives: Mapping[str, Sequence[int | str]]) -> int | None:
    """Return the registers per thread that a kernel's directives (by name without the dot) fix at its entry; None if
    ptxas chooses them. A minimum of CTAs per SM fixes them only with the size of a CTA."""
    if "maxnreg" in directives:
        return int(directives["maxnreg"][0])
    block = directives.get("reqntid", directives.get("maxntid"))
    if block is None or "minnctapersm" not in directives:
        return None
    threads = -(-prod(int(size) for size in block) // WARP_SIZE) * WARP_SIZE * int(directives["minnctapersm"][0])
    return REGISTERS // threads // REGISTER_UNIT * REGISTER_UNIT if threads else None
