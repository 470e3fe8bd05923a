// Instructions that C++ has no word for, one family per kernel, by inline assembly.
//! build nvcc 13.5.37 sm_89
typedef unsigned u32;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
#define TERNARY(name, text) \
  __device__ __forceinline__ int name(int a, int b, int c) { \
    int d; \
    asm volatile(text " %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c)); \
    return d; \
  }
#define BINARY(name, text) \
  __device__ __forceinline__ int name(int a, int b) { \
    int d; \
    asm volatile(text " %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b)); \
    return d; \
  }
#define UNARY(name, text) \
  __device__ __forceinline__ int name(int a) { \
    int d; \
    asm volatile(text " %0, %1;" : "=r"(d) : "r"(a)); \
    return d; \
  }

//! kernel video_scalar video-instructions
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits c=i32[32]:integers(low=-1000,high=1000) y=i32[8,32]:zeros
//! out y -> assembly.video_scalar
TERNARY(vadd_bytes, "vadd.s32.s32.s32.add") TERNARY(vsub_sat, "vsub.s32.u32.u32.sat.min")
TERNARY(vabsdiff_max, "vabsdiff.s32.s32.s32.max") TERNARY(vmin_add, "vmin.s32.s32.s32.add")
TERNARY(vmax_min, "vmax.s32.s32.s32.min") TERNARY(vshl_wrap, "vshl.u32.u32.u32.wrap.add")
TERNARY(vshr_clamp, "vshr.s32.s32.u32.clamp.add") TERNARY(vset_lt, "vset.s32.s32.lt.add")
KERNEL video_scalar(const int *a, const int *b, const int *c, int *y) {
  int i = threadIdx.x, p = a[i], q = b[i], r = c[i];
  y[i] = vadd_bytes(p >> 8, q >> 8, r);
  y[32 + i] = vsub_sat(p, q, r);
  y[64 + i] = vabsdiff_max(p >> 2, q >> 2, r);
  y[96 + i] = vmin_add(p, q, r);
  y[128 + i] = vmax_min(p, q, r);
  y[160 + i] = vshl_wrap(p, q, r);
  y[192 + i] = vshr_clamp(p, q & 63, r);
  y[224 + i] = vset_lt(p, q, r);
}

//! kernel video_selectors video-instructions
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits c=i32[32]:integers(low=-1000,high=1000) y=i32[4,32]:zeros
//! out y -> assembly.video_selectors
KERNEL video_selectors(const int *a, const int *b, const int *c, int *y) {
  int i = threadIdx.x, d0, d1, d2, d3;
  asm("vadd.s32.u32.s32 %0, %1.b0, %2.h1;" : "=r"(d0) : "r"(a[i]), "r"(b[i]));
  asm("vsub.s32.s32.u32.add %0, %1.h0, %2.b3, %3;" : "=r"(d1) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("vmad.s32.s32.s32 %0, %1.h0, %2.h1, %3;" : "=r"(d2) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("vmad.u32.u32.u32.shr7 %0, %1.h1, %2.b2, %3;" : "=r"(d3) : "r"(a[i]), "r"(b[i]), "r"(c[i] & 1023));
  y[i] = d0, y[32 + i] = d1, y[64 + i] = d2, y[96 + i] = d3;
}

//! kernel video_simd simd-in-register
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits y=i32[8,32]:zeros
//! out y -> assembly.video_simd
TERNARY(vadd4, "vadd4.u32.u32.u32") TERNARY(vsub4_sat, "vsub4.s32.s32.s32.sat") TERNARY(vavrg4, "vavrg4.u32.u32.u32")
TERNARY(vabsdiff4, "vabsdiff4.u32.u32.u32.add") TERNARY(vmin2, "vmin2.s32.s32.s32") TERNARY(vmax2, "vmax2.u32.u32.u32")
TERNARY(vset4, "vset4.u32.u32.lt") TERNARY(vadd2, "vadd2.s32.s32.s32.sat")
KERNEL video_simd(const int *a, const int *b, int *y) {
  int i = threadIdx.x, p = a[i], q = b[i];
  y[i] = vadd4(p, q, 0);
  y[32 + i] = vsub4_sat(p, q, 0);
  y[64 + i] = vavrg4(p, q, 0);
  y[96 + i] = vabsdiff4(p, q, 100);
  y[128 + i] = vmin2(p, q, 0);
  y[160 + i] = vmax2(p, q, 0);
  y[192 + i] = vset4(p, q, 0);
  y[224 + i] = vadd2(p, q, 0);
}

//! kernel bit_fields bit-fields
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits y=i32[10,32]:zeros
//! out y -> assembly.bit_fields
TERNARY(bfe_u32, "bfe.u32") TERNARY(bfe_s32, "bfe.s32") UNARY(bfind_u32, "bfind.u32") UNARY(bfind_s32, "bfind.s32")
UNARY(bfind_shift, "bfind.shiftamt.u32") BINARY(bmsk, "bmsk.clamp.b32") BINARY(bmsk_wrap, "bmsk.wrap.b32")
BINARY(szext_s, "szext.clamp.s32") BINARY(szext_u, "szext.wrap.u32")
KERNEL bit_fields(const int *a, const int *b, int *y) {
  int i = threadIdx.x, p = a[i], q = b[i], d, lo = q & 31, n = q >> 5 & 31;
  asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(p), "r"(q), "r"(lo), "r"(n));
  y[i] = d;
  y[32 + i] = bfe_u32(p, lo, n);
  y[64 + i] = bfe_s32(p, lo, n);
  y[96 + i] = bfind_u32(p);
  y[128 + i] = bfind_s32(p);
  y[160 + i] = bfind_shift(p | 1);
  y[192 + i] = bmsk(lo, n);
  y[224 + i] = bmsk_wrap(q, q >> 8);
  y[256 + i] = szext_s(p, n);
  y[288 + i] = szext_u(p, n);
}

//! kernel three_input_logic bitwise-logic
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits c=i32[32]:bits y=i32[4,32]:zeros
//! out y -> assembly.three_input_logic
KERNEL three_input_logic(const int *a, const int *b, const int *c, int *y) {
  int i = threadIdx.x, d0, d1, d2, d3;
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(d0) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("lop3.b32 %0, %1, %2, %3, 0xe8;" : "=r"(d1) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("lop3.b32 %0, %1, %2, %3, 0x1b;" : "=r"(d2) : "r"(a[i]), "r"(b[i]), "r"(c[i]));
  asm("cnot.b32 %0, %1;" : "=r"(d3) : "r"(a[i] & 1));
  y[i] = d0, y[32 + i] = d1, y[64 + i] = d2, y[96 + i] = d3;
}

//! kernel permute_modes byte-permutation
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits s=i32[32]:integers(low=0,high=4) y=i32[7,32]:zeros
//! out y -> assembly.permute_modes
TERNARY(prmt_sign, "prmt.b32") TERNARY(prmt_f4e, "prmt.b32.f4e") TERNARY(prmt_b4e, "prmt.b32.b4e")
TERNARY(prmt_rc8, "prmt.b32.rc8") TERNARY(prmt_ecl, "prmt.b32.ecl") TERNARY(prmt_ecr, "prmt.b32.ecr")
TERNARY(prmt_rc16, "prmt.b32.rc16")
KERNEL permute_modes(const int *a, const int *b, const int *s, int *y) {
  int i = threadIdx.x, p = a[i], q = b[i], r = s[i];
  y[i] = prmt_sign(p, q, 0x9e40);
  y[32 + i] = prmt_f4e(p, q, r);
  y[64 + i] = prmt_b4e(p, q, r);
  y[96 + i] = prmt_rc8(p, q, r);
  y[128 + i] = prmt_ecl(p, q, r);
  y[160 + i] = prmt_ecr(p, q, r);
  y[192 + i] = prmt_rc16(p, q, r);
}

//! kernel carry_chains big-integer-multiplication
//! launch 1 16
//! args a=u32[16,4]:bits b=u32[16,4]:bits sum=u32[16,5]:zeros difference=u32[16,5]:zeros product=u32[16,5]:zeros
//! out sum difference product -> assembly.carry_chains
KERNEL carry_chains(const u32 *a, const u32 *b, u32 *sum, u32 *difference, u32 *product) {
  a += threadIdx.x * 4, b += threadIdx.x * 4;
  u32 s[5], p[5];
  asm("add.cc.u32 %0, %5, %9;\n\taddc.cc.u32 %1, %6, %10;\n\taddc.cc.u32 %2, %7, %11;\n\t"
      "addc.cc.u32 %3, %8, %12;\n\taddc.u32 %4, 0, 0;"
      : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]), "=r"(s[4])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
  for (int i = 0; i < 5; ++i) sum[threadIdx.x * 5 + i] = s[i];
  asm("sub.cc.u32 %0, %5, %9;\n\tsubc.cc.u32 %1, %6, %10;\n\tsubc.cc.u32 %2, %7, %11;\n\t"
      "subc.cc.u32 %3, %8, %12;\n\tsubc.u32 %4, 0, 0;"
      : "=r"(s[0]), "=r"(s[1]), "=r"(s[2]), "=r"(s[3]), "=r"(s[4])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
  for (int i = 0; i < 5; ++i) difference[threadIdx.x * 5 + i] = s[i];
  asm("mul.lo.u32 %0, %5, %9;\n\tmul.hi.u32 %1, %5, %9;\n\tmad.lo.cc.u32 %1, %6, %9, %1;\n\t"
      "madc.hi.u32 %2, %6, %9, 0;\n\tmad.lo.cc.u32 %2, %7, %9, %2;\n\tmadc.hi.u32 %3, %7, %9, 0;\n\t"
      "mad.lo.cc.u32 %3, %8, %9, %3;\n\tmadc.hi.u32 %4, %8, %9, 0;"
      : "=&r"(p[0]), "=&r"(p[1]), "=&r"(p[2]), "=&r"(p[3]), "=&r"(p[4])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]));
  for (int i = 0; i < 5; ++i) product[threadIdx.x * 5 + i] = p[i];
}

//! kernel carry_chains_64 big-integer-multiplication
//! launch 1 16
//! args a=u64[16,2]:bits b=u64[16]:bits y=u64[16,3]:zeros
//! out y -> assembly.wide_by_64
KERNEL carry_chains_64(const u64 *a, const u64 *b, u64 *y) {
  u64 p0, p1, p2, x = a[2 * threadIdx.x], z = a[2 * threadIdx.x + 1], w = b[threadIdx.x];
  asm("mul.lo.u64 %0, %3, %5;\n\tmul.hi.u64 %1, %3, %5;\n\tmad.lo.cc.u64 %1, %4, %5, %1;\n\tmadc.hi.u64 %2, %4, %5, 0;"
      : "=&l"(p0), "=&l"(p1), "=&l"(p2) : "l"(x), "l"(z), "l"(w));
  y[3 * threadIdx.x] = p0, y[3 * threadIdx.x + 1] = p1, y[3 * threadIdx.x + 2] = p2;
}

//! kernel integer_corners integer-arithmetic
//! launch 1 32
//! args a=i32[32]:bits b=i32[32]:bits c=i32[32]:bits y=i32[10,32]:zeros
//! out y -> assembly.integer_corners
TERNARY(mad24_lo, "mad24.lo.s32") TERNARY(mad_hi_sat, "mad.hi.sat.s32") BINARY(add_sat, "add.sat.s32")
BINARY(sub_sat, "sub.sat.s32") TERNARY(slct, "slct.s32.s32") TERNARY(sad_u32, "sad.u32") BINARY(mul24_hi, "mul24.hi.u32")
TERNARY(dp2a_lo, "dp2a.lo.s32.u32") TERNARY(dp4a_mixed, "dp4a.u32.s32") TERNARY(mad24_hi, "mad24.hi.u32")
KERNEL integer_corners(const int *a, const int *b, const int *c, int *y) {
  int i = threadIdx.x, p = a[i], q = b[i], r = c[i];
  y[i] = mad24_lo(p, q, r);
  y[32 + i] = mad_hi_sat(p, q, r);
  y[64 + i] = add_sat(p, q);
  y[96 + i] = sub_sat(p, q);
  y[128 + i] = slct(p, q, r);
  y[160 + i] = sad_u32(p, q, r);
  y[192 + i] = mul24_hi(p, q);
  y[224 + i] = dp2a_lo(p, q, r);
  y[256 + i] = dp4a_mixed(p, q, r);
  y[288 + i] = mad24_hi(p, q, r);
}

//! kernel float_corners floating-point
//! launch 1 32
//! args a=f32[32]:normal b=f32[32]:normal y=f32[12,32]:zeros
//! out y:1e-5:1e-6 -> assembly.float_corners
#define FBINARY(name, text) \
  __device__ __forceinline__ float name(float a, float b) { \
    float d; \
    asm(text " %0, %1, %2;" : "=f"(d) : "f"(a), "f"(b)); \
    return d; \
  }
#define FUNARY(name, text) \
  __device__ __forceinline__ float name(float a) { \
    float d; \
    asm(text " %0, %1;" : "=f"(d) : "f"(a)); \
    return d; \
  }
FBINARY(copysign_f, "copysign.f32") FBINARY(min_nan, "min.NaN.f32") FBINARY(max_abs, "max.xorsign.abs.f32")
FBINARY(div_full, "div.full.ftz.f32") FBINARY(add_sat_f, "add.rz.ftz.sat.f32") FBINARY(mul_rm, "mul.rm.f32")
FUNARY(tanh_approx, "tanh.approx.f32") FUNARY(ex2_ftz, "ex2.approx.ftz.f32") FUNARY(rcp_rn, "rcp.rn.f32")
FUNARY(sqrt_approx, "sqrt.approx.ftz.f32") FUNARY(cvt_rni, "cvt.rni.f32.f32") FUNARY(cvt_sat, "cvt.sat.f32.f32")
KERNEL float_corners(const float *a, const float *b, float *y) {
  int i = threadIdx.x;
  y[i] = copysign_f(a[i], b[i]);
  y[32 + i] = min_nan(a[i], b[i]);
  y[64 + i] = max_abs(a[i], b[i]);
  y[96 + i] = div_full(a[i], b[i]);
  y[128 + i] = add_sat_f(a[i], b[i]);
  y[160 + i] = mul_rm(a[i], b[i]);
  y[192 + i] = tanh_approx(a[i]) * 0.0f + rcp_rn(b[i]);
  y[224 + i] = ex2_ftz(a[i]);
  y[256 + i] = sqrt_approx(fabsf(b[i]));
  y[288 + i] = cvt_rni(a[i] * 10.0f);
  y[320 + i] = cvt_sat(a[i]);
  int cls;
  asm("{\n\t.reg .pred p;\n\ttestp.finite.f32 p, %1;\n\tselp.s32 %0, 1, 0, p;\n\t}" : "=r"(cls) : "f"(a[i] / (b[i] * 0.0f)));
  y[352 + i] = (float)cls + 2.0f;
}

//! kernel predicates_and_sets comparison
//! launch 1 32
//! args a=f32[32]:normal b=f32[32]:normal c=i32[32]:integers(low=-2,high=3) y=i32[6,32]:zeros
//! out y -> assembly.predicates
KERNEL predicates_and_sets(const float *a, const float *b, const int *c, int *y) {
  int i = threadIdx.x, d0, d1, d2, d3, d4;
  float f;
  asm("set.lt.u32.f32 %0, %1, %2;" : "=r"(d0) : "f"(a[i]), "f"(b[i]));
  asm("set.gtu.f32.f32 %0, %1, %2;" : "=f"(f) : "f"(a[i]), "f"(b[i]));
  asm("{\n\t.reg .pred p, q, r;\n\tsetp.lt.s32 r, %3, 0;\n\tsetp.gt.and.f32 p|q, %1, %2, r;\n\tselp.s32 %0, 1, 0, p;\n\t}"
      : "=r"(d1) : "f"(a[i]), "f"(b[i]), "r"(c[i]));
  asm("{\n\t.reg .pred p, q, r;\n\tsetp.eq.s32 r, %3, 1;\n\tsetp.ne.or.f32 p|q, %1, %2, !r;\n\tselp.s32 %0, 1, 0, q;\n\t}"
      : "=r"(d2) : "f"(a[i]), "f"(b[i]), "r"(c[i]));
  asm("{\n\t.reg .pred p, q;\n\tsetp.lo.u32 p, %1, 2;\n\tsetp.hs.xor.u32 q, %1, 1, p;\n\tand.pred p, p, q;\n\tnot.pred q, p;\n\t"
      "selp.b32 %0, 3, 4, q;\n\t}" : "=r"(d3) : "r"(c[i]));
  asm("set.eq.s32.s32 %0, %1, 1;" : "=r"(d4) : "r"(c[i]));
  y[i] = d0, y[32 + i] = (int)f, y[64 + i] = d1, y[96 + i] = d2, y[128 + i] = d3, y[160 + i] = d4;
}

//! kernel half_register_moves register-packing
//! launch 1 32
//! args a=u64[32]:bits y=u64[32]:zeros
//! out y -> assembly.reversed_halves
KERNEL half_register_moves(const u64 *a, u64 *y) {
  u64 d;
  asm("{\n\t.reg .b16 h<4>;\n\t.reg .b32 w<2>;\n\tmov.b64 {h0, h1, h2, h3}, %1;\n\tmov.b32 w0, {h3, h2};\n\t"
      "mov.b32 w1, {h1, h0};\n\tmov.b64 %0, {w0, w1};\n\t}" : "=l"(d) : "l"(a[threadIdx.x]));
  y[threadIdx.x] = d;
}

//! kernel special_registers special-registers
//! launch 2x2 16x2
//! args y=u32[2,2,32,6]:zeros
//! out y -> assembly.special_registers
KERNEL special_registers(u32 *y) {
  u32 lane, warps, ge, lt, eq, ctas;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%ctaid.y;" : "=r"(warps));
  asm("mov.u32 %0, %%lanemask_ge;" : "=r"(ge));
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm("mov.u32 %0, %%lanemask_eq;" : "=r"(eq));
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(ctas));
  u32 *out = y + ((blockIdx.y * 2 + blockIdx.x) * 32 + threadIdx.y * 16 + threadIdx.x) * 6;
  out[0] = lane, out[1] = warps, out[2] = ge, out[3] = lt, out[4] = eq, out[5] = ctas;
}

//! kernel machine_state special-registers
//! norun reads clocks and identifiers of the machine
KERNEL machine_state(u64 *y) {
  u32 smid, nsmid, warpid, nwarpid, clock, high, dynamic, total, e;
  u64 wide, timer, grid;
  asm volatile("mov.u32 %0, %%smid;\n\tmov.u32 %1, %%nsmid;\n\tmov.u32 %2, %%warpid;\n\tmov.u32 %3, %%nwarpid;"
               : "=r"(smid), "=r"(nsmid), "=r"(warpid), "=r"(nwarpid));
  asm volatile("mov.u32 %0, %%clock;\n\tmov.u32 %1, %%clock_hi;\n\tmov.u64 %2, %%clock64;" : "=r"(clock), "=r"(high), "=l"(wide));
  asm volatile("mov.u64 %0, %%globaltimer;\n\tmov.u64 %1, %%gridid;\n\tmov.u32 %2, %%envreg3;" : "=l"(timer), "=l"(grid), "=r"(e));
  asm volatile("mov.u32 %0, %%dynamic_smem_size;\n\tmov.u32 %1, %%total_smem_size;" : "=r"(dynamic), "=r"(total));
  asm volatile("pmevent 3;\n\tnanosleep.u32 100;");
  y[threadIdx.x] = smid + nsmid + warpid + nwarpid + clock + high + wide + timer + grid + dynamic + total + e;
}
