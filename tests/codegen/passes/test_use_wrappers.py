"""How each wrapped instruction is called: by its wrapper, with what is not the default."""

from __future__ import annotations

import ast

import pytest

from pyptx.codegen import ptx_to_python
from tests.codegen.sugared import find_difference, find_module_difference, statements

PARAMETERS = """.version 8.0\n.target sm_90\n.address_size 64
.entry k(.param .b32 n, .param .b8 pair[8])\n{\n.reg .b32 %r<3>;\n@\nret;\n}
"""
CALLS = [
    ('mbarrier.init.shared::cta.b64 [%r1], 3;', 'ptx.mbarrier.init(mbar, 3)'),
    ('mbarrier.init.shared.b64 [%r1], 3;', 'ptx.mbarrier.init(mbar, 3, space="shared")'),
    ('mbarrier.inval.shared.b64 [%r1];', 'ptx.mbarrier.inval(mbar)'),
    ('mbarrier.inval.shared::cta.b64 [%r1];', 'ptx.mbarrier.inval(mbar, space="shared::cta")'),
    ('mbarrier.complete_tx.shared::cluster.b64 [%r1], 16;',
     'ptx.mbarrier.complete_tx(mbar, 16, space="shared::cluster")'),
    ('mbarrier.arrive.shared.b64 %rd5, [%r1];', 'ptx.mbarrier.arrive(mbar)'),
    ('mbarrier.arrive.shared::cta.b64 %rd5, [%r1], 2;', 'ptx.mbarrier.arrive(mbar, count=2, space="shared::cta")'),
    ('mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];',
     'ptx.mbarrier.arrive_mapped(mbar, sem="release", scope="cluster")'),
    ('mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1], 2;',
     'ptx.mbarrier.arrive_mapped(mbar, count=2, sem="release", scope="cluster")'),
    ('mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %rd5, [%r1], 16;',
     'ptx.mbarrier.arrive_expect_tx(mbar, 16, sem="release", scope="cta")'),
    ('mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16;',
     'ptx.mbarrier.arrive_expect_tx(mbar, 16, state=False)'),
    ('mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%r1], 16;',
     'ptx.mbarrier.arrive_expect_tx_mapped(mbar, 16, sem="release", scope="cluster")'),
    ('mbarrier.arrive.noComplete.shared.b64 %rd5, [%r1], 2;', 'ptx.mbarrier.arrive_no_complete(mbar, 2)'),
    ('mbarrier.arrive.shared::cta.b64 _, [%r1];', 'ptx.mbarrier.arrive(mbar, space="shared::cta", state=False)'),
    ('mbarrier.arrive_drop.shared.b64 %rd5, [%r1];', 'ptx.mbarrier.arrive_drop(mbar)'),
    ('mbarrier.arrive_drop.relaxed.cluster.shared.b64 %rd5, [%r1], 2;',
     'ptx.mbarrier.arrive_drop(mbar, count=2, sem="relaxed", scope="cluster")'),
    ('mbarrier.arrive_drop.expect_tx.shared::cta.b64 %rd5, [%r1], 16;',
     'ptx.mbarrier.arrive_drop_expect_tx(mbar, 16)'),
    ('mbarrier.arrive_drop.noComplete.shared.b64 %rd5, [%r1], 2;', 'ptx.mbarrier.arrive_drop_no_complete(mbar, 2)'),
    ('mbarrier.pending_count.b64 %r5, %rd1;', 'ptx.mbarrier.pending_count(rd[1])'),
    ('mbarrier.test_wait.shared.b64 %p2, [%r1], %rd1;', 'ptx.mbarrier.test_wait(mbar, rd[1], parity=False)'),
    ('cp.async.commit_group;', 'ptx.cp.async_.commit_group()'),
    ('cp.async.wait_all;', 'ptx.cp.async_.wait_all()'),
    ('cp.async.wait_group 2;', 'ptx.cp.async_.wait_group(2)'),
    ('cp.async.bulk.commit_group;', 'ptx.cp.async_.bulk.commit_group()'),
    ('cp.async.bulk.wait_group 1;', 'ptx.cp.async_.bulk.wait_group(1)'),
    ('cp.async.bulk.wait_group.read 1;', 'ptx.cp.async_.bulk.wait_group(1, read=True)'),
    ('cp.async.mbarrier.arrive.shared.b64 [%r1];', 'ptx.cp.async_.mbarrier_arrive(r[1])'),
    ('cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];', 'ptx.cp.async_.mbarrier_arrive(r[1], noinc=True)'),
    ('cp.async.ca.shared.global [%r1], [%rd1], 4;', 'ptx.cp.async_.ca(r[1], rd[1], 4)'),
    ('cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16, %r2;',
     'ptx.cp.async_.cg(r[1], rd[1], 16, prefetch="L2::128B", src_size=r[2])'),
    ('cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 8, %rd2;',
     'ptx.cp.async_.ca(r[1], rd[1], 8, cache_hint=rd[2])'),
    ('cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];',
     'ptx.cp.async_.bulk.global_to_shared(r[1], rd[1], 64, r[2])'),
    ('cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];',
     'ptx.cp.async_.bulk.global_to_shared_cta(r[1], rd[1], 64, r[2])'),
    ('cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r1], [%r3], 64, [%r2];',
     'ptx.cp.async_.bulk.shared_to_shared(r[1], r[3], 64, r[2])'),
    ('cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 64;',
     'ptx.cp.async_.bulk.shared_to_global(rd[1], r[1], 64)'),
    ('cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint '
     '[%r1], [%rd1], 64, [%r2], %rs1, %rd2;',
     'ptx.cp.async_.bulk.global_to_shared(r[1], rd[1], 64, r[2], cache_hint=rd[2], multicast_mask=rs[1])'),
    ('cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];',
     'ptx.cp.async_.bulk.tensor_2d.shared_cta_global_tile(dst=r[1], src=rd[1], coord=(r[2], r[3]), mbar=r[4])'),
    ('cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r2}], [%r1];',
     'ptx.cp.async_.bulk.tensor_1d.store(dst=rd[1], src=r[1], coord=(r[2],))'),
    ('cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group.L2::cache_hint [%rd1, {%r2}], [%r1], %rd2;',
     'ptx.cp.async_.bulk.tensor_1d.store_tile(rd[1], r[1], (r[2],), cache_hint=rd[2])'),
    ('shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;', 'ptx.warp.shfl_bfly(r[2], 1, mask=-1)'),
    ('shfl.sync.bfly.b32 %r1, %r2, 1, 31, 0xffffffff;', 'ptx.warp.shfl_bfly(r[2], 1, mask=ptx.imm("0xffffffff"))'),
    ('shfl.sync.down.b32 %r1, %r2, 1, 7199, %r3;', 'ptx.warp.shfl_down(r[2], 1, width=4, mask=r[3])'),
    ('shfl.sync.idx.b32 %r1, %r2, 1, %r4, 4294967295;', 'ptx.warp.shfl("idx", r[2], 1, r[4])'),
    ('vote.sync.ballot.b32 %r1, %p2, -1;', 'ptx.warp.ballot(p[2], mask=-1)'),
    ('vote.sync.ballot.b32 %r1, %p2, 4294967295;', 'ptx.warp.ballot(p[2])'),
    ('vote.sync.any.pred %p1, %p2, %r3;', 'ptx.warp.vote_any(p[2], mask=r[3])'),
    ('match.any.sync.b32 %r1, %r2, %r3;', 'ptx.warp.match_any(r[2], mask=r[3])'),
    ('redux.sync.add.u32 %r1, %r2, %r3;', 'ptx.warp.redux("add", r[2], mask=r[3])'),
    ('elect.sync _|%p1, -1;', 'ptx.warp.elect(-1, leader=False)'),
    ('elect.sync %r1|%p1, 4294967295;', '_, _ = ptx.warp.elect()'),
    ('elect.sync %r1|%p1, %r2;', '_, _ = ptx.warp.elect(r[2])'),
    ('atom.global.add.u32 %r1, [%rd1], %r2;', 'ptx.atom.add(u32, b32, rd[1], r[2])'),
    ('atom.acq_rel.cta.shared.cas.b32 %r1, [%r5], %r2, %r3;',
     'ptx.atom.cas(b32, b32, r[5], r[2], r[3], space="shared", sem="acq_rel", scope="cta")'),
    ('atom.global.and.b32 %r1, [%rd1], %r2;', 'ptx.atom.and_(b32, b32, rd[1], r[2])'),
    ('atom.relaxed.sys.global.xor.b32 %r1, [%rd1], %r2;',
     'ptx.atom.xor_(b32, b32, rd[1], r[2], sem="relaxed", scope="sys")'),
    ('atom.min.s32 %r1, [%rd1], %r2;', 'ptx.atom.min(s32, s32, rd[1], r[2].s32, space="")'),
    ('red.global.max.u32 [%rd1], %r2;', 'ptx.red.max(u32, rd[1], r[2])'),
    ('red.release.gpu.global.add.f32 [%rd1], %f2;', 'ptx.red.add(f32, rd[1], f[2], sem="release", scope="gpu")'),
    ('red.shared.inc.u32 [%r1], %r2;', 'ptx.red.inc(u32, r[1], r[2], space="shared")'),
    ('prefetch.global.L2 [%rd1];', 'ptx.prefetch(rd[1])'),
    ('prefetch.global.L1 [%rd1];', 'ptx.prefetch(rd[1], level="L1")'),
    ('prefetch.local.L1 [%rd1];', 'ptx.prefetch(rd[1], level="L1", space="local")'),
    ('prefetch.tensormap [%rd1];', 'ptx.prefetch_tensormap(rd[1])'),
    ('prefetch.param.tensormap [%rd1];', 'ptx.prefetch_tensormap(rd[1], space="param")'),
    ('griddepcontrol.wait;', 'ptx.griddepcontrol.wait()'),
    ('griddepcontrol.launch_dependents;', 'ptx.griddepcontrol.launch_dependents()'),
    ('setmaxnreg.inc.sync.aligned.u32 64;', 'ptx.setmaxnreg_inc(64)'),
    ('setmaxnreg.dec.sync.aligned.u32 24;', 'ptx.setmaxnreg_dec(24)'),
    ('mapa.shared::cluster.u32 %r1, %r2, %r3;', 'ptx.cluster.map_shared_u32(r[2], r[3])'),
    ('activemask.b32 %r1;', 'ptx.warp.activemask()'),
    ('fence.sc.cta;', 'ptx.fence.sc("cta")'),
    ('fence.acq_rel.cluster;', 'ptx.fence.acq_rel("cluster")'),
    ('fence.acquire.sys;', 'ptx.fence.acquire("sys")'),
    ('fence.release.cluster;', 'ptx.fence.release("cluster")'),
    ('fence.sc.gpu;', 'ptx.fence.sc()'),
    ('@%p1 fence.acq_rel.gpu;', 'ptx.fence.acq_rel(pred=p[1])'),
    ('membar.cta;', 'ptx.fence.membar("cta")'),
    ('membar.gl;', 'ptx.fence.membar()'),
    ('@!%p1 membar.sys;', 'ptx.fence.membar("sys", pred=~p[1])'),
    ('fence.mbarrier_init.release.cluster;', 'ptx.fence.mbarrier_init()'),
    ('fence.proxy.async;', 'ptx.fence.proxy_async()'),
    ('fence.proxy.async.shared::cta;', 'ptx.fence.proxy_async_shared_cta()'),
    ('fence.proxy.alias;', 'ptx.fence.proxy_alias()'),
    ('fence.proxy.tensormap::generic.release.gpu;', 'ptx.fence.proxy_tensormap_release()'),
    ('fence.proxy.tensormap::generic.release.cta;', 'ptx.fence.proxy_tensormap_release(scope="cta")'),
    ('fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;', 'ptx.fence.proxy_tensormap_acquire(rd[1])'),
    ('fence.proxy.tensormap::generic.acquire.sys [%rd1], 128;',
     'ptx.fence.proxy_tensormap_acquire(rd[1], scope="sys")'),
    ('fence.acquire.sync_restrict::shared::cluster.cluster;', 'ptx.fence.acquire_shared_cluster()'),
    ('fence.release.sync_restrict::shared::cta.cluster;', 'ptx.fence.release_shared_cta()'),
    ('fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;',
     'ptx.fence.proxy_async_generic_acquire_shared_cluster()'),
    ('fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;',
     'ptx.fence.proxy_async_generic_release_shared_cta()'),
    ('bar.sync 0;', 'ptx.bar.sync()'),
    ('bar.sync 1, 64;', 'ptx.bar.sync(1, 64)'),
    ('bar.warp.sync 4294967295;', 'ptx.bar.warp_sync()'),
    ('bar.warp.sync %r1;', 'ptx.bar.warp_sync(r[1])'),
    ('bar.arrive 1, 64;', 'ptx.bar.arrive(1, 64)'),
    ('bar.red.popc.u32 %r1, 0, %p1;', 'ptx.bar.red_popc(p[1], 0)'),
    ('bar.red.and.pred %p2, 1, 64, %p1;', 'ptx.bar.red_and(p[1], 1, count=64)'),
    ('barrier.cluster.arrive;', 'ptx.cluster.arrive()'),
    ('barrier.cluster.arrive.release.aligned;', 'ptx.cluster.arrive(aligned=True, sem="release")'),
    ('barrier.cluster.arrive.relaxed;', 'ptx.cluster.arrive(sem="relaxed")'),
    ('barrier.cluster.wait.acquire.aligned;', 'ptx.cluster.wait(aligned=True, sem="acquire")'),
    ('ld.global.u32 %r1, [%rd1];', 'ptx.ld(u32, rd[1])'),
    ('ld.shared.v2.f32 {%f1, %f2}, [%r1];', 'ptx.ld(f32, r[1], vec=2, space="shared")'),
    ('ld.global.ca.u32 %r1, [%rd1];', 'ptx.ld(u32, rd[1], cache="ca")'),
    ('ld.u32 %r1, [%rd1];', 'ptx.ld(u32, rd[1], space="")'),
    ('st.global.u32 [%rd1], %r1;', 'ptx.st(u32, rd[1], r[1])'),
    ('st.shared.v2.f32 [%r1], {%f1, %f2};', 'ptx.st(f32, r[1], f[1:3], space="shared")'),
    ('st.global.cg.u32 [%rd1], %r1;', 'ptx.st(u32, rd[1], r[1], cache="cg")'),
    ('mul.wide.u32 %rd1, %r2, %r3;', 'ptx.mul(u32, r[2], r[3], mode="wide")'),
    ('mul.hi.s32 %r1, %r2, %r3;', 'ptx.mul(s32, r[2].s32, r[3].s32, mode="hi")'),
    ('mad.lo.u32 %r1, %r2, %r3, %r4;', 'ptx.mad(r[2], r[3], r[4])'),
    ('mad.wide.u32 %rd1, %r2, %r3, %rd2;', 'ptx.mad(r[2], r[3], rd[2], mode="wide")'),
    ('selp.b32 %r1, %r2, %r3, %p1;', 'ptx.selp(b32, r[2], r[3], p[1])'),
    ('cvt.rn.f32.s32 %f1, %r1;', 'ptx.cvt(f32, s32, r[1].s32, rounding="rn")'),
    ('cvt.rzi.ftz.s32.f32 %r1, %f1;', 'ptx.cvt(s32, f32, f[1], rounding="rzi", ftz=True)'),
    ('cvt.rn.bf16x2.f32 %r1, %f1, %f2;', 'ptx.cvt(bf16x2, f32, [f[1], f[2]], rounding="rn")'),
    ('cvt.u64.u32 %rd1, %r1;', 'ptx.cvt(u64, u32, r[1])'),
    ('cvta.to.global.u64 %rd1, %rd2;', 'ptx.cvta.to_global(rd[2])'),
    ('cvta.global.u64 %rd1, %rd2;', 'ptx.cvta.global_(rd[2])'),
    ('cvta.shared.u64 %rd1, %rd2;', 'ptx.cvta.shared(rd[2])'),
    ('bra.uni L;', 'ptx.bra("L", uni=True)'),
    ('@%p1 bra L;', 'ptx.bra("L", pred=p[1])'),
    ('trap;', 'ptx.trap()'),
    ('mov.u32 %r1, %tid.x;', 'ptx.special.tid.x()'),
    ('@%p1 mov.u32 %r1, %tid.x;', 'ptx.mov(u32, "%tid.x", pred=p[1])'),
    ('@%p1 not.b32 %r1, %r2;', 'ptx.not_(b32, r[2], pred=p[1])'),
    ('@%p1 not.b32 %r1, %r1;', 'ptx.not_(b32, r[1], r[1], pred=p[1])'),
    ('@%p1 add.u32 %r1, %r1, 7;', 'ptx.add(u32, i, i, 7, pred=p[1])'),
    ('@%p1 sub.f32 %f1, %f1, %f2;', 'ptx.sub(f32, f[1], f[1], f[2], pred=p[1])'),
    ('@%p1 shl.b32 %r1, %r1, 2;', 'ptx.shl(b32, r[1], r[1], 2, pred=p[1])'),
    ('@%p1 shr.u32 %r1, %r1, 2;', 'ptx.shr(u32, r[1], r[1], 2, pred=p[1])'),
    ('@%p1 and.b32 %r1, %r1, 2;', 'ptx.and_(b32, r[1], r[1], 2, pred=p[1])'),
    ('@%p1 or.b32 %r1, %r1, 2;', 'ptx.or_(b32, r[1], r[1], 2, pred=p[1])'),
    ('@%p1 xor.b32 %r1, %r1, 2;', 'ptx.xor_(b32, r[1], r[1], 2, pred=p[1])'),
    ('@%p1 mov.u32 %r1, %r2; mov.u32 %r1, %r3;', 'ptx.mov(u32, r[1], r[2], pred=p[1])'),
    ('mov.f32 %f1, 0f3F800000; mov.b32 %r1, %f1;', 'ptx.mov(b32, ptx.mov(f32, 1.0))'),
    ('@%p1 setp.lt.u32 %p1, %r1, %r2;', 'ptx.setp("lt", u32, p[1], r[1], r[2], pred=p[1])'),
    ('@%p1 setp.ltu.ftz.f32 %p1, %f1, %f2;', 'ptx.setp("ltu.ftz", f32, p[1], f[1], f[2], pred=p[1])'),
    ('@%p1 setp.lt.and.u32 %p1, %r1, %r2, %p2;', 'ptx.inst.setp.lt.and_.u32(p[1], r[1], r[2], p[2], pred=p[1])'),
    ('fma.rn.f32 %f1, %f2, %f3, %f1;', 'ptx.mad(f32, f[1], f[2], f[3], f[1])'),
    ('fma.rz.f32 %f1, %f2, %f3, %f1;', 'ptx.inst.fma.rz.f32(f[1], f[2], f[3], f[1])'),
    ('mad.lo.u32 %r1, %r2, %r3, %r1;', 'ptx.mad(u32, r[1], r[2], r[3], r[1])'),
    ('mad.wide.u32 %rd1, %r2, %r3, %rd1;', 'ptx.mad(u32, rd[1], r[2], r[3], rd[1], mode="wide")'),
    ('mul.rn.f32 %f1, %f1, %f2;', 'ptx.mul(f32, f[1], f[1], f[2], mode="rn")'),
    ('cvt.sat.f32.f32 %f1, %f1;', 'ptx.cvt(f32, f32, f[1], f[1], sat=True)'),
    ('cvta.global.u64 %rd1, %rd1;', 'ptx.cvta.global_(rd[1], dst=rd[1])'),
    ('ld.shared.u32 %r1, [%r1];', 'ptx.ld(u32, r[1], r[1], space="shared")'),
    ('ld.global.nc.L1::no_allocate.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];',
     'ptx.ld(u32, rd[1], vec=4, cache="nc.L1::no_allocate")'),
    ('ld.volatile.global.u32 %r1, [%rd1];', 'ptx.inst.ld.volatile.global_.u32(b32, rd[1])'),
    ('st.volatile.global.u32 [%rd1], %r1;', 'ptx.inst.st.volatile.global_.u32(rd[1], r[1])'),
    ('st.release.gpu.global.u32 [%rd1], %r1;', 'ptx.inst.st.release.gpu.global_.u32(rd[1], r[1])'),
    ('st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};', 'ptx.st(u32, rd[1], v)'),
    ('st.u32 [%rd1], %r1;', 'ptx.st(u32, rd[1], r[1], space="")'),
    ('bar.warp.sync 15;', 'ptx.bar.warp_sync(15)'),
    ('bar.red.or.pred %p2, 0, %p1;', 'ptx.bar.red_or(p[1], 0)'),
    ('@%p1 redux.sync.add.u32 %r1, %r1, %r3;', 'ptx.warp.redux("add", r[1], dst=r[1], mask=r[3], pred=p[1])'),
    ('elect.sync %r2|%p1, %r2;', 'ptx.elect_sync(r[2], p1, r[2])'),
    ('atom.global.add.u32 %r1, [%rd1], %r1;', 'ptx.atom.add(u32, r[1], rd[1], r[1])'),
]  # fmt: skip


