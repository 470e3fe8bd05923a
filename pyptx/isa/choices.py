"""Modifier sets shared by several rows. Each is the manual's set, named after its nouns."""

from __future__ import annotations

RND = "rn rz rm rp"
"""Rounding modes of f32 and f64 arithmetic."""

FTZ = "ftz@1.4"

CMP_INT = "eq ne lt le gt ge lo ls hi hs"
CMP_FLOAT = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
BOOL = "and or xor"

SCOPE = "cta gpu sys cluster@7.8,sm_90"
"""Scopes of the memory consistency model."""

VEC = "v2 v4"
INT16_64 = "u16 u32 u64 s16 s32 s64"
BITS16_64 = "b16 b32 b64"
HINT = "L2::cache_hint@7.4,sm_80"
"""A cache-policy operand follows."""

MEM = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
"""Types that memory instructions move as scalars."""

MEM_128 = MEM + " b128@8.3,sm_70"
_OF_WIDTH = {"8": "b8 u8 s8", "16": "b16 u16 s16", "32": "b32 u32 s32 f32", "64": "b64 u64 s64 f64"}


def _vectors(vec: str, widths: str, since: str = "") -> str:
    return " ".join(f"{vec}.{name}{since}" for width in widths.split() for name in _OF_WIDTH[width].split())


MEM_VEC = _vectors("v2", "8 16 32 64") + " " + _vectors("v4", "8 16 32")
"""Vectors of at most 128 bits, coupled with their types. ptxas also parses v8 of 8 and 16 bits, but overruns its own
memory when it compiles them (segmentation fault on some targets), so they are not legal here."""

MEM_VEC_256 = _vectors("v8", "32", "@8.8,sm_100") + " " + _vectors("v4", "64", "@8.8,sm_100")
"""Vectors of 256 bits: global memory only."""

EVICT_L1 = " ".join(
    f"L1::{priority}@7.4,sm_70"
    for priority in ("evict_normal", "evict_unchanged", "evict_first", "evict_last", "no_allocate")
)
EVICT_L2 = "L2::evict_normal L2::evict_first L2::evict_last"
PREFETCH = "L2::64B@7.4,sm_75 L2::128B@7.4,sm_75 L2::256B@7.4,sm_80"
WEAK = "weak@6.0,sm_70"
ST_COP = "wb@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 wt@2.0,sm_20"
SHARED = "shared shared::cta@7.8 shared::cluster@7.8,sm_90"
SCOPE_128 = "cta gpu sys@8.4 cluster@7.8,sm_90"
"""Scopes of a strong access of 128 bits."""

FAMILY_100 = "sm_100a|sm_100f:8.8|sm_110a|sm_110f:8.8"
"""Targets with the data-center Blackwell features: sm_100, sm_103, sm_107, sm_110 (formerly sm_101), with suffix a or
f."""
FAMILY_100_120 = FAMILY_100 + "|sm_120a:8.7|sm_120f:8.8"
"""The same and sm_120, sm_121."""

MULTICAST = "multicast::cluster multicast::cluster::16b@9.4"
"""Multicast with a 16-bit mask."""
NO_REPORT = "mbarrier::report::disabled@9.4,sm_107f"
REPORT = NO_REPORT + " " + " ".join(
    f"mbarrier::report::validity::{pattern}@9.4,sm_107f"
    for pattern in (
        "per_16bytes::80000000", "per_16bytes::8000", "per_16bytes::80", "per_16bytes::8", "per_element::ff",
    )
)  # fmt: skip
"""Patterns for which a copy inspects the data it moves."""
