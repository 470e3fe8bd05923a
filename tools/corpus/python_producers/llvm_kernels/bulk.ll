; Bulk asynchronous copies with an mbarrier, by plain addresses and by tensor maps of one to three dimensions.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3), i32)
declare i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3), i32)
declare i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3), i32)
declare void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7), ptr addrspace(3), ptr addrspace(1), i32, i16, i64, i1, i1)
declare void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1), ptr addrspace(3), i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.prefetch.L2(ptr addrspace(1), i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.commit.group()
declare void @llvm.nvvm.cp.async.bulk.wait.group.read(i32)
declare void @llvm.nvvm.fence.proxy.async.shared_cta()
declare void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7), ptr addrspace(3), ptr, i32, i32, i16, i64, i1, i1, i32)
declare void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3), ptr, i32, i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.tensor.reduce.add.tile.3d(ptr addrspace(3), ptr, i32, i32, i32, i64, i1)
declare void @llvm.nvvm.cp.async.bulk.tensor.prefetch.tile.1d(ptr, i32, i64, i1)
declare void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32)
declare void @llvm.nvvm.griddepcontrol.wait()
declare void @llvm.nvvm.griddepcontrol.launch.dependents()
declare void @llvm.nvvm.nanosleep(i32)

@barrier = internal addrspace(3) global i64 poison, align 8
@landing = internal addrspace(3) global [64 x float] poison, align 128

define ptx_kernel void @bulk_copy(ptr addrspace(1) %x, ptr addrspace(1) %out) {
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %i, 0
  br i1 %first, label %start, label %ready
start:
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) @barrier, i32 1)
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  %token = call i64 @llvm.nvvm.mbarrier.arrive.expect.tx.scope.cta.space.cta(ptr addrspace(3) @barrier, i32 256)
  %inside = addrspacecast ptr addrspace(3) @landing to ptr
  %cluster = addrspacecast ptr %inside to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.global.to.shared.cluster(ptr addrspace(7) %cluster, ptr addrspace(3) @barrier, ptr addrspace(1) %x, i32 256, i16 0, i64 0, i1 false, i1 false)
  br label %ready
ready:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %wait
wait:
  %landed = call i1 @llvm.nvvm.mbarrier.try.wait.parity.scope.cta.space.cta(ptr addrspace(3) @barrier, i32 0)
  br i1 %landed, label %work, label %wait
work:
  %slot = getelementptr float, ptr addrspace(3) @landing, i32 %i
  %v = load float, ptr addrspace(3) %slot
  %twice = fadd float %v, %v
  store float %twice, ptr addrspace(3) %slot
  call void @llvm.nvvm.fence.proxy.async.shared_cta()
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br i1 %first, label %send, label %done
send:
  call void @llvm.nvvm.cp.async.bulk.shared.cta.to.global(ptr addrspace(1) %out, ptr addrspace(3) @landing, i32 256, i64 0, i1 false)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)
  br label %done
done:
  ret void
}

define ptx_kernel void @tensor_copies(ptr %map2, ptr %map3, i64 %policy) {
  %inside = addrspacecast ptr addrspace(3) @landing to ptr
  %cluster = addrspacecast ptr %inside to ptr addrspace(7)
  call void @llvm.nvvm.cp.async.bulk.tensor.prefetch.tile.1d(ptr %map2, i32 0, i64 %policy, i1 true)
  call void @llvm.nvvm.cp.async.bulk.tensor.g2s.tile.2d(ptr addrspace(7) %cluster, ptr addrspace(3) @barrier, ptr %map2, i32 0, i32 8, i16 3, i64 %policy, i1 true, i1 true, i32 0)
  call void @llvm.nvvm.cp.async.bulk.tensor.s2g.tile.2d(ptr addrspace(3) @landing, ptr %map2, i32 0, i32 8, i64 %policy, i1 false)
  call void @llvm.nvvm.cp.async.bulk.tensor.reduce.add.tile.3d(ptr addrspace(3) @landing, ptr %map3, i32 0, i32 0, i32 4, i64 %policy, i1 true)
  call void @llvm.nvvm.cp.async.bulk.commit.group()
  call void @llvm.nvvm.cp.async.bulk.wait.group.read(i32 0)
  ret void
}

define ptx_kernel void @launch_control(ptr addrspace(1) %x) "nvvm.reqntid"="128,1,1" "nvvm.maxnreg"="168" {
  call void @llvm.nvvm.griddepcontrol.wait()
  call void @llvm.nvvm.setmaxnreg.dec.sync.aligned.u32(i32 40)
  call void @llvm.nvvm.nanosleep(i32 100)
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, ptr addrspace(1) %x, i32 %i
  call void @llvm.nvvm.cp.async.bulk.prefetch.L2(ptr addrspace(1) %x, i32 64, i64 0, i1 false)
  store i32 %i, ptr addrspace(1) %at
  call void @llvm.nvvm.griddepcontrol.launch.dependents()
  ret void
}
