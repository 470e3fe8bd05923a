"""Special registers and predefined constants: name, type, availability, meaning (manual: Special Registers)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from pyptx.isa.targets import Availability, Version, parse_availability
from pyptx.types import PtxType, from_name

COMPONENTS = ("x", "y", "z", "w")


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """One special register. `vector` means that it has components `.x .y .z .w`, each of `type`."""

    name: str
    type: PtxType
    meaning: str
    available: Availability
    see: str
    vector: bool = False
    narrower: tuple[int, ...] = ()
    """Narrower widths in bits that mov may also read (for code older than the type)."""
    requires: str | None = None
    """The directive that the kernel needs."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A predefined name that stands for a number in integer constants."""

    name: str
    value: int
    meaning: str


def _register(
    name: str,
    type_name: str,
    meaning: str,
    *,
    ptx: Version | None = None,
    sm: str = "",
    vector: bool = False,
    narrower: tuple[int, ...] = (),
    requires: str | None = None,
) -> SpecialRegister:
    see = f"special-registers-{name.removeprefix('%').rstrip('0123456789').replace('_', '-')}"
    return SpecialRegister(
        name, from_name(type_name), meaning, parse_availability(ptx, sm), see, vector, narrower, requires
    )  # fmt: skip


_CTA = (
    _register("%tid", "u32", "Thread index in the CTA.", vector=True, narrower=(16,)),
    _register("%ntid", "u32", "CTA size in threads.", vector=True, narrower=(16,)),
    _register("%laneid", "u32", "Lane of the thread in its warp.", ptx=(1, 3)),
    _register("%warpid", "u32", "Warp number in the CTA; may change while the thread runs.", ptx=(1, 3)),
    _register("%nwarpid", "u32", "Upper bound of %warpid.", ptx=(2, 0), sm="sm_20"),
    _register("%ctaid", "u32", "CTA index in the grid.", vector=True, narrower=(16,)),
    _register("%nctaid", "u32", "Grid size in CTAs.", vector=True, narrower=(16,)),
    _register("%smid", "u32", "Multiprocessor number; may change while the thread runs.", ptx=(1, 3)),
    _register("%nsmid", "u32", "Upper bound of %smid.", ptx=(2, 0), sm="sm_20"),
    _register("%gridid", "u64", "Launch number in this context.", narrower=(16, 32)),
)

_CLUSTER = (
    _register("%is_explicit_cluster", "pred", "Whether the kernel was launched with clusters.", ptx=(7, 8), sm="sm_90"),
    _register("%clusterid", "u32", "Cluster index in the grid.", ptx=(7, 8), sm="sm_90", vector=True),
    _register("%nclusterid", "u32", "Grid size in clusters.", ptx=(7, 8), sm="sm_90", vector=True),
    _register("%cluster_ctaid", "u32", "CTA index in the cluster.", ptx=(7, 8), sm="sm_90", vector=True),
    _register("%cluster_nctaid", "u32", "Cluster size in CTAs.", ptx=(7, 8), sm="sm_90", vector=True),
    _register("%cluster_ctarank", "u32", "CTA rank in the cluster.", ptx=(7, 8), sm="sm_90"),
    _register("%cluster_nctarank", "u32", "Number of CTAs in the cluster.", ptx=(7, 8), sm="sm_90"),
)

_LANE_MASKS = tuple(
    _register(f"%lanemask_{which}", "u32", f"Mask of the lanes {where} this one.", ptx=(2, 0), sm="sm_20")
    for which, where in (
        ("eq", "equal to"),
        ("le", "up to and including"),
        ("lt", "below"),
        ("ge", "from"),
        ("gt", "above"),
    )
)

