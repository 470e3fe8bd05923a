; Memory orders and scopes, volatile and non-temporal accesses, vectors, switches and dynamic stacks.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.idp4a.s.u(i32, i32, i32)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i32 @llvm.uadd.sat.i32(i32, i32)
declare { i32, i1 } @llvm.sadd.with.overflow.i32(i32, i32)
declare i64 @llvm.ctpop.i64(i64)
declare i32 @llvm.bitreverse.i32(i32)
declare i32 @llvm.bswap.i32(i32)

@table = internal addrspace(4) constant [8 x i32] [i32 3, i32 1, i32 4, i32 1, i32 5, i32 9, i32 2, i32 6], align 16
@counter = weak addrspace(1) global i32 7
@place = internal addrspace(1) global ptr addrspacecast (ptr addrspace(1) @counter to ptr)
@slots = internal addrspace(3) global [32 x i32] poison, align 16

define ptx_kernel void @atomic_orders(ptr addrspace(1) %cells, ptr addrspace(1) %x) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %at
  %c1 = getelementptr i32, ptr addrspace(1) %cells, i32 1
  %c2 = getelementptr i32, ptr addrspace(1) %cells, i32 2
  %c3 = getelementptr i32, ptr addrspace(1) %cells, i32 3
  %c4 = getelementptr i32, ptr addrspace(1) %cells, i32 4
  %c5 = getelementptr i32, ptr addrspace(1) %cells, i32 5
  %a = atomicrmw add ptr addrspace(1) %cells, i32 %v monotonic
  %b = atomicrmw max ptr addrspace(1) %c1, i32 %v syncscope("block") acquire
  %c = atomicrmw umin ptr addrspace(1) %c2, i32 %v syncscope("device") release
  %d = atomicrmw or ptr addrspace(1) %c3, i32 %v acq_rel
  %e = atomicrmw sub ptr addrspace(1) %c4, i32 %v seq_cst
  %f = cmpxchg ptr addrspace(1) %c5, i32 0, i32 9 syncscope("device") acq_rel monotonic
  ret void
}

define ptx_kernel void @ordered_copy(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %a = load atomic i32, ptr addrspace(1) %from acquire, align 4
  fence acq_rel
  store atomic i32 %a, ptr addrspace(1) %to release, align 4
  fence syncscope("block") seq_cst
  %b = load volatile i32, ptr addrspace(1) %to
  %c = load atomic i32, ptr addrspace(1) %from syncscope("device") monotonic, align 4
  %sum = add i32 %b, %c
  store atomic i32 %sum, ptr addrspace(1) %to syncscope("block") monotonic, align 4
  ret void
}

define ptx_kernel void @vector_lanes(ptr addrspace(1) readonly noalias %x, ptr addrspace(1) noalias %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr <4 x i32>, ptr addrspace(1) %x, i32 %i
  %to = getelementptr <4 x i32>, ptr addrspace(1) %out, i32 %i
  %v = load <4 x i32>, ptr addrspace(1) %from, align 16, !invariant.load !0
  %r = shufflevector <4 x i32> %v, <4 x i32> poison, <4 x i32> <i32 3, i32 2, i32 1, i32 0>
  %s = mul <4 x i32> %r, <i32 1, i32 3, i32 5, i32 7>
  store <4 x i32> %s, ptr addrspace(1) %to, align 16, !nontemporal !1
  ret void
}

