"""Facts of loads, stores, moves and address conversions that are easy to get wrong."""

from __future__ import annotations

import pytest

from pyptx.isa.model import Kind
from tests.isa.spelling import legal, matches

LEGAL = (
    ("ld.global.v8.b32", "sm_100", "8.8"),
    ("ld.global.v4.u64", "sm_120", "8.8"),
    ("ld.global.L1::evict_last.L2::evict_last.v4.u64", "sm_100", "8.8"),
    ("ld.global.ca.nc.L2::cache_hint.L2::128B.v4.f32", "sm_80", "7.4"),
    ("ld.global.L2::64B.u32", "sm_75", "7.4"),
    ("ld.volatile.local.u32", "sm_75", "9.1"),
    ("ld.mmio.acquire.sys.global.u32", "sm_75", "9.3"),
    ("ld.acquire.cluster.shared::cluster.u32", "sm_90", "7.8"),
    ("ld.proxy::readonly.global.u32", "sm_90", "9.4"),
    ("ld.relaxed.sys.global.b128", "sm_75", "8.4"),
    ("ld.param::entry.b64", "sm_75", "8.3"),
    ("ldu.global.v4.f32", "sm_75", None),
    ("st.release.gpu.global.L1::no_allocate.v2.b64", "sm_75", "7.4"),
    ("st.param.b32", "sm_75", None),
    ("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32", "sm_90", "8.1"),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b128", "sm_90", "9.2"),
    ("st.async.mmio.release.sys.global.b8", "sm_100", "8.7"),
    ("st.bulk.weak.shared::cta", "sm_100", "8.6"),
    ("multimem.ld_reduce.relaxed.gpu.global.add.acc::f32.v4.f16x2", "sm_90", "8.2"),
    ("multimem.ld_reduce.add.acc::f16.v8.e4m3", "sm_100a", "8.6"),
    ("multimem.red.release.sys.global.add.v2.bf16x2", "sm_90", "8.1"),
    ("multimem.st.async.release.gpu.global.u32", "sm_100", "9.3"),
    ("mov.b128", "sm_75", "8.3"),
    ("prefetch.global.L2::evict_last", "sm_80", "7.4"),
    ("prefetch.param.tensormap", "sm_90", "8.0"),
    ("isspacep.param::entry", "sm_75", "8.3"),
    ("cvta.to.param.u64", "sm_75", "7.7"),
    ("mapa.shared::cluster.u32", "sm_90", "7.8"),
    ("spcompress.x4.sp::2:4.b8.b2", "sm_107a", "9.4"),
)

ILLEGAL = (
    ("ld.shared.v8.b32", None, None),
    ("ld.shared.v4.b64", None, None),
    ("ld.global.v8.b16", None, None),
    ("ld.global.L2::evict_last.u32", None, None),
    ("ld.shared.L1::evict_last.u32", None, None),
    ("ld.const.L2::cache_hint.u32", None, None),
    ("ld.relaxed.u32", None, None),
    ("ld.relaxed.gpu.local.u32", None, None),
    ("ld.acquire.gpu.global.ca.u32", None, None),
    ("ld.mmio.relaxed.gpu.global.u32", None, None),
    ("ld.nc.u32", None, None),
    ("ld.global.nc.cv.u32", None, None),
    ("ld.f16", None, None),
    ("ld.global.v2.b128", None, None),
    ("ld.volatile.local.u32", "sm_90", "9.0"),
    ("ld.global.L2::256B.u32", "sm_75", "8.0"),
    ("ld.relaxed.sys.global.b128", "sm_75", "8.3"),
    ("st.const.u32", None, None),
    ("st.param::entry.u32", None, None),
    ("st.global.L2::64B.u32", None, None),
    ("st.async.shared::cluster.mbarrier::complete_tx::bytes.b8", None, None),
    ("st.async.mmio.release.gpu.global.u32", None, None),
    ("st.bulk.shared::cluster", None, None),
    ("multimem.ld_reduce.relaxed.add.u32", None, None),
    ("multimem.ld_reduce.add.s64", None, None),
    ("multimem.ld_reduce.add.acc::f16.v8.e4m3", "sm_100", None),
    ("mov.u8", None, None),
    ("mov.f16", None, None),
    ("prefetch.shared.L1", None, None),
    ("prefetchu.L2", None, None),
    ("isspacep.param::func", None, None),
    ("shfl.idx.b32", "sm_75", None),
    ("shfl.sync.idx.b64", None, None),
    ("spdecompress.x4.sp::4:8.b8.b2", None, None),
)


@pytest.mark.parametrize(("spelling", "target", "ptx"), LEGAL)
def test_legal(spelling: str, target: str | None, ptx: str | None) -> None:
    assert legal(spelling, target, ptx)


@pytest.mark.parametrize(("spelling", "target", "ptx"), ILLEGAL)
def test_illegal(spelling: str, target: str | None, ptx: str | None) -> None:
    assert not legal(spelling, target, ptx)


def test_a_vector_load_resolves_its_registers() -> None:
    (match,) = matches("ld.global.L2::cache_hint.v4.u32")
    ((d, address, policy),) = match.signatures
    assert (d.type, d.count, d.widenable, d.discardable, d.access) == ("u32", 4, True, True, "w")
    assert (address.kind, address.space) == (Kind.ADDRESS, "global")
    assert policy.type == "u64"


def test_a_store_writes_memory() -> None:
    ((address, b),) = matches("st.shared::cluster.f32")[0].signatures
    assert (address.access, address.space, b.access) == ("w", "shared::cluster", "r")


def test_only_a_vector_of_256_bits_may_leave_elements_of_memory_alone() -> None:
    assert matches("st.global.v8.b32")[0].signatures[0][1].discardable
    assert not matches("st.global.v4.b32")[0].signatures[0][1].discardable


def test_mov_packs_what_fits() -> None:
    packings = {(s[1].type, s[1].count) for match in matches("mov.b64") for s in match.signatures if s[1].count}
    assert packings == {("b16", 4), ("b32", 2)}


def test_modifiers_may_come_in_another_order_but_a_name_may_not() -> None:
    assert matches("ld.global.volatile.u32")[0].canonical == ("volatile", "global", "u32")
    assert not matches("st.weak.bulk")
    assert not matches("cvta.global.to.u64")


def test_registers_of_a_decompression_follow_its_ratio() -> None:
    ((d, metadata, values),) = matches("spdecompress.x4.sp::1:2.b8.b4")[0].signatures
    assert (d.count, metadata.count, values.count) == (2, 1, 1)
