"""Manual: Data Movement and Conversion Instructions: ld, ld.global.nc, ldu.

`[a].unified` (PTX 8.0, sm_90, on generic and global loads) is a suffix of the operand, not a modifier: the parser's.
"""

from __future__ import annotations

from pyptx.isa.choices import EVICT_L1 as L1
from pyptx.isa.choices import EVICT_L2 as L2
from pyptx.isa.choices import (
    HINT,
    MEM,
    MEM_128,
    MEM_VEC,
    MEM_VEC_256,
    PREFETCH,
    SCOPE,
    SCOPE_128,
    SHARED,
    WEAK,
)
from pyptx.isa.notation import form

MEANING = {
    "ld": "Load from memory.",
    "ld.global.nc": "Load from global memory through the non-coherent read-only path.",
    "ldu": "Load read-only data from an address common to the whole warp.",
}
TRAITS = {
    "ld": "loads",
    "ld.global.nc": "loads",
    "ldu": "loads",
}

_LD = "data-movement-and-conversion-instructions-ld"
_NC = "data-movement-and-conversion-instructions-ld-global-nc"
_LDU = "data-movement-and-conversion-instructions-ldu"

_LD_SPACE = "const local param param::entry@8.3 param::func@8.3 " + SHARED
_VOLATILE_SPACE = "local@9.1 " + SHARED
_LD_COP = "ca@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 lu@2.0,sm_20 cv@2.0,sm_20"
_NC_COP = "ca cg cs"

_WEAK_LOADS = (
    form("ld{.weak}{.ss}{.cop}.type      d:w.type+~, [a]", weak=WEAK, ss=_LD_SPACE, cop=_LD_COP, type=MEM_128, see=_LD),
    form(
        "ld{.weak}{.ss}{.cop}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        weak=WEAK, ss=_LD_SPACE, cop=_LD_COP, vec_type=MEM_VEC, see=_LD,
    ),
    form(
        "ld{.weak}{.global}{.cop}{.hint}{.prefetch}.type  d:w.type+~, [a]{?hint, policy:.u64}",
        weak=WEAK, cop=_LD_COP, hint=HINT, prefetch=PREFETCH, type=MEM_128, see=_LD,
    ),
    form(
        "ld{.weak}{.global}{.cop}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        weak=WEAK, cop=_LD_COP, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC, see=_LD,
    ),
    form(
        "ld{.weak}{.global}.evict1{.hint}{.prefetch}.type  d:w.type+~, [a]{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, hint=HINT, prefetch=PREFETCH, type=MEM_128, see=_LD,
    ),
    form(
        "ld{.weak}{.global}.evict1{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC, see=_LD,
    ),
    form(
        "ld{.weak}{.global}{.cop}{.evict2}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        weak=WEAK, cop=_LD_COP, evict2=L2, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC_256, see=_LD,
    ),
    form(
        "ld{.weak}{.global}.evict1{.evict2}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, evict2=L2, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC_256, see=_LD,
    ),
)  # fmt: skip

