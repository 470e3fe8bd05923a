; Conversions between small and large floating-point types, packed arithmetic, and approximate functions.
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i16 @llvm.nvvm.ff.to.e4m3x2.rn(float, float)
declare i16 @llvm.nvvm.ff.to.e5m2x2.rn.relu(float, float)
declare <2 x half> @llvm.nvvm.e4m3x2.to.f16x2.rn(i16)
declare <2 x half> @llvm.nvvm.e5m2x2.to.f16x2.rn(i16)
declare i16 @llvm.nvvm.ff.to.e2m3x2.rn.satfinite(float, float)
declare <2 x half> @llvm.nvvm.e2m3x2.to.f16x2.rn(i16)
declare i16 @llvm.nvvm.ff.to.e2m1x2.rn.satfinite(float, float)
declare i16 @llvm.nvvm.ff.to.ue8m0x2.rp.satfinite(float, float)
declare <2 x bfloat> @llvm.nvvm.ue8m0x2.to.bf16x2(i16)
declare i32 @llvm.nvvm.f2tf32.rna(float)
declare <2 x bfloat> @llvm.nvvm.ff2bf16x2.rn.relu(float, float)
declare half @llvm.nvvm.ex2.approx.f16(half)
declare float @llvm.nvvm.ex2.approx.ftz.f(float)
declare float @llvm.nvvm.sin.approx.f(float)
declare float @llvm.nvvm.rsqrt.approx.f(float)
declare float @llvm.nvvm.fmin.xorsign.abs.f(float, float)
declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
declare <2 x half> @llvm.maximum.v2f16(<2 x half>, <2 x half>)
declare <2 x float> @llvm.fma.v2f32(<2 x float>, <2 x float>, <2 x float>)
declare float @llvm.minimum.f32(float, float)
declare float @llvm.nvvm.redux.sync.fmax.abs.NaN(float, i32)
declare i64 @llvm.fptosi.sat.i64.f64(double)

define ptx_kernel void @narrow_conversions(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr <2 x float>, ptr addrspace(1) %x, i32 %i
  %to = getelementptr [5 x i16], ptr addrspace(1) %out, i32 %i
  %v = load <2 x float>, ptr addrspace(1) %from
  %a = extractelement <2 x float> %v, i32 0
  %b = extractelement <2 x float> %v, i32 1
  %e4m3 = call i16 @llvm.nvvm.ff.to.e4m3x2.rn(float %a, float %b)
  %e5m2 = call i16 @llvm.nvvm.ff.to.e5m2x2.rn.relu(float %a, float %b)
  %e2m3 = call i16 @llvm.nvvm.ff.to.e2m3x2.rn.satfinite(float %a, float %b)
  %e2m1 = call i16 @llvm.nvvm.ff.to.e2m1x2.rn.satfinite(float %a, float %b)
  %ue8m0 = call i16 @llvm.nvvm.ff.to.ue8m0x2.rp.satfinite(float %a, float %b)
  store i16 %e4m3, ptr addrspace(1) %to
  %t1 = getelementptr i16, ptr addrspace(1) %to, i32 1
  store i16 %e5m2, ptr addrspace(1) %t1
  %t2 = getelementptr i16, ptr addrspace(1) %to, i32 2
  store i16 %e2m3, ptr addrspace(1) %t2
  %t3 = getelementptr i16, ptr addrspace(1) %to, i32 3
  store i16 %e2m1, ptr addrspace(1) %t3
  %t4 = getelementptr i16, ptr addrspace(1) %to, i32 4
  store i16 %ue8m0, ptr addrspace(1) %t4
  ret void
}

define ptx_kernel void @widening_conversions(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr i16, ptr addrspace(1) %x, i32 %i
  %to = getelementptr [4 x <2 x half>], ptr addrspace(1) %out, i32 %i
  %v = load i16, ptr addrspace(1) %from
  %a = call <2 x half> @llvm.nvvm.e4m3x2.to.f16x2.rn(i16 %v)
  %b = call <2 x half> @llvm.nvvm.e5m2x2.to.f16x2.rn(i16 %v)
  %c = call <2 x half> @llvm.nvvm.e2m3x2.to.f16x2.rn(i16 %v)
  %d = call <2 x bfloat> @llvm.nvvm.ue8m0x2.to.bf16x2(i16 %v)
  store <2 x half> %a, ptr addrspace(1) %to
  %t1 = getelementptr <2 x half>, ptr addrspace(1) %to, i32 1
  store <2 x half> %b, ptr addrspace(1) %t1
  %t2 = getelementptr <2 x half>, ptr addrspace(1) %to, i32 2
  store <2 x half> %c, ptr addrspace(1) %t2
  %t3 = getelementptr <2 x half>, ptr addrspace(1) %to, i32 3
  store <2 x bfloat> %d, ptr addrspace(1) %t3
  ret void
}

define ptx_kernel void @approximate_functions(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr float, ptr addrspace(1) %x, i32 %i
  %to = getelementptr [5 x float], ptr addrspace(1) %out, i32 %i
  %v = load float, ptr addrspace(1) %from
  %a = call float @llvm.nvvm.ex2.approx.ftz.f(float %v)
  %b = call float @llvm.nvvm.sin.approx.f(float %v)
  %c = call float @llvm.nvvm.rsqrt.approx.f(float %a)
  %d = call float @llvm.nvvm.fmin.xorsign.abs.f(float %v, float -1.5)
  %top = call float @llvm.nvvm.redux.sync.fmax.abs.NaN(float %v, i32 -1)
  store float %a, ptr addrspace(1) %to
  %t1 = getelementptr float, ptr addrspace(1) %to, i32 1
  store float %b, ptr addrspace(1) %t1
  %t2 = getelementptr float, ptr addrspace(1) %to, i32 2
  store float %c, ptr addrspace(1) %t2
  %t3 = getelementptr float, ptr addrspace(1) %to, i32 3
  store float %d, ptr addrspace(1) %t3
  %t4 = getelementptr float, ptr addrspace(1) %to, i32 4
  store float %top, ptr addrspace(1) %t4
  ret void
}

define ptx_kernel void @packed_arithmetic(ptr addrspace(1) %x, ptr addrspace(1) %y) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %px = getelementptr <2 x half>, ptr addrspace(1) %x, i32 %i
  %py = getelementptr <2 x float>, ptr addrspace(1) %y, i32 %i
  %h = load <2 x half>, ptr addrspace(1) %px
  %f = load <2 x float>, ptr addrspace(1) %py
  %g = call <2 x half> @llvm.fma.v2f16(<2 x half> %h, <2 x half> %h, <2 x half> <half 1.0, half -1.0>)
  %m = call <2 x half> @llvm.maximum.v2f16(<2 x half> %g, <2 x half> %h)
  %k = call <2 x float> @llvm.fma.v2f32(<2 x float> %f, <2 x float> %f, <2 x float> <float 0.5, float 0.25>)
  store <2 x half> %m, ptr addrspace(1) %px
  store <2 x float> %k, ptr addrspace(1) %py
  ret void
}

define ptx_kernel void @saturating_integers(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %from = getelementptr double, ptr addrspace(1) %x, i32 %i
  %to = getelementptr i64, ptr addrspace(1) %out, i32 %i
  %v = load double, ptr addrspace(1) %from
  %scaled = fmul double %v, 4.0e18
  %r = call i64 @llvm.fptosi.sat.i64.f64(double %scaled)
  store i64 %r, ptr addrspace(1) %to
  ret void
}
