"""How ptxas reads modifiers that are not in the manual's order. Measured with ptxas 13.5, one name at a time."""

from __future__ import annotations

DOTTED_NAMES = frozenset(
    """
    applypriority.async.bulk applypriority.async.bulk.tensor bar.arrive bar.cta bar.cta.arrive bar.cta.red bar.red
    bar.warp barrier.arrive barrier.red barrier.cluster.arrive barrier.cluster.wait barrier.cta barrier.cta.arrive
    barrier.cta.red brx.idx clmad.hi clmad.lo clusterlaunchcontrol.query_cancel clusterlaunchcontrol.try_cancel.async
    cp.async cp.async.bulk cp.async.bulk.commit_group cp.async.bulk.prefetch cp.async.bulk.prefetch.tensor
    cp.async.bulk.tensor cp.async.bulk.wait_group cp.async.commit_group cp.async.mbarrier.arrive cp.async.wait_all
    cp.async.wait_group cp.reduce.async.bulk cp.reduce.async.bulk.tensor createpolicy.cvt createpolicy.fractional
    createpolicy.range cvt.pack cvta.to div.full dp2a.hi dp2a.lo fabric.submit fabric.submit.commit_group
    fabric.try_atom.async fabric.try_get.async fabric.try_get.async.tensor fabric.try_pullred.async
    fabric.try_put.async fabric.try_put.async.tensor fabric.try_red.async fabric.try_red.async.tensor fabric.wait
    fence.proxy mad.hi mad.lo mad.wide mad24.hi mad24.lo madc.hi madc.lo mbarrier.arrive mbarrier.arrive.expect_tx
    mbarrier.arrive_drop mbarrier.arrive_drop.expect_tx mbarrier.check_layout mbarrier.complete_tx mbarrier.expect_tx
    mbarrier.init mbarrier.inval mbarrier.pending_count mbarrier.test_wait mbarrier.test_wait.parity
    mbarrier.try_wait mbarrier.try_wait.parity membar.proxy mul.hi mul.lo mul.wide mul24.hi mul24.lo
    multimem.cp.async.bulk multimem.cp.reduce.async.bulk multimem.ld_reduce multimem.red multimem.red.async
    multimem.st multimem.st.async red.async setmaxnreg.dec setmaxnreg.inc shf.l shf.r st.async st.bulk suld.b
    sured.b sured.p sust.b sust.p tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc tcgen05.fence tcgen05.ld
    tcgen05.ld.red tcgen05.ld.red.spcompress tcgen05.ld.spcompress tcgen05.mma tcgen05.mma.ws tcgen05.shift
    tcgen05.st tcgen05.wait tensormap.cp_fenceproxy tensormap.replace tex.base tex.grad tex.level txq.level
    wgmma.commit_group wgmma.fence wgmma.mma_async wgmma.wait_group wmma.load.a wmma.load.b wmma.load.c wmma.mma
    wmma.store.d
    """.split()
)
"""Instructions whose name continues after the first dot: these words must come first, in this order."""

REPEATABLE = frozenset(("sat", "relu", "satfinite", "sync", "uni", "cc", "approx", "NaN", "shiftamt"))
"""Modifiers that ptxas allows twice; for all others it reports "Duplicate" or "Multiple ... modifiers"."""
