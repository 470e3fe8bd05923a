"""Manual: Data Movement and Conversion Instructions: st, st.async, st.bulk."""

from __future__ import annotations

from pyptx.isa.choices import EVICT_L1 as L1
from pyptx.isa.choices import EVICT_L2 as L2
from pyptx.isa.choices import HINT, MEM, MEM_128, MEM_VEC, MEM_VEC_256, SCOPE, SCOPE_128, SHARED, ST_COP, WEAK
from pyptx.isa.notation import form

MEANING = {
    "st": "Store to memory.",
    "st.async": "Store asynchronously; an mbarrier or release order signals completion.",
    "st.bulk": "Fill a region of shared memory with zero.",
}
TRAITS = {
    "st": "stores",
    "st.async": "issues:store",
    "st.bulk": "stores",
}

_ST = "data-movement-and-conversion-instructions-st"
_ASYNC = "data-movement-and-conversion-instructions-st-async"
_BULK = "data-movement-and-conversion-instructions-st-bulk"

_ST_SPACE = "local param param::func@8.3 " + SHARED
_VOLATILE_SPACE = "local@9.1 " + SHARED
_ASYNC_SPACE = "shared::cluster shared::cta shared"
"""The manual has shared::cluster only; ptxas accepts an address of the CTA's own window too."""

_STORES = (
    form("st{.weak}{.ss}{.cop}.type  [a:w], b:.type+~", weak=WEAK, ss=_ST_SPACE, cop=ST_COP, type=MEM_128, see=_ST),
    form(
        "st{.weak}{.ss}{.cop}.vec_type  [a:w], b:.vec_type/1+*vec_type",
        weak=WEAK, ss=_ST_SPACE, cop=ST_COP, vec_type=MEM_VEC, see=_ST,
    ),
    form(
        "st{.weak}{.global}{.cop}{.hint}.type  [a:w], b:.type+~{?hint, policy:.u64}",
        weak=WEAK, cop=ST_COP, hint=HINT, type=MEM_128, see=_ST,
    ),
    form(
        "st{.weak}{.global}{.cop}{.hint}.vec_type  [a:w], b:.vec_type/1+*vec_type{?hint, policy:.u64}",
        weak=WEAK, cop=ST_COP, hint=HINT, vec_type=MEM_VEC, see=_ST,
    ),
    # In a vector of 256 bits, and only there, `_` leaves an element of memory as it is.
    form(
        "st{.weak}{.global}{.cop}{.evict2}{.hint}.vec_type  [a:w], b:r_.vec_type/1+*vec_type{?hint, policy:.u64}",
        weak=WEAK, cop=ST_COP, evict2=L2, hint=HINT, vec_type=MEM_VEC_256, see=_ST,
    ),
    form(
        "st{.weak}{.global}.evict1{.hint}.type  [a:w], b:.type+~{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, hint=HINT, type=MEM_128, see=_ST,
    ),
    form(
        "st{.weak}{.global}.evict1{.hint}.vec_type  [a:w], b:.vec_type/1+*vec_type{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, hint=HINT, vec_type=MEM_VEC, see=_ST,
    ),
    form(
        "st{.weak}{.global}.evict1{.evict2}{.hint}.vec_type  [a:w], b:r_.vec_type/1+*vec_type{?hint, policy:.u64}",
        weak=WEAK, evict1=L1, evict2=L2, hint=HINT, vec_type=MEM_VEC_256, see=_ST,
    ),
    form("st.volatile{.ss}.type  [a:w], b:.type+~", ss=_VOLATILE_SPACE, type=MEM_128, ptx=(1, 1), see=_ST),
    form(
        "st.volatile{.ss}.vec_type  [a:w], b:.vec_type/1+*vec_type",
        ss=_VOLATILE_SPACE, vec_type=MEM_VEC, ptx=(1, 1), see=_ST,
    ),
    form("st.volatile.global.type  [a:w], b:.type+~", type=MEM_128, ptx=(1, 1), see=_ST),
    form("st.volatile.global.vec_type  [a:w], b:.vec_type/1+*vec_type", vec_type=MEM_VEC, ptx=(1, 1), see=_ST),
    form(
        "st.volatile{.global}{.evict2}.vec_type  [a:w], b:r_.vec_type/1+*vec_type",
        evict2=L2, vec_type=MEM_VEC_256, ptx=(1, 1), see=_ST,
    ),
    form(
        "st.sem.scope.ss.type  [a:w], b:.type+~",
        sem="relaxed release", scope=SCOPE, ss=SHARED, type=MEM, ptx=(6, 0), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope.ss.vec_type  [a:w], b:.vec_type/1+*vec_type",
        sem="relaxed release", scope=SCOPE, ss=SHARED, vec_type=MEM_VEC, ptx=(6, 0), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope.ss.b128  [a:w], b:val~",
        sem="relaxed release", scope=SCOPE_128, ss=SHARED, ptx=(8, 3), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope{.global}{.evict1}{.hint}.type  [a:w], b:.type+~{?hint, policy:.u64}",
        sem="relaxed release", scope=SCOPE, evict1=L1, hint=HINT, type=MEM, ptx=(6, 0), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope{.global}{.evict1}{.hint}.vec_type  [a:w], b:.vec_type/1+*vec_type{?hint, policy:.u64}",
        sem="relaxed release", scope=SCOPE, evict1=L1, hint=HINT, vec_type=MEM_VEC, ptx=(6, 0), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope{.global}{.evict1}{.evict2}{.hint}.vec_type"
        "  [a:w], b:r_.vec_type/1+*vec_type{?hint, policy:.u64}",
        sem="relaxed release", scope=SCOPE, evict1=L1, evict2=L2, hint=HINT, vec_type=MEM_VEC_256,
        ptx=(6, 0), sm="sm_70", see=_ST,
    ),
    form(
        "st.sem.scope{.global}{.evict1}{.hint}.b128  [a:w], b:val~{?hint, policy:.u64}",
        sem="relaxed release", scope=SCOPE_128, evict1=L1, hint=HINT, ptx=(8, 3), sm="sm_70", see=_ST,
    ),
    # The manual knows .mmio.relaxed only; ptxas accepts .release since PTX 9.3.
    form(
        "st.mmio.sem.sys{.global}.type  [a:w], b:.type+~",
        sem="relaxed release@9.3", type=MEM + " b128@8.4", ptx=(8, 2), sm="sm_70", see=_ST,
    ),
)  # fmt: skip