_STRONG_LOADS = (
    form("ld.volatile{.ss}.type      d:w.type+~, [a]", ss=_VOLATILE_SPACE, type=MEM_128, ptx=(1, 1), see=_LD),
    form(
        "ld.volatile{.ss}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        ss=_VOLATILE_SPACE, vec_type=MEM_VEC, ptx=(1, 1), see=_LD,
    ),
    form(
        "ld.volatile{.global}{.prefetch}.type  d:w.type+~, [a]",
        prefetch=PREFETCH, type=MEM_128, ptx=(1, 1), see=_LD,
    ),
    form(
        "ld.volatile{.global}{.prefetch}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        prefetch=PREFETCH, vec_type=MEM_VEC, ptx=(1, 1), see=_LD,
    ),
    form(
        "ld.volatile{.global}{.evict2}{.prefetch}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        evict2=L2, prefetch=PREFETCH, vec_type=MEM_VEC_256, ptx=(1, 1), see=_LD,
    ),
    form(
        "ld.sem.scope.ss.type  d:w.type+~, [a]",
        sem="relaxed acquire", scope=SCOPE, ss=SHARED, type=MEM, ptx=(6, 0), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope.ss.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        sem="relaxed acquire", scope=SCOPE, ss=SHARED, vec_type=MEM_VEC, ptx=(6, 0), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope.ss.b128  d:w.b128~, [a]",
        sem="relaxed acquire", scope=SCOPE_128, ss=SHARED, ptx=(8, 3), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope{.global}{.evict1}{.hint}{.prefetch}.type  d:w.type+~, [a]{?hint, policy:.u64}",
        sem="relaxed acquire", scope=SCOPE, evict1=L1, hint=HINT, prefetch=PREFETCH, type=MEM,
        ptx=(6, 0), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope{.global}{.evict1}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        sem="relaxed acquire", scope=SCOPE, evict1=L1, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC,
        ptx=(6, 0), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope{.global}{.evict1}{.evict2}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        sem="relaxed acquire", scope=SCOPE, evict1=L1, evict2=L2, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC_256,
        ptx=(6, 0), sm="sm_70", see=_LD,
    ),
    form(
        "ld.sem.scope{.global}{.evict1}{.hint}{.prefetch}.b128  d:w.b128~, [a]{?hint, policy:.u64}",
        sem="relaxed acquire", scope=SCOPE_128, evict1=L1, hint=HINT, prefetch=PREFETCH,
        ptx=(8, 3), sm="sm_70", see=_LD,
    ),
    # The manual asks sm_75 of .mmio.acquire; ptxas accepts it on sm_70.
    form(
        "ld.mmio.sem.sys{.global}.type  d:w.type+~, [a]",
        sem="relaxed acquire@9.3", type=MEM + " b128@8.4", ptx=(8, 2), sm="sm_70", see=_LD,
    ),
)  # fmt: skip

_READ_ONLY_LOADS = (
    form(
        "ld.global{.cop}.nc{.hint}{.prefetch}.type  d:w.type+~, [a]{?hint, policy:.u64}",
        cop=_NC_COP, hint=HINT, prefetch=PREFETCH, type=MEM_128, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    form(
        "ld.global{.cop}.nc{.hint}{.prefetch}.vec_type  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        cop=_NC_COP, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    form(
        "ld.global.nc.evict1{.hint}{.prefetch}.type  d:w.type+~, [a]{?hint, policy:.u64}",
        evict1=L1, hint=HINT, prefetch=PREFETCH, type=MEM_128, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    form(
        "ld.global.nc.evict1{.hint}{.prefetch}.vec_type  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        evict1=L1, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    form(
        "ld.global{.cop}.nc{.evict2}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        cop=_NC_COP, evict2=L2, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC_256, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    form(
        "ld.global.nc.evict1{.evict2}{.hint}{.prefetch}.vec_type"
        "  d:w_.vec_type/1+*vec_type, [a]{?hint, policy:.u64}",
        evict1=L1, evict2=L2, hint=HINT, prefetch=PREFETCH, vec_type=MEM_VEC_256, ptx=(3, 1), sm="sm_32", see=_NC,
    ),
    # Undocumented; ptxas knows the proxy since PTX 9.4.
    form("ld.proxy::readonly{.global}.type  d:w.type+~, [a]", type=MEM, ptx=(9, 4), sm="sm_90", see=_LD),
    form(
        "ld.proxy::readonly{.global}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        vec_type=MEM_VEC, ptx=(9, 4), sm="sm_90", see=_LD,
    ),
    form(
        "ld.proxy::readonly{.global}{.evict2}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        evict2=L2, vec_type=MEM_VEC_256, ptx=(9, 4), sm="sm_90", see=_LD,
    ),
    form("ld.proxy::readonly.global.nc.type  d:w.type+~, [a]", type=MEM, ptx=(9, 4), sm="sm_90", see=_NC),
    form(
        "ld.proxy::readonly.global.nc.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        vec_type=MEM_VEC, ptx=(9, 4), sm="sm_90", see=_NC,
    ),
    form(
        "ld.proxy::readonly.global.nc{.evict2}.vec_type  d:w_.vec_type/1+*vec_type, [a]",
        evict2=L2, vec_type=MEM_VEC_256, ptx=(9, 4), sm="sm_90", see=_NC,
    ),
    form("ldu{.global}.type      d:w.type+~, [a]", type=MEM_128, ptx=(2, 0), sm="sm_20", see=_LDU),
    form("ldu{.global}.vec_type  d:w_.vec_type/1+*vec_type, [a]", vec_type=MEM_VEC, ptx=(2, 0), sm="sm_20", see=_LDU),
)  # fmt: skip

FORMS = (*_WEAK_LOADS, *_STRONG_LOADS, *_READ_ONLY_LOADS)
