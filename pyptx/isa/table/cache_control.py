"""Manual: Data Movement and Conversion Instructions: prefetch, prefetchu, applypriority, discard, createpolicy."""

from __future__ import annotations

from pyptx.isa.notation import form

MEANING = {
    "prefetch": "Prefetch a cache line or a tensor map.",
    "prefetchu": "Prefetch a line into the uniform cache.",
    "applypriority": "Change the eviction priority of a line.",
    "discard": "Discard an L2 line without writing it back; its contents become undefined.",
    "createpolicy.fractional": "Create a cache policy that applies a priority to a fraction of the accesses.",
    "createpolicy.range": "Create a cache policy that applies a priority to addresses in a range.",
    "createpolicy.cvt": "Create a cache policy from an access property of the CUDA API.",
}
TRAITS = {
    "prefetch": "hints",
    "prefetchu": "hints",
    "applypriority": "hints",
    "discard": "stores",
    "createpolicy.range": "hints",
}

_PREFETCH = "data-movement-and-conversion-instructions-prefetch-prefetchu"
_POLICY = "data-movement-and-conversion-instructions-createpolicy"
_FIRST = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"
_SECOND = "L2::evict_first L2::evict_unchanged"

FORMS = (
    form(
        "prefetch{.ss}.level  [a]",
        ss="global local", level="L1 L2", ptx=(2, 0), sm="sm_20", see=_PREFETCH,
    ),
    # The manual wants .global here; ptxas also accepts a generic address.
    form(
        "prefetch{.global}.priority  [a]",
        priority="L2::evict_last L2::evict_normal", since="7.4,sm_80", see=_PREFETCH,
    ),
    form("prefetch{.ss}.tensormap             [a]", ss="const param", since="8.0,sm_90", see=_PREFETCH),
    form("prefetchu.L1                        [a@generic]", ptx=(2, 0), sm="sm_20", see=_PREFETCH),
    form(
        "applypriority{.global}.L2::evict_normal  [a], size:imm[128..128]",
        since="7.4,sm_80", see="data-movement-and-conversion-instructions-applypriority",
    ),
    form(
        "discard{.global}.L2                      [a:w], size:imm[128..128]",
        since="7.4,sm_80", see="data-movement-and-conversion-instructions-discard",
    ),
    # A constant fraction is above 0 and at most 1.
    form(
        "createpolicy.fractional.first{.second}.b64      d:w.u64{, fraction:.f32}",
        first=_FIRST, second=_SECOND, since="7.4,sm_80", see=_POLICY,
    ),
    form(
        "createpolicy.range{.global}.first{.second}.b64  d:w.u64, [a], primary:.u32, total:.u32",
        first=_FIRST, second=_SECOND, since="7.4,sm_80", see=_POLICY,
    ),
    form("createpolicy.cvt.L2.b64                         d:w.u64, a:.u64", since="7.4,sm_80", see=_POLICY),
)  # fmt: skip