_ASYNC_STORES = (
    form(
        "st.async{.weak}{.ss}.mbarrier::complete_tx::bytes{.vec}.type  [a:w], b:.type~*vec, [mbar:rw]",
        weak="weak", ss=_ASYNC_SPACE, vec="v2", type="b32 b64 u32 u64 s32 s64 f32 f64", since="8.1,sm_90", see=_ASYNC,
    ),
    form(
        "st.async{.weak}{.ss}.mbarrier::complete_tx::bytes.v4.type  [a:w], b:.type*4, [mbar:rw]",
        weak="weak", ss=_ASYNC_SPACE, type="b32 u32 s32 f32", since="8.1,sm_90", see=_ASYNC,
    ),
    form(
        "st.async{.weak}{.ss}.mbarrier::complete_tx::bytes.b128  [a:w], b, [mbar:rw]",
        weak="weak", ss=_ASYNC_SPACE, since="9.2,sm_90", see=_ASYNC,
    ),
    # The scope that the weak store had in PTX 8.1; it changes nothing.
    form(
        "st.async.cluster{.shared::cluster}.mbarrier::complete_tx::bytes{.vec}.type  [a:w], b:.type~*vec, [mbar:rw]",
        vec="v2", type="b32 b64 u32 u64 s32 s64 f32 f64", since="8.1,sm_90", see=_ASYNC,
    ),
    form(
        "st.async.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.v4.type  [a:w], b:.type*4, [mbar:rw]",
        type="b32 u32 s32 f32", since="8.1,sm_90", see=_ASYNC,
    ),
    form(
        "st.async.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.b128  [a:w], b, [mbar:rw]",
        since="9.2,sm_90", see=_ASYNC,
    ),
    form(
        "st.async.release.scope{.global}.type  [a:w], b",
        scope="gpu sys", type=MEM, since="8.7,sm_100", see=_ASYNC,
    ),
    form("st.async.mmio.release.sys{.global}.type  [a:w], b", type=MEM, since="8.7,sm_100", see=_ASYNC),
    # ptxas also accepts these, which lack the order or the mechanism that the manual demands. On sm_90 it parses the
    # second and then fails with an internal error.
    form(
        "st.async{.weak}{.ss}.type  [a:w], b",
        weak="weak", ss="shared global@8.7,sm_100", type=MEM, since="8.1,sm_90", see=_ASYNC,
    ),
    form(
        "st.async.scope{.ss}.type  [a:w], b",
        scope="gpu sys", ss="global@8.7,sm_100", type=MEM, since="8.1,sm_90", see=_ASYNC,
    ),
    # With .shared::cta ptxas accepts the address in a register only; a generic one may name a variable.
    *(
        form(f"st.bulk{{.weak}}{space}, {size}, initval:imm[0..0]", weak="weak", since=since, see=_BULK)
        for space in ("  [a@generic:w]", ".shared::cta  [a:wreg]")
        for size, since in (
            ("size:reg.u64", "8.6,sm_100"),
            ("size:reg.u32", "9.0,sm_100"),
            ("size:imm[0..16777216/8].u64", "8.6,sm_100"),
        )
    ),
)  # fmt: skip

FORMS = (*_STORES, *_ASYNC_STORES)