_CLOCKS = (
    _register("%clock", "u32", "Cycle counter; wraps around."),
    _register("%clock_hi", "u32", "Upper half of %clock64.", ptx=(5, 0), sm="sm_20"),
    _register("%clock64", "u64", "Cycle counter.", ptx=(2, 0), sm="sm_20"),
    _register(
        "%globaltimer", "u64", "Global timer in nanoseconds, for tools.", ptx=(3, 1),
        sm="sm_30",
    ),
    _register("%globaltimer_lo", "u32", "Lower half of %globaltimer.", ptx=(3, 1), sm="sm_30"),
    _register("%globaltimer_hi", "u32", "Upper half of %globaltimer.", ptx=(3, 1), sm="sm_30"),
    *(_register(f"%pm{n}", "u32", "Performance counter.", ptx=(1, 3)) for n in range(4)),
    *(_register(f"%pm{n}", "u32", "Performance counter.", ptx=(3, 0), sm="sm_20") for n in range(4, 8)),
    *(_register(f"%pm{n}_64", "u64", "64-bit performance counter.", ptx=(4, 0), sm="sm_50") for n in range(8)),
)  # fmt: skip

_ENVIRONMENT = tuple(
    _register(f"%envreg{n}", "b32", "Set by the driver before the launch.", ptx=(2, 1)) for n in range(32)
)

_MEMORY = (
    *(
        _register(f"%reserved_smem_offset_{which}", "b32", meaning, ptx=(7, 6), sm="sm_80")
        for which, meaning in (
            ("begin", "Start of the reserved shared memory."),
            ("end", "End of the reserved shared memory."),
            ("cap", "Size of the reserved shared memory."),
            ("0", "An offset in the reserved shared memory."),
            ("1", "An offset in the reserved shared memory."),
        )
    ),
    _register(
        "%total_smem_size", "u32", "Shared memory of the CTA in bytes, static and dynamic.", ptx=(4, 1), sm="sm_20",
    ),
    _register(
        "%aggr_smem_size", "u32", "Shared memory of the CTA in bytes, including the reserved part.", ptx=(8, 1),
        sm="sm_90",
    ),
    _register("%dynamic_smem_size", "u32", "Dynamic shared memory of the CTA in bytes.", ptx=(4, 1), sm="sm_20"),
    _register(
        "%current_graph_exec", "u64", "CUDA device graph that runs the kernel; 0 if none.", ptx=(8, 0),
        sm="sm_50",
    ),
)  # fmt: skip

# Undocumented: types, versions and targets are those of ptxas 13.5, meanings follow the names.
_NEW = (
    _register(
        "%perctamemoryoffset", "u64", "Offset of the CTA-private memory.",
        ptx=(9, 4), sm="sm_80", requires=".minperctamemory",
    ),
    _register(
        "%perctamemorysize", "u32", "Size of the CTA-private memory.",
        ptx=(9, 4), sm="sm_80", requires=".minperctamemory",
    ),
    _register(
        "%locality_domain_id", "u32", "Locality domain of the multiprocessor.", ptx=(9, 5),
        sm="sm_100",
    ),
    _register(
        "%locality_domain_supplemental_sm", "u32", "Whether the multiprocessor supplements its locality domain.",
        ptx=(9, 5), sm="sm_100",
    ),
)  # fmt: skip

SPECIAL_REGISTERS: tuple[SpecialRegister, ...] = (
    *_CTA, *_CLUSTER, *_LANE_MASKS, *_CLOCKS, *_ENVIRONMENT, *_MEMORY, *_NEW,
)  # fmt: skip

CONSTANTS: tuple[Constant, ...] = (Constant("WARP_SZ", 32, "Number of lanes in a warp."),)


@lru_cache(maxsize=1)
def _index_by_name() -> dict[str, SpecialRegister]:
    return {register.name: register for register in SPECIAL_REGISTERS}


def find_special_register(name: str) -> SpecialRegister | None:
    """Return the special register of this name; a component (`%tid.x`) is a register of its own, without components."""
    register = _index_by_name().get(name)
    if register is not None:
        return register
    base, _, component = name.partition(".")
    vector = _index_by_name().get(base)
    if vector is None or not vector.vector or component not in COMPONENTS:
        return None
    return replace(vector, name=name, vector=False)


def find_constant(name: str) -> Constant | None:
    """Return the predefined constant of this name."""
    return next((c for c in CONSTANTS if c.name == name), None)
