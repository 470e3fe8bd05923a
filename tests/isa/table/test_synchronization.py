"""Facts of the barrier, fence, warp and atomic rows that are easy to get wrong."""

from __future__ import annotations

import pytest

from tests.isa.spelling import legal, matches, operands


@pytest.mark.parametrize(
    ("spelling", "target", "ptx", "expected"),
    [
        ("bar.sync", "sm_20", "3.0", True),
        ("bar.cta.sync", "sm_80", "7.7", False),
        ("bar.sync.aligned", None, None, False),
        ("barrier.sync.aligned", "sm_30", "5.1", True),
        ("barrier.red.popc.pred", None, None, False),
        ("bar.warp.sync", "sm_20", None, False),
        ("barrier.cluster.arrive.relaxed", "sm_90", "7.8", False),
        ("barrier.cluster.arrive.acquire", None, None, False),
        ("barrier.cluster.wait.acquire.aligned", "sm_90", "8.0", True),
        ("membar.gpu", None, None, False),
        ("membar.proxy.async.global", None, None, False),
        ("fence.cta", "sm_70", "6.0", True),
        ("fence.acquire.cta", "sm_89", None, False),
        ("fence.acq_rel.cluster", "sm_89", None, False),
        ("fence.relaxed.gpu", None, None, False),
        ("fence.proxy.alias", "sm_70", "7.5", True),
        ("fence.proxy.async.shared::cta", "sm_90", "8.0", True),
        ("fence.proxy.async.shared", None, None, False),
        ("fence.proxy.tensormap::generic.release.gpu", "sm_90", "8.3", True),
        ("fence.proxy.generic::tensormap.release.gpu", None, None, False),
        ("fence.acquire.sync_restrict::shared::cluster.cluster", "sm_90", "8.6", True),
        ("fence.acquire.sync_restrict::shared::cta.cluster", None, None, False),
        ("fence.mbarrier_init.release.cluster", "sm_90", "8.0", True),
        ("fence.proxy.fabric::generic.alias.acquire.sys", "sm_90a", None, False),
        ("vote.all.pred", "sm_60", None, True),
        ("vote.all.pred", "sm_70", "6.3", True),
        ("vote.all.pred", "sm_70", "6.4", False),
        ("vote.sync.ballot.pred", None, None, False),
        ("match.any.sync.b32", "sm_62", None, False),
        ("match.any.sync.u32", None, None, False),
        ("redux.sync.and.u32", None, None, False),
        ("redux.sync.min.abs.NaN.f32", "sm_100a", "8.6", True),
        ("redux.sync.min.f32", "sm_103f", "8.8", True),
        ("redux.sync.min.f32", "sm_120a", None, False),
        ("redux.sync.add.f32", None, None, False),
        ("elect.sync", "sm_89", None, False),
        ("atom.add.s64", None, None, False),
        ("atom.min.s64", "sm_30", None, False),
        ("atom.min.s64", "sm_32", "4.0", True),
        ("atom.min.f32", None, None, False),
        ("atom.add.f64", "sm_53", None, False),
        ("atom.shared.add.L2::cache_hint.u32", None, None, False),
        ("atom.cas.L2::cache_hint.b32", None, None, False),
        ("atom.add.f16", None, None, False),
        ("atom.add.noftz.f32", "sm_90", "9.3", False),
        ("atom.shared::cta.add.u32", "sm_20", "7.8", True),
        ("atom.shared::cluster.add.u32", "sm_89", None, False),
        ("atom.sys.exch.b128", "sm_90", "8.3", False),
        ("atom.gpu.exch.b128", "sm_90", "8.3", True),
        ("atom.shared.add.v2.f32", None, None, False),
        ("atom.global.max.noftz.v8.bf16", "sm_90", "8.1", True),
        ("atom.global.max.noftz.v8.bf16x2", None, None, False),
        ("atom.sc.gpu.add.u32", None, None, False),
        ("red.acquire.gpu.add.u32", None, None, False),
        ("red.release.gpu.global.add.u32", "sm_70", "6.0", True),
        ("red.exch.b32", None, None, False),
        ("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.add.u64", "sm_90", "8.1", True),
        ("red.async.release.sys.global.add.s64", "sm_90a", None, False),
        ("red.async.mmio.release.gpu.add.u32", None, None, False),
        ("multimem.red.async.release.gpu.add.s64", None, None, False),
    ],
)
def test_where_a_spelling_is_legal(spelling: str, target: str | None, ptx: str | None, expected: bool) -> None:
    assert legal(spelling, target, ptx) is expected


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("bar.sync", ["a:.u32, b:.u32", "a:.u32"]),
        ("bar.arrive", ["a:.u32, b:.u32"]),
        ("bar.red.popc.u32", ["d:.u32, a:.u32, b:.u32, c:.pred", "d:.u32, a:.u32, c:.pred"]),
        ("barrier.cluster.wait", [""]),
        ("fence.proxy.tensormap::generic.release.cta", [""]),
        ("fence.proxy.tensormap::generic.acquire.cta", ["[addr], size"]),
        ("vote.sync.any.pred", ["d:.pred, a:.pred, membermask:.u32"]),
        ("match.all.sync.b64", ["d:.u32|p:.pred, a:.b64, membermask:.u32"]),
        ("elect.sync", ["d:.u32|p:.pred, membermask:.u32"]),
        ("redux.sync.max.s32", ["d:.s32, a:.s32, membermask:.u32"]),
        ("atom.cas.b64", ["d:.b64, [a:.b64], b:.b64, c:.b64"]),
        ("atom.add.L2::cache_hint.f32", ["d:.f32, [a:.f32], b:.f32, policy:.b64"]),
        ("red.add.noftz.v4.f16", ["[a:.f16], {b x4}:.f16"]),
        (
            "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32",
            ["[a:.u32], b:.u32, [mbar:.u32]"],
        ),
        ("red.async.release.gpu.add.u64", ["[a:.u64], b:.u64"]),
    ],
)
def test_operands(spelling: str, expected: list[str]) -> None:
    assert operands(spelling) == expected


def test_barriers_are_numbered_to_15_and_count_whole_warps() -> None:
    (sync,), (arrive,) = matches("barrier.sync"), matches("barrier.arrive")
    assert sync.signatures[0][0].bounds == (0, 15, 1)
    assert sync.signatures[0][1].bounds is not None
    assert sync.signatures[0][1].bounds[::2] == (0, 32)
    assert arrive.signatures[0][1].bounds is not None
    assert arrive.signatures[0][1].bounds[0] == 32


def test_atomics_read_and_write_memory_and_may_drop_the_result() -> None:
    (match,) = matches("atom.global.add.u32")
    result, address, _ = match.signatures[0]
    assert (result.access, result.discardable) == ("w", True)
    assert (address.access, address.space) == ("rw", "global")
    assert matches("red.shared::cta.add.u32")[0].signatures[0][0].space == "shared::cta"


def test_one_result_of_a_pair_may_be_dropped() -> None:
    pair = matches("elect.sync")[0].signatures[0][0]
    assert [part.discardable for part in pair.parts] == [True, False]
    assert pair.optional_parts == 0
