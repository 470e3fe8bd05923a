"""The instructions in the table of contents of the PTX ISA manual (9.3, with additions of 9.4 and 9.5), by section."""

from __future__ import annotations

INSTRUCTIONS: dict[str, str] = {
    "Integer Arithmetic": "add sub mul mad clmad mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe "
    "bfi szext bmsk dp4a dp2a",
    "Extended-Precision Integer Arithmetic": "add.cc addc sub.cc subc mad.cc madc",
    "Floating-Point": "testp copysign add sub mul fma mad div abs neg min max rcp rcp.approx.ftz.f64 sqrt rsqrt "
    "rsqrt.approx.ftz.f64 sin cos lg2 ex2 tanh",
    "Half Precision": "add sub mul fma neg abs min max tanh ex2",
    "Mixed Precision": "add sub fma",
    "Comparison and Selection": "set setp selp slct",
    "Logic and Shift": "and or xor not cnot lop3 shf shl shr",
    "Data Movement and Conversion": "mov shfl shfl.sync prmt ld ld.global.nc ldu st st.async multimem.st.async st.bulk "
    "multimem.ld_reduce multimem.st multimem.red prefetch prefetchu applypriority discard createpolicy isspacep cvta "
    "cvt cvt.pack mapa getctarank",
    "Asynchronous copy": "cp.async cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.bulk "
    "cp.reduce.async.bulk cp.async.bulk.prefetch multimem.cp.async.bulk multimem.cp.reduce.async.bulk "
    "cp.async.bulk.tensor cp.reduce.async.bulk.tensor cp.async.bulk.prefetch.tensor cp.async.bulk.commit_group "
    "cp.async.bulk.wait_group tensormap.replace applypriority.async.bulk applypriority.async.bulk.tensor",
    "Fabric": "fabric.try_get fabric.try_put fabric.try_red fabric.try_pullred fabric.wait fabric.submit "
    "fabric.try_atom fabric.try_get.async.tensor fabric.try_put.async.tensor fabric.try_red.async.tensor",
    "Texture": "tex tld4 txq istypep",
    "Surface": "suld sust sured suq",
    "Control Flow": "bra brx.idx call ret exit",
    "Parallel Synchronization and Communication": "bar barrier bar.warp.sync barrier.cluster membar fence atom red "
    "red.async multimem.red.async vote vote.sync match.sync activemask redux.sync griddepcontrol elect.sync "
    "tensormap.cp_fenceproxy clusterlaunchcontrol.try_cancel clusterlaunchcontrol.query_cancel",
    "mbarrier": "mbarrier.init mbarrier.inval mbarrier.expect_tx mbarrier.complete_tx mbarrier.arrive "
    "mbarrier.arrive_drop cp.async.mbarrier.arrive mbarrier.test_wait mbarrier.try_wait mbarrier.pending_count "
    "mbarrier.check_layout",
    "Warp Level Matrix": "wmma.load wmma.store wmma.mma mma ldmatrix stmatrix movmatrix mma.sp "
    "mma.sp::ordered_metadata",
    "Warpgroup Level Matrix": "wgmma.mma_async wgmma.mma_async.sp wgmma.fence wgmma.commit_group wgmma.wait_group",
    "TensorCore 5th Generation": "tcgen05.alloc tcgen05.dealloc tcgen05.relinquish_alloc_permit tcgen05.ld tcgen05.st "
    "tcgen05.wait::ld tcgen05.wait::st tcgen05.cp tcgen05.shift tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws "
    "tcgen05.mma.ws.sp tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync tcgen05.commit",
    "Stack Manipulation": "stacksave stackrestore alloca",
    "Video": "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 "
    "vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    "Miscellaneous": "brkpt nanosleep pmevent trap setmaxnreg",
    "Sparse compression (9.4)": "spcompress spdecompress",
}