@pytest.mark.parametrize(("ptx", "call"), CALLS)
def test_it_is_called_by_its_wrapper(ptx: str, call: str) -> None:
    text = f".reg .b16 %rs<3>;\n{ptx}\nL:\nret;\n"
    assert call in statements(text)
    assert find_difference(text) is None


@pytest.mark.parametrize(
    ("modifiers", "operands", "keywords"),
    [
        ("", "", ""), (".cta_group::2", "", ", cta_group=2"), (".L2::cache_hint", ", %rd2", ", cache_hint=rd[2]"),
        (".multicast::cluster", ", %rs1", ", multicast_mask=rs[1]"),
        (".multicast::cluster.L2::cache_hint", ", %rs1, %rd2", ", cache_hint=rd[2], multicast_mask=rs[1]"),
        (".multicast::cluster.cta_group::2.L2::cache_hint", ", %rs1, %rd2",
         ", cache_hint=rd[2], multicast_mask=rs[1], cta_group=2"),
    ],
)  # fmt: skip
def test_a_tensor_load_has_the_keywords_of_its_modifiers(modifiers: str, operands: str, keywords: str) -> None:
    source = f""".version 8.7\n.target sm_100a\n.address_size 64
.entry k()\n{{\n.reg .b32 %r<5>;\n.reg .b64 %rd<3>;\n.reg .b16 %rs<2>;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes{modifiers} [%r1], [%rd1, {{%r2, %r3}}],
[%r4]{operands};\nret;\n}}
"""
    calls = [
        ast.unparse(node)
        for node in ast.walk(ast.parse(ptx_to_python(source, sugar=True)))
        if isinstance(node, ast.Expr)
    ]
    call = f"ptx.cp.async_.bulk.tensor_2d(dst=r[1], src=rd[1], coord=(r[2], r[3]), mbar=r[4]{keywords})"
    assert call in calls
    assert find_module_difference(source) is None


@pytest.mark.parametrize(
    ("ptx", "call"),
    [("ld.param.u32 %r1, [n];", 'ptx.param(u32, "n")'), ("ld.param.u32 %r1, [pair];", 'ptx.param(u32, "pair")'),
     ("ld.param.u32 %r1, [pair+4];", 'ptx.ld(u32, ptx.addr("pair", 4), space="param")')],
)  # fmt: skip
def test_a_whole_parameter_is_read_by_its_name(ptx: str, call: str) -> None:
    source = PARAMETERS.replace("@", ptx)
    assert call in ptx_to_python(source, sugar=True)
    assert find_module_difference(source) is None