define ptx_kernel void @integer_intrinsics(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %py = getelementptr i32, ptr addrspace(1) %y, i32 %i
  %po = getelementptr [6 x i32], ptr addrspace(1) %out, i32 %i
  %a = load i32, ptr addrspace(1) %px
  %b = load i32, ptr addrspace(1) %py
  %dot = call i32 @llvm.nvvm.idp4a.s.u(i32 %a, i32 %b, i32 11)
  %shift = and i32 %b, 31
  %funnel = call i32 @llvm.fshl.i32(i32 %a, i32 %b, i32 %shift)
  %sat = call i32 @llvm.uadd.sat.i32(i32 %a, i32 %b)
  %pair = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %a, i32 %b)
  %over = extractvalue { i32, i1 } %pair, 1
  %flag = zext i1 %over to i32
  %wide = zext i32 %a to i64
  %square = mul i64 %wide, %wide
  %bits = call i64 @llvm.ctpop.i64(i64 %square)
  %count = trunc i64 %bits to i32
  %turned = call i32 @llvm.bitreverse.i32(i32 %a)
  %swapped = call i32 @llvm.bswap.i32(i32 %turned)
  store i32 %dot, ptr addrspace(1) %po
  %p1 = getelementptr i32, ptr addrspace(1) %po, i32 1
  store i32 %funnel, ptr addrspace(1) %p1
  %p2 = getelementptr i32, ptr addrspace(1) %po, i32 2
  store i32 %sat, ptr addrspace(1) %p2
  %p3 = getelementptr i32, ptr addrspace(1) %po, i32 3
  store i32 %flag, ptr addrspace(1) %p3
  %p4 = getelementptr i32, ptr addrspace(1) %po, i32 4
  store i32 %count, ptr addrspace(1) %p4
  %p5 = getelementptr i32, ptr addrspace(1) %po, i32 5
  store i32 %swapped, ptr addrspace(1) %p5
  ret void
}

define ptx_kernel void @jump_table(ptr addrspace(1) %x, ptr addrspace(1) %out) {
entry:
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %to = getelementptr i32, ptr addrspace(1) %out, i32 %i
  %v = load i32, ptr addrspace(1) %from
  %kind = and i32 %v, 7
  switch i32 %kind, label %other [
    i32 0, label %zero
    i32 1, label %one
    i32 2, label %two
    i32 3, label %three
    i32 4, label %four
    i32 5, label %five
  ]
zero:
  %r0 = mul i32 %v, 13
  br label %done
one:
  %r1 = xor i32 %v, -1
  br label %done
two:
  %r2 = udiv i32 %v, 10
  br label %done
three:
  %r3 = shl i32 %v, 5
  br label %done
four:
  %r4 = call fastcc i32 @looked_up(i32 %v)
  br label %done
five:
  %r5 = ashr i32 %v, 3
  br label %done
other:
  %ro = sub i32 0, %v
  br label %done
done:
  %r = phi i32 [ %r0, %zero ], [ %r1, %one ], [ %r2, %two ], [ %r3, %three ], [ %r4, %four ], [ %r5, %five ], [ %ro, %other ]
  store i32 %r, ptr addrspace(1) %to
  ret void
}

define internal fastcc i32 @looked_up(i32 %v) noinline {
  %k = and i32 %v, 7
  %at = getelementptr [8 x i32], ptr addrspace(4) @table, i32 0, i32 %k
  %r = load i32, ptr addrspace(4) %at
  %through = load ptr, ptr addrspace(1) @place
  %base = load i32, ptr %through
  %sum = add i32 %r, %base
  ret i32 %sum
}

define ptx_kernel void @reverse_shared(ptr addrspace(1) %x) "nvvm.maxntid"="32,1,1" "nvvm.minctasm"="4" {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, ptr addrspace(1) %x, i32 %i
  %v = load i32, ptr addrspace(1) %at
  %slot = getelementptr [32 x i32], ptr addrspace(3) @slots, i32 0, i32 %i
  store i32 %v, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %j = sub i32 31, %i
  %other = getelementptr [32 x i32], ptr addrspace(3) @slots, i32 0, i32 %j
  %w = load i32, ptr addrspace(3) %other
  store i32 %w, ptr addrspace(1) %at
  ret void
}

%pair = type { i32, double }

define internal %pair @swap_parts(ptr byval(%pair) align 8 %p) noinline {
  %n = load i32, ptr %p
  %q = getelementptr %pair, ptr %p, i32 0, i32 1
  %d = load double, ptr %q
  %dn = fptosi double %d to i32
  %nd = sitofp i32 %n to double
  %a = insertvalue %pair poison, i32 %dn, 0
  %b = insertvalue %pair %a, double %nd, 1
  ret %pair %b
}

define ptx_kernel void @structure_by_value(ptr byval(%pair) align 8 %p, ptr addrspace(1) %out) {
  %r = call %pair @swap_parts(ptr byval(%pair) align 8 %p)
  store %pair %r, ptr addrspace(1) %out
  ret void
}

!0 = !{}
!1 = !{i32 1}
