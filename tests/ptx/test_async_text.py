"""The exact text of wrappers that synchronize, copy and exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyptx import TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import b32, b64, bf16, f16x2, f32, f64, pred, s32, u16, u32, u64
from tests.dsl.tracing import assert_accepted, code, make_kernel


class Operands:
    """Registers of each kind, created in the order that yields the names in the tests."""

    def __init__(self) -> None:
        self.r, self.i, self.rd, self.p, self.f, self.mask = (reg.alloc(t) for t in (u32, s32, b64, pred, f32, u16))
        self.tile, self.bars = smem.alloc(f32, (4, 8), name="tile"), smem.mbarrier(4, name="bars")


BULK = ptx.cp.async_.bulk
LOAD = "shared::cluster.global.tile.mbarrier::complete_tx::bytes"
CASES: list[tuple[Callable[[Operands], Any], str]] = [
    (lambda x: ptx.mbarrier.init(x.bars[1], 3), "mbarrier.init.shared::cta.b64 [bars+8], 3;"),
    (lambda x: ptx.mbarrier.inval(x.bars, pred=x.p), "@%p0 mbarrier.inval.shared.b64 [bars];"),
    (lambda x: ptx.mbarrier.arrive(x.bars[2]), "mbarrier.arrive.shared.b64 %rd1, [bars+16];"),
    (
        lambda x: ptx.mbarrier.arrive(x.bars[0], scope="cluster"),
        "mbarrier.arrive.release.cluster.shared.b64 %rd1, [bars];",
    ),
    (
        lambda x: ptx.mbarrier.arrive(x.r, sem="relaxed", count=2),
        "mbarrier.arrive.relaxed.cta.shared.b64 %rd1, [%r0], 2;",
    ),
    (
        lambda x: ptx.mbarrier.arrive_expect_tx(x.bars[0], 4096),
        "mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [bars], 4096;",
    ),
    (
        lambda x: ptx.mbarrier.arrive_expect_tx(x.bars[0], x.r, sem="relaxed", scope="cluster", pred=~x.p),
        "@!%p0 mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 %rd1, [bars], %r0;",
    ),
    (lambda x: ptx.mbarrier.arrive_no_complete(x.bars[0], 1), "mbarrier.arrive.noComplete.shared.b64 %rd1, [bars], 1;"),
    (lambda x: ptx.mbarrier.arrive_drop(x.bars[0]), "mbarrier.arrive_drop.shared.b64 %rd1, [bars];"),
    (lambda x: ptx.mbarrier.arrive_mapped(x.r), "mbarrier.arrive.shared::cluster.b64 _, [%r0];"),
    (lambda x: ptx.mbarrier.expect_tx(x.bars[0], 128), "mbarrier.expect_tx.shared.b64 [bars], 128;"),
    (lambda x: ptx.mbarrier.complete_tx(x.bars[0], 128), "mbarrier.complete_tx.shared.b64 [bars], 128;"),
    (lambda x: ptx.mbarrier.pending_count(x.rd), "mbarrier.pending_count.b64 %r2, %rd0;"),
    (lambda x: ptx.mbarrier.try_wait(x.bars[1], 0), "mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 0;"),
    (
        lambda x: ptx.mbarrier.try_wait(x.bars[1], x.rd, parity=False, suspend_hint=50, scope="cluster"),
        "mbarrier.try_wait.acquire.cluster.shared.b64 %p1, [bars+8], %rd0, 50;",
    ),
    (lambda x: ptx.mbarrier.test_wait(x.r, x.r), "mbarrier.test_wait.parity.shared.b64 %p1, [%r0], %r0;"),
    (lambda x: ptx.fence.proxy_async(), "fence.proxy.async;"),
    (lambda x: ptx.fence.proxy_async_shared_cta(), "fence.proxy.async.shared::cta;"),
    (lambda x: ptx.fence.mbarrier_init(), "fence.mbarrier_init.release.cluster;"),
    (
        lambda x: ptx.fence.proxy_async_generic_acquire_shared_cluster(),
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
    ),
    (
        lambda x: ptx.fence.proxy_async_generic_release_shared_cta(pred=x.p),
        "@%p0 fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
    ),
    (lambda x: ptx.fence.acq_rel("cluster"), "fence.acq_rel.cluster;"),
    (lambda x: ptx.fence.membar(), "membar.gl;"),
    (lambda x: ptx.bar.sync(), "bar.sync 0;"),
    (lambda x: ptx.bar.sync(x.r, 128, pred=x.p), "@%p0 bar.sync %r0, 128;"),
    (lambda x: ptx.bar.arrive(1, 64), "bar.arrive 1, 64;"),
    (lambda x: ptx.bar.red_or(~x.p, 2), "bar.red.or.pred %p1, 2, !%p0;"),
    (lambda x: ptx.bar.warp_sync(), "bar.warp.sync 4294967295;"),
    (lambda x: ptx.cluster.arrive(aligned=True, sem="relaxed"), "barrier.cluster.arrive.relaxed.aligned;"),
    (lambda x: ptx.cluster.arrive(), "barrier.cluster.arrive;"),
    (lambda x: ptx.cluster.wait(aligned=True), "barrier.cluster.wait.aligned;"),
    (lambda x: ptx.cluster.map_shared_u32(x.bars[1], x.r), "mapa.shared::cluster.u32 %r2, bars+8, %r0;"),
    (lambda x: ptx.cvta.param(x.rd), "cvta.param.u64 %rd1, %rd0;"),
    (lambda x: ptx.cvta.to_global(x.rd, x.rd), "cvta.to.global.u64 %rd0, %rd0;"),
    (lambda x: ptx.cvta.shared(x.tile[1]), "cvta.shared.u64 %rd1, tile+32;"),
    (lambda x: ptx.griddepcontrol.wait(), "griddepcontrol.wait;"),
    (lambda x: ptx.cp.async_.cg(x.tile[1], x.rd, 16), "cp.async.cg.shared.global [tile+32], [%rd0], 16;"),
    (
        lambda x: ptx.cp.async_.cg(x.r, ptx.addr(x.rd, -16), 16, ignore_src=~x.p, cache_hint=x.rd, prefetch="L2::128B"),
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r0], [%rd0+-16], 16, !%p0, %rd0;",
    ),
    (lambda x: ptx.cp.async_.ca(x.r, x.rd, 4, src_size=x.r), "cp.async.ca.shared.global [%r0], [%rd0], 4, %r0;"),
    (lambda x: ptx.cp.async_.wait_group(2), "cp.async.wait_group 2;"),
    (
        lambda x: ptx.cp.async_.mbarrier_arrive(x.bars[3], noinc=True),
        "cp.async.mbarrier.arrive.noinc.shared.b64 [bars+24];",
    ),
    (lambda x: ptx.cp.async_bulk.wait_group(0, read=True), "cp.async.bulk.wait_group.read 0;"),
    (
        lambda x: BULK.global_to_shared(x.tile, x.rd, 512, x.bars[0], multicast_mask=3, cache_hint=x.rd),
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint "
        "[tile], [%rd0], 512, [bars], 3, %rd0;",
    ),
    (
        lambda x: BULK.shared_to_global(x.rd, x.tile, 64),
        "cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 64;",
    ),
    (
        lambda x: BULK.reduce_to_global("add", bf16, x.rd, x.tile, 64),
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%rd0], [tile], 64;",
    ),
    (
        lambda x: BULK.tensor_2d(dst=x.tile[2], src=x.rd, coord=(x.i, 0), mbar=x.bars[1]),
        f"cp.async.bulk.tensor.2d.{LOAD} [tile+64], [%rd0, {{%r1, 0}}], [bars+8];",
    ),
    (
        lambda x: BULK.tensor_5d(dst=x.r, src=x.rd, coord=(0, 1, 2, 3, -4), mbar=x.bars[1],
                                 multicast_mask=x.mask, pred=x.p),
        f"@%p0 cp.async.bulk.tensor.5d.{LOAD}.multicast::cluster [%r0], [%rd0, {{0, 1, 2, 3, -4}}], [bars+8], %rs0;",
    ),
    (
        lambda x: BULK.tensor.tile_2d(x.r, x.rd, reg.array(s32, 2, name="c"), mbar=x.r),
        f"cp.async.bulk.tensor.2d.{LOAD} [%r0], [%rd0, {{%c0, %c1}}], [%r0];",
    ),
    (
        lambda x: BULK.tensor_2d.store(dst=x.rd, src=x.tile[1], coord=(0, x.i)),
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd0, {0, %r1}], [tile+32];",
    ),
    (
        lambda x: BULK.tensor.store_1d(x.rd, x.tile, x.i, cache_hint=x.rd),
        "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.L2::cache_hint [%rd0, {%r1}], [tile], %rd0;",
    ),
    (
        lambda x: BULK.tensor.im2col_4d(x.tile, x.rd, (0, 1, 2, 3), offsets=(x.mask, 1), mbar=x.bars[0]),
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
        "[tile], [%rd0, {0, 1, 2, 3}], [bars], {%rs0, 1};",
    ),
    (
        lambda x: BULK.tensor_3d.shared_cta_global_tile(dst=x.tile, src=x.rd, coord=(0, 1, 2), mbar=x.bars[0]),
        f"cp.async.bulk.tensor.3d.{LOAD.replace('cluster', 'cta')} [tile], [%rd0, {{0, 1, 2}}], [bars];",
    ),
    (
        lambda x: ptx.tma.load_3d(x.tile, x.rd, x.r, 128, x.bars[0]),
        f"cp.async.bulk.tensor.3d.{LOAD} [tile], [%rd0, {{0, %r0, 2}}], [bars];",
    ),
    (
        lambda x: ptx.tma.store_3d(x.rd, x.tile, coords=(0, x.i, 7)),
        "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd0, {0, %r1, 7}], [tile];",
    ),
    (
        lambda x: ptx.tensormap.replace("global_dim", x.rd, x.r, dim=1),
        "tensormap.replace.tile.global_dim.global.b1024.b32 [%rd0], 1, %r0;",
    ),
    (lambda x: ptx.atom.add(s32, x.i, x.rd, -1), "atom.global.add.s32 %r1, [%rd0], -1;"),
    (lambda x: ptx.atom.cas(u64, None, x.r, 0, x.rd, space="shared"), "atom.shared.cas.b64 _, [%r0], 0, %rd0;"),
    (
        lambda x: ptx.red.add(f16x2, x.rd, reg.array(f16x2, 2, name="v"), sem="release", scope="gpu"),
        "red.release.gpu.global.add.noftz.v2.f16x2 [%rd0], {%v0, %v1};",
    ),
    (lambda x: ptx.red.max(b32, x.rd, x.r, space=""), "red.max.u32 [%rd0], %r0;"),
    (
        lambda x: ptx.st_async(f32, x.r, [x.f, x.f], x.r),
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [%r0], {%f0, %f0}, [%r0];",
    ),
    (
        lambda x: ptx.multimem.ld_reduce("add", f32, x.f, x.rd, sem="acquire", scope="sys"),
        "multimem.ld_reduce.acquire.sys.global.add.f32 %f0, [%rd0];",
    ),
    (lambda x: ptx.prefetch(x.rd, level="L2::evict_last"), "prefetch.global.L2::evict_last [%rd0];"),
    (
        lambda x: ptx.createpolicy_fractional("evict_first", fraction=0.5),
        "createpolicy.fractional.L2::evict_first.b64 %rd1, 0f3F000000;",
    ),
    (lambda x: ptx.warp.shfl_idx(x.f, 0), "shfl.sync.idx.b32 %f1, %f0, 0, 31, 4294967295;"),
    (lambda x: ptx.warp.shfl_up(x.f, 1, width=16, valid=x.p), "shfl.sync.up.b32 %f1|%p0, %f0, 1, 4096, 4294967295;"),
    (lambda x: ptx.warp.ballot(~x.p, mask=x.r), "vote.sync.ballot.b32 %r2, !%p0, %r0;"),
    (lambda x: ptx.warp.match_all(x.rd), "match.all.sync.b64 %r2|%p1, %rd0, 4294967295;"),
    (lambda x: ptx.warp.redux("max", x.i), "redux.sync.max.s32 %r2, %r1, 4294967295;"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), CASES, ids=[expected for _, expected in CASES])
def test_a_wrapper_emits_exactly_its_instruction(call: Callable[[Operands], Any], expected: str) -> None:
    def body() -> None:
        call(Operands())

    assert code(body) == [expected]


@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_pairs_of_ctas(arch: str) -> None:
    def body() -> None:
        x = Operands()
        BULK.tensor_2d(
            dst=x.tile, src=x.rd, coord=(0, 1), mbar=x.bars[0], cta_group=2, multicast_mask=3, cache_hint=x.rd
        )

    assert code(body, arch=arch) == [
        f"cp.async.bulk.tensor.2d.{LOAD}.multicast::cluster.cta_group::2.L2::cache_hint "
        "[tile], [%rd0, {0, 1}], [bars], 3, %rd0;"
    ]


def test_a_tensor_stands_for_its_map() -> None:
    @kernel(in_specs=(Tile(64, 64, f32),), out_specs=(Tile(64, 64, f32),))
    def copies(a: TensorSpec, b: TensorSpec) -> None:
        tile, bar = smem.alloc(f32, (64, 64), name="tile"), smem.mbarrier(1, name="bar")
        p = reg.scalar(u32, 0) == 0
        with ptx.if_(p):
            BULK.tensor_2d(dst=tile, src=a, coord=(0, 0), mbar=bar[0])
        BULK.tensor_2d.store(dst=b.tma_desc(), src=tile, coord=(0, 0))
        ptx.prefetch_tensormap(a)

    text = copies.ptx()
    assert_accepted(text)
    lines = [line.strip() for line in text.splitlines()]
    first = lines.index("mov.b64 %rd0, a_tma_desc;")
    assert lines[first + 1 : first + 4] == [
        "cvta.param.u64 %rd1, %rd0;", "mov.b64 %rd2, b_tma_desc;", "cvta.param.u64 %rd3, %rd2;",
    ]  # fmt: skip
    assert "prefetch.tensormap [%rd1];" in lines


def test_a_wait_is_a_loop_with_a_label_of_its_own() -> None:
    def body() -> None:
        x = Operands()
        ptx.mbarrier.wait(x.bars[1], 0)
        ptx.mbarrier.wait(x.bars[1], x.r, scope="cluster")

    assert code(body) == [
        "$mbarrier_wait:", "mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], 0;", "@!%p1 bra $mbarrier_wait;",
        "$mbarrier_wait_1:", "mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p2, [bars+8], %r0;",
        "@!%p2 bra $mbarrier_wait_1;",
    ]  # fmt: skip


def test_08_a_guard_skips_the_whole_wait() -> None:
    def body() -> None:
        x = Operands()
        ptx.mbarrier.wait(x.bars[1], x.r, pred=~x.p)

    assert code(body) == [
        "@%p0 bra $mbarrier_wait_skip;", "$mbarrier_wait:", "mbarrier.try_wait.parity.shared.b64 %p1, [bars+8], %r0;",
        "@!%p1 bra $mbarrier_wait;", "$mbarrier_wait_skip:",
    ]  # fmt: skip


def test_rings_of_barriers_keep_their_offsets() -> None:
    def body() -> None:
        x = Operands()
        ring = ptx.mbarrier.array(smem.base(), 64, 2)
        ring.init_all(3)
        slot = ring.at(x.r)
        slot.wait(0)
        slot.arrive_expect_tx(32, pred=x.p)
        BULK.global_to_shared(x.tile, x.rd, 32, ring[-1])
        assert ring[1].byte_offset == 72
        assert (ring[1].address_operand().base, ring[1].address_operand().offset) == ("%r2", "72")
        ring[1].addr_reg()
        assert ptx.mbarrier.array(x.r, 0, 1)[0].addr_reg() is x.r

    assert code(body) == [
        "mov.u32 %r2, smem;", "mbarrier.init.shared::cta.b64 [%r2+64], 3;",
        "mbarrier.init.shared::cta.b64 [%r2+72], 3;",
        "mad.lo.u32 %r3, %r0, 8, %r2;", "$mbarrier_wait:",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r3+64], 0;", "@!%p1 bra $mbarrier_wait;",
        "@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 %rd1, [%r3+64], 32;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd0], 32, [%r2+72];",
        "add.u32 %r4, %r2, 72;",
    ]  # fmt: skip


def test_rings_on_allocations_and_symbols() -> None:
    def body() -> None:
        x = Operands()
        ring = ptx.mbarrier.array(x.bars, 8, 3)
        ring[1].arrive()
        ring.at(x.r).init(1)
        ptx.mbarrier.array(x.tile[1], 8, 1)[0].init(1)
        ptx.mbarrier.array("bars", 16, 1)[0].try_wait(1)
        ring[2].addr_reg()
        ptx.cluster.map_shared_u32(ring[0], 1)

    assert code(body) == [
        "mbarrier.arrive.shared.b64 %rd1, [bars+16];", "mov.u32 %r2, bars+8;", "mad.lo.u32 %r3, %r0, 8, %r2;",
        "mbarrier.init.shared::cta.b64 [%r3], 1;", "mbarrier.init.shared::cta.b64 [tile+40], 1;",
        "mbarrier.try_wait.parity.shared.b64 %p1, [bars+16], 1;", "mov.u32 %r4, bars+24;",
        "mapa.shared::cluster.u32 %r5, bars+8, 1;",
    ]  # fmt: skip


def test_03_rings_and_copies_move_to_dynamic_shared_memory() -> None:
    def body() -> None:
        big, bars = smem.alloc(f32, (128, 128), name="big"), smem.mbarrier(4, name="bars")
        g, stage = reg.alloc(b64), reg.alloc(u32)
        BULK.tensor_2d(dst=big[1], src=g, coord=(0, 0), mbar=bars[2])
        ring = ptx.mbarrier.array(bars, 8, 3)
        ring[1].init(1)
        ring.at(stage).init(1)
        ptx.cluster.arrive_remote(bars[3], 1)

    assert code(body) == [
        f"cp.async.bulk.tensor.2d.{LOAD} [smem+512], [%rd0, {{0, 0}}], [smem+65552];",
        "mbarrier.init.shared::cta.b64 [smem+65552], 1;", "mov.u32 %r1, smem+65544;", "mad.lo.u32 %r2, %r0, 8, %r1;",
        "mbarrier.init.shared::cta.b64 [%r2], 1;", "{", "mapa.shared::cluster.u32 %remAddr32, smem+65560, 1;",
        "mbarrier.arrive.shared::cluster.b64 _, [%remAddr32], 1;", "}",
    ]  # fmt: skip


def test_19_offsets_of_either_sign_and_in_registers() -> None:
    def body() -> None:
        x = Operands()
        ptx.mbarrier.array(x.r, -16, 2)[0].init(1)
        ptx.atom.add(u32, None, ptx.addr(x.rd, -4), 1)
        ptx.mbarrier.arrive_mapped(ptx.addr(x.r, x.i))

    assert code(body) == [
        "mbarrier.init.shared::cta.b64 [%r0+-16], 1;", "atom.global.add.u32 _, [%rd0+-4], 1;",
        "add.u32 %r2, %r0, %r1;", "mbarrier.arrive.shared::cluster.b64 _, [%r2];",
    ]  # fmt: skip


def test_remote_arrivals_stand_in_blocks_of_their_own() -> None:
    def body() -> None:
        x = Operands()
        ptx.cluster.arrive_remote(x.bars[1], x.r, 2, scope="cluster", pred=x.p)
        ptx.cluster.arrive_multicast(x.r, 0b101)

    text = make_kernel(body).ptx()
    assert_accepted(text)
    lines = [line.strip() for line in text.splitlines()]
    first = lines.index("// BEGIN arrive_remote(bars, %r0, 2, scope='cluster', pred=%p0)")
    assert lines[first + 1 : first + 7] == [
        "{", ".reg .b32 %remAddr32;", "@%p0 mapa.shared::cluster.u32 %remAddr32, bars+8, %r0;",
        "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%remAddr32], 2;", "}", "// END arrive_remote",
    ]  # fmt: skip
    assert "mapa.shared::cluster.u32 %remAddr32_1, %r0, 0;" in lines
    assert "mapa.shared::cluster.u32 %remAddr32_2, %r0, 2;" in lines


def test_a_multicast_by_a_register_visits_the_bits_that_are_set() -> None:
    def body() -> None:
        x = Operands()
        ptx.cluster.arrive_multicast(x.bars[0], x.r, pred=x.p)

    lines = code(body)
    assert lines[:6] == [
        "selp.b32 %r2, %r0, 0, %p0;", "$while:", "setp.ne.u32 %p1, %r2, 0;", "@!%p1 bra $while_end;",
        "brev.b32 %r3, %r2;", "clz.b32 %r4, %r3;",
    ]  # fmt: skip
    assert lines[-4:] == ["sub.u32 %r5, %r2, 1;", "and.b32 %r2, %r2, %r5;", "bra $while;", "$while_end:"]


def test_columns_in_registers_are_divided_by_their_type() -> None:
    def body() -> None:
        x = Operands()
        ptx.tma.load_3d(x.tile, x.rd, 1, x.i, x.bars[0])
        ptx.tma.load_3d_multicast(x.tile, x.rd, 1, 64, x.bars[0], 3, issuer=1, pred=x.p)

    load = f"cp.async.bulk.tensor.3d.{LOAD}"
    assert code(body) == [
        "shr.s32 %r2, %r1, 6;", f"{load} [tile], [%rd0, {{0, 1, %r2}}], [bars];",
        "mov.u32 %r3, %cluster_ctarank;", "setp.eq.u32 %p1, %r3, 1;", "and.pred %p2, %p1, %p0;",
        f"@%p2 {load}.multicast::cluster [tile], [%rd0, {{0, 1, 1}}], [bars], 3;",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "operation"), [(s32, "max.s32"), (b32, "max.u32"), (f32, "max.f32"), (f16x2, "max.f16x2")]
)
def test_a_reduction_is_typed_by_its_register(dtype: Any, operation: str) -> None:
    def body() -> None:
        ptx.warp.reduce_max(
            reg.alloc(
                dtype,
            ),
            width=4,
        )

    kind = "f" if dtype is f32 else "r"
    assert code(body) == [
        f"shfl.sync.bfly.b32 %{kind}1, %{kind}0, 2, 31, 4294967295;", f"{operation} %{kind}0, %{kind}0, %{kind}1;",
        f"shfl.sync.bfly.b32 %{kind}2, %{kind}0, 1, 31, 4294967295;", f"{operation} %{kind}0, %{kind}0, %{kind}2;",
    ]  # fmt: skip


def test_wide_and_narrow_values_travel_in_words() -> None:
    def body() -> None:
        ptx.warp.reduce_sum(reg.alloc(f64), width=2)
        ptx.warp.reduce_sum(reg.alloc(bf16), width=2)

    assert code(body) == [
        "mov.b64 {%r0, %r1}, %fd0;", "shfl.sync.bfly.b32 %r2, %r0, 1, 31, 4294967295;",
        "shfl.sync.bfly.b32 %r3, %r1, 1, 31, 4294967295;", "mov.b64 %fd1, {%r2, %r3};", "add.f64 %fd0, %fd0, %fd1;",
        "mov.b32 %r4, {%rs0, %rs0};", "shfl.sync.bfly.b32 %r5, %r4, 1, 31, 4294967295;", "mov.b32 {%rs1, _}, %r5;",
        "add.bf16 %rs0, %rs0, %rs1;",
    ]  # fmt: skip


def test_a_whole_warp_reduces_in_one_instruction_where_the_target_can() -> None:
    def integers() -> None:
        ptx.warp.reduce("sum", reg.alloc(s32))

    def floats() -> None:
        ptx.warp.reduce("max", reg.alloc(f32))

    assert code(integers) == ["redux.sync.add.s32 %r0, %r0, 4294967295;"]
    assert code(floats, arch="sm_100a") == ["redux.sync.max.f32 %f0, %f0, 4294967295;"]
    assert len(code(floats, arch="sm_90a")) == 10
    assert len(code(integers, arch="sm_75")) == 10


def test_a_barrier_has_its_operations_as_methods() -> None:
    def body() -> None:
        bar, phase = smem.mbarrier(2, name="bars")[1], reg.scalar(u32)
        bar.init(1)
        bar.arrive(count=2)
        bar.arrive_expect_tx(64, sem="relaxed", scope="cluster")
        bar.expect_tx(16)
        bar.try_wait(phase)
        bar.test_wait(phase)
        bar.arrive_remote(1)
        bar.inval()
        ptx.mbarrier.array(bar, 8, 1)[0].arrive()
        ptx.mbarrier.array(smem.mbarrier(2, name="more"), 0, 2)[1].arrive()

    assert [line for line in code(body) if "mbarrier." in line] == [
        "mbarrier.init.shared::cta.b64 [bars+8], 1;",
        "mbarrier.arrive.shared.b64 %rd0, [bars+8], 2;",
        "mbarrier.arrive.expect_tx.relaxed.cluster.shared::cta.b64 %rd1, [bars+8], 64;",
        "mbarrier.expect_tx.shared.b64 [bars+8], 16;",
        "mbarrier.try_wait.parity.shared.b64 %p0, [bars+8], %r0;",
        "mbarrier.test_wait.parity.shared.b64 %p1, [bars+8], %r0;",
        "mbarrier.arrive.shared::cluster.b64 _, [%remAddr32], 1;",
        "mbarrier.inval.shared.b64 [bars+8];",
        "mbarrier.arrive.shared.b64 %rd2, [bars+16];",
        "mbarrier.arrive.shared.b64 %rd3, [more+8];",
    ]


def test_waiting_on_a_barrier_is_the_wait_loop() -> None:
    def by_method() -> None:
        smem.mbarrier(1, name="bar")[0].wait(0)

    def by_function() -> None:
        ptx.mbarrier.wait(smem.mbarrier(1, name="bar")[0], 0)

    assert code(by_method) == code(by_function)
