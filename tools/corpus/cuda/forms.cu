// Rarely written forms, a family per kernel: cache policies, proxies, tensor maps, multimem, barriers, conversions.
//! build nvcc 13.3.73 sm_90a
typedef unsigned u32;
typedef unsigned short u16;
typedef unsigned long long u64;
#define KERNEL extern "C" __global__ void
struct alignas(64) TensorMap { char bytes[128]; };
__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

//! kernel cache_policies cache-policy
//! launch 1 32
//! args x=f32[32]:normal y=f32[7,32]:zeros
//! out y -> memory.seven_copies
KERNEL cache_policies(const float *x, float *y) {
  u64 keep, mix, range;
  int i = threadIdx.x;
  float v[7];
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
  asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(mix));
  asm volatile("createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %0, [%1], 128, 1024;" : "=l"(range) : "l"(x));
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.f32 %0, [%1];" : "=f"(v[0]) : "l"(x + i));
  asm volatile("ld.global.L1::evict_last.L2::cache_hint.L2::256B.f32 %0, [%1], %2;" : "=f"(v[1]) : "l"(x + i), "l"(keep));
  asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;" : "=f"(v[2]) : "l"(x + i), "l"(mix));
  asm volatile("ld.relaxed.gpu.global.L1::evict_first.f32 %0, [%1];" : "=f"(v[3]) : "l"(x + i));
  asm volatile("ld.acquire.sys.global.f32 %0, [%1];" : "=f"(v[4]) : "l"(x + i));
  asm volatile("ld.weak.global.cv.f32 %0, [%1];" : "=f"(v[5]) : "l"(x + i));
  asm volatile("ld.mmio.relaxed.sys.global.f32 %0, [%1];" : "=f"(v[6]) : "l"(x + i));
  asm volatile("st.global.L1::no_allocate.f32 [%0], %1;" ::"l"(y + i), "f"(v[0]) : "memory");
  asm volatile("st.global.L2::cache_hint.f32 [%0], %1, %2;" ::"l"(y + 32 + i), "f"(v[1]), "l"(range) : "memory");
  asm volatile("st.release.gpu.global.f32 [%0], %1;" ::"l"(y + 64 + i), "f"(v[2]) : "memory");
  asm volatile("st.relaxed.sys.global.f32 [%0], %1;" ::"l"(y + 96 + i), "f"(v[3]) : "memory");
  asm volatile("st.weak.global.wt.f32 [%0], %1;" ::"l"(y + 128 + i), "f"(v[4]) : "memory");
  asm volatile("st.volatile.global.f32 [%0], %1;" ::"l"(y + 160 + i), "f"(v[5]) : "memory");
  asm volatile("st.mmio.relaxed.sys.global.f32 [%0], %1;" ::"l"(y + 192 + i), "f"(v[6]) : "memory");
}

//! kernel prefetches prefetch
//! norun discards and demotes cache lines
KERNEL prefetches(char *p, const __grid_constant__ TensorMap m) {
  asm volatile("prefetch.global.L1 [%0];\n\tprefetch.global.L2 [%0];\n\tprefetch.global.L2::evict_last [%0];" ::"l"(p));
  asm volatile("prefetch.global.L2::evict_normal [%0];\n\tprefetchu.L1 [%0];" ::"l"(p));
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;\n\tdiscard.global.L2 [%0+128], 128;" ::"l"(p));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], 256;" ::"l"(p));
  asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global.tile [%0, {0, 1, 2}];" ::"l"(&m));
  asm volatile("prefetch.param.tensormap [%0];" ::"l"(&m));
}

//! kernel atomic_forms atomic-forms
//! launch 1 32
//! args y=u32[12]:zeros h=f16[2]:zeros
//! out y h -> memory.atomic_forms
KERNEL atomic_forms(u32 *y, u16 *h) {
  u32 d, lane = threadIdx.x;
  u64 w;
  __shared__ u32 s[2];
  if (lane < 2) s[lane] = 0;
  __syncwarp();
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 2;" : "=r"(d) : "l"(y) : "memory");
  asm volatile("atom.acq_rel.sys.global.max.u32 %0, [%1], %2;" : "=r"(d) : "l"(y + 1), "r"(lane) : "memory");
  asm volatile("atom.release.cta.global.or.b32 %0, [%1], %2;" : "=r"(d) : "l"(y + 2), "r"(1u << lane) : "memory");
  asm volatile("atom.acquire.cluster.global.inc.u32 %0, [%1], 9;" : "=r"(d) : "l"(y + 3) : "memory");
  asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(d) : "r"(shared_address(s)), "r"(lane) : "memory");
  asm volatile("red.relaxed.gpu.global.add.u32 [%0], 3;" ::"l"(y + 4) : "memory");
  asm volatile("red.global.min.s32 [%0], %1;" ::"l"(y + 5), "r"(-(int)lane) : "memory");
  asm volatile("red.shared.xor.b32 [%0], %1;" ::"r"(shared_address(s + 1)), "r"(lane) : "memory");
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(h), "r"(0x3c003c00) : "memory");
  asm volatile("atom.global.cas.b64 %0, [%1], 0, %2;" : "=l"(w) : "l"(y + 6), "l"(0x700000005ull) : "memory");
  asm volatile("atom.global.exch.b32 %0, [%1], 77;" : "=r"(d) : "l"(y + 8) : "memory");
  asm volatile("red.global.add.u64 [%0], %1;" ::"l"(y + 10), "l"((u64)lane << 30) : "memory");
  __syncwarp();
  if (lane == 0) y[9] = s[0] + s[1];
}

//! kernel vector_atomics vector-atomics
//! norun reads the old values of vector atomics
KERNEL vector_atomics(float *p, u32 *y) {
  float a, b, c, d;
  asm volatile("atom.global.v4.f32.add {%0, %1, %2, %3}, [%4], {%0, %1, %2, %3};" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(p) : "memory");
  asm volatile("red.global.v2.f32.add [%0], {%1, %2};" ::"l"(p), "f"(a), "f"(b) : "memory");
  asm volatile("red.relaxed.gpu.global.v4.bf16x2.add.noftz [%0], {%1, %1, %1, %1};" ::"l"(p), "r"(y[0]) : "memory");
  asm volatile("red.global.v8.f16.max.noftz [%0], {%1, %1, %1, %1, %1, %1, %1, %1};" ::"l"(p), "h"((u16)y[1]) : "memory");
  asm volatile("{\n\t.reg .b128 x, e;\n\tmov.b128 x, {%1, %1};\n\tatom.global.exch.b128 e, [%0], x;\n\tatom.cas.b128 e, [%0], e, x;\n\t}" ::"l"(p), "l"((u64)y[2]) : "memory");
  y[threadIdx.x] = (u32)(c + d);
}

//! kernel fences_of_proxies fences
//! norun orders proxies and computes nothing
KERNEL fences_of_proxies(u64 *map, u32 *y) {
  y[0] = 1;
  asm volatile("membar.cta;\n\tmembar.gl;\n\tmembar.sys;\n\tfence.sc.cta;\n\tfence.sc.cluster;\n\tfence.acq_rel.gpu;\n\tfence.sc.sys;" ::: "memory");
  asm volatile("fence.proxy.alias;\n\tfence.proxy.async;\n\tfence.proxy.async.global;\n\tfence.proxy.async.shared::cluster;" ::: "memory");
  asm volatile("fence.proxy.tensormap::generic.release.gpu;\n\tfence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
  asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;\n\tfence.release.sync_restrict::shared::cta.cluster;" ::: "memory");
  asm volatile("fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
  asm volatile("fence.acquire.cta;\n\tfence.release.gpu;" ::: "memory");
  y[1] = 2;
}

//! kernel tensor_map_edits tensor-map-replacement
//! norun writes a tensor map
KERNEL tensor_map_edits(u64 *global_map, const void *base) {
  __shared__ alignas(128) u64 map[16];
  u32 at = shared_address(map);
  if (threadIdx.x < 16) map[threadIdx.x] = global_map[threadIdx.x];
  __syncwarp();
  asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" ::"r"(at), "l"(base) : "memory");
  asm volatile("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], 1;\n\ttensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, 64;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(at), "r"(threadIdx.x) : "memory");
  asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" ::"r"(at), "l"(256ull) : "memory");
  asm volatile("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 0, 1;\n\ttensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;" ::"r"(at) : "memory");
  asm volatile("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;\n\ttensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 3;\n\t"
               "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;" ::"r"(at) : "memory");
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(global_map), "r"(at) : "memory");
}

//! kernel tensor_copy_modes tensor-map-modes
//! norun uses tensor maps of kinds the manifest does not describe
KERNEL tensor_copy_modes(const __grid_constant__ TensorMap m, u64 policy) {
  __shared__ alignas(128) float s[512];
  __shared__ u64 bar;
  u32 at = shared_address(s), b = shared_address(&bar);
#define LOAD(text, ...) asm volatile("cp.async.bulk.tensor." text ::"r"(at), "l"(&m), "r"(b), "l"(policy), "h"((u16)1), "r"(3) : "memory")
  LOAD("1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%5}], [%2];");
  LOAD("3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%5, 0, 1}], [%2], %3;");
  LOAD("4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%5, 0, 1, 2}], [%2], %4, %3;");
  LOAD("5d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%5, 0, 1, 2, 3}], [%2];");
  LOAD("3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%5, 0, 1}], [%2], {%4};");
  LOAD("4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%5, 0, 1, 2}], [%2], {%4, %4}, %3;");
  LOAD("5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%5, 0, 1, 2, 3}], [%2], {%4, %4, %4}, %4;");
  LOAD("1d.global.shared::cta.bulk_group [%1, {%5}], [%0];");
  LOAD("3d.global.shared::cta.tile.bulk_group.L2::cache_hint [%1, {%5, 0, 1}], [%0], %3;");
  LOAD("4d.global.shared::cta.im2col_no_offs.bulk_group [%1, {%5, 0, 1, 2}], [%0];");
  LOAD("5d.global.shared::cta.bulk_group [%1, {%5, 0, 1, 2, 3}], [%0];");
#define REDUCE(text) asm volatile("cp.reduce.async.bulk.tensor." text ::"r"(at), "l"(&m), "l"(policy) : "memory")
  REDUCE("1d.global.shared::cta.min.bulk_group [%1, {4}], [%0];");
  REDUCE("2d.global.shared::cta.max.tile.bulk_group.L2::cache_hint [%1, {4, 5}], [%0], %2;");
  REDUCE("3d.global.shared::cta.inc.bulk_group [%1, {4, 5, 6}], [%0];");
  REDUCE("4d.global.shared::cta.xor.im2col_no_offs.bulk_group [%1, {4, 5, 6, 7}], [%0];");
  REDUCE("5d.global.shared::cta.and.bulk_group [%1, {4, 5, 6, 7, 8}], [%0];");
  asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%0, {1, 2, 3, 4}], {%1, %1};" ::"l"(&m), "h"((u16)2));
}

//! kernel bulk_forms bulk-copy-forms
//! norun copies between shared memories of a cluster and to nowhere in particular
KERNEL bulk_forms(char *g, u64 policy) {
  __shared__ alignas(128) char s[512];
  __shared__ u64 bar;
  u32 at = shared_address(s), b = shared_address(&bar);
#define BULK(text) asm volatile(text ::"r"(at), "l"(g), "r"(b), "l"(policy), "h"((u16)3), "r"(128) : "memory")
  BULK("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %5, [%2], %4;");
  BULK("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%0+256], %5, [%2];");
  BULK("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%1], [%0], %5, %3;");
  BULK("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [%0], [%0+256], %5, [%2];");
  BULK("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [%0], [%0+256], %5, [%2];");
  BULK("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [%1], [%0], %5;");
  BULK("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.max.f16 [%1], [%0], %5, %3;");
  BULK("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f64 [%1], [%0], %5;");
  BULK("cp.reduce.async.bulk.global.shared::cta.bulk_group.xor.b64 [%1], [%0], %5;");
  BULK("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {1, 2, 3, 4}, [%2];");
  BULK("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.u64 [%0], {%3, %3}, [%2];");
  BULK("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%0], %5, [%2];");
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 3;\n\tcp.async.bulk.wait_group 1;");
}

//! kernel barrier_objects mbarrier-forms
//! launch 1 64
//! args y=u32[64]:zeros
//! out y -> asynchronous.barrier_objects
KERNEL barrier_objects(u32 *y) {
  __shared__ u64 bar[2];
  u32 a = shared_address(bar), b = shared_address(bar + 1), ready = 0, pending;
  u64 state;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 64;\n\tmbarrier.init.shared.b64 [%1], 65;" ::"r"(a), "r"(b) : "memory");
  }
  __syncthreads();
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(a) : "memory");
  while (!ready)
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.shared.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(ready) : "r"(a), "l"(state) : "memory");
  asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(state) : "r"(b) : "memory");
  asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
  __syncthreads();
  if (threadIdx.x == 63) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 8;\n\tmbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 8;" ::"r"(b) : "memory");
    asm volatile("mbarrier.arrive_drop.release.cta.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  }
  for (ready = 0; !ready;)
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(ready) : "r"(b) : "memory");
  y[threadIdx.x] = 1 + (pending > 0 && pending < 66);
  __syncthreads();
  if (threadIdx.x == 0) asm volatile("mbarrier.inval.shared::cta.b64 [%0];\n\tmbarrier.inval.shared.b64 [%1];" ::"r"(a), "r"(b) : "memory");
}

//! kernel async_copies_to_barrier asynchronous-copy
//! launch 1 32
//! args x=f32[32,4]:normal y=f32[32,4]:zeros
//! out y -> memory.copied
KERNEL async_copies_to_barrier(const float4 *x, float4 *y) {
  __shared__ float4 s[32];
  __shared__ u64 bar;
  u32 at = shared_address(s + threadIdx.x), b = shared_address(&bar), done = 0;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(b) : "memory");
  __syncwarp();
  asm volatile("cp.async.ca.shared::cta.global [%0], [%1], 8;\n\tcp.async.ca.shared.global.L2::64B [%0+8], [%1+8], 4;" ::"r"(at), "l"(x + threadIdx.x) : "memory");
  asm volatile("cp.async.ca.shared.global [%0+12], [%1+12], 4, 4;\n\tcp.async.mbarrier.arrive.noinc.shared::cta.b64 [%2];" ::"r"(at), "l"(x + threadIdx.x), "r"(b) : "memory");
  while (!done)
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.shared.b64 p, [%1], 0, 500;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(done) : "r"(b) : "memory");
  y[threadIdx.x] = s[threadIdx.x];
}

//! kernel multimem_forms multicast-memory
//! norun needs a multicast address
KERNEL multimem_forms(float *p, u32 *y) {
  float a, b, c, d;
  u32 h;
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(a) : "l"(p) : "memory");
  asm volatile("multimem.ld_reduce.weak.global.add.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(p) : "memory");
  asm volatile("multimem.ld_reduce.acquire.gpu.global.max.v2.bf16x2 {%0, %1}, [%2];" : "=r"(h), "=r"(y[1]) : "l"(p) : "memory");
  asm volatile("multimem.ld_reduce.global.add.acc::f32.f16x2 %0, [%1];" : "=r"(h) : "l"(p) : "memory");
  asm volatile("multimem.st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(h) : "memory");
  asm volatile("multimem.st.weak.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(p), "f"(a), "f"(b), "f"(c), "f"(d) : "memory");
  asm volatile("multimem.red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(p), "l"((u64)h) : "memory");
  asm volatile("multimem.red.release.cluster.global.and.b32 [%0], %1;" ::"l"(p), "r"(h) : "memory");
  asm volatile("multimem.red.global.add.v2.f16x2 [%0], {%1, %1};" ::"l"(p), "r"(h) : "memory");
}

//! kernel cluster_identity cluster-identity
//! launch 4 32 cluster=2
//! args y=u32[4,6]:zeros
//! out y -> asynchronous.cluster_identity
KERNEL __cluster_dims__(2, 1, 1) cluster_identity(u32 *y) {
  __shared__ u32 s[4];
  u32 a, b, c, d, e, f;
  u64 remote;
  asm volatile("mov.u32 %0, %%cluster_ctarank;\n\tmov.u32 %1, %%clusterid.x;\n\tmov.u32 %2, %%nclusterid.x;" : "=r"(a), "=r"(b), "=r"(c));
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;\n\tmov.u32 %1, %%cluster_nctarank;" : "=r"(d), "=r"(e));
  asm volatile("mapa.u64 %0, %2, %3;\n\tgetctarank.u64 %1, %0;" : "=&l"(remote), "=r"(f) : "l"(s), "r"(a ^ 1));
  if (threadIdx.x == 0) {
    u32 *out = y + blockIdx.x * 6;
    out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e, out[5] = f;
  }
  asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
}

//! kernel address_spaces address-spaces
//! launch 1 32
//! args y=u32[32]:zeros
//! out y -> asynchronous.address_spaces
__constant__ int constant_word = 3;
KERNEL address_spaces(const __grid_constant__ u64 pointer_bits) {
  __shared__ u32 s;
  u32 local = threadIdx.x, is_shared, is_global, is_local, is_constant, is_param, is_cluster;
  u32 *y = (u32 *)pointer_bits;
  asm volatile("" ::"l"(&local) : "memory");
#define SPACE(name, space, p) \
  asm volatile("{\n\t.reg .pred p;\n\tisspacep." space " p, %1;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(name) : "l"(p))
  SPACE(is_shared, "shared", &s);
  SPACE(is_global, "global", y);
  SPACE(is_local, "local", &local);
  SPACE(is_constant, "const", &constant_word);
  SPACE(is_param, "param", &pointer_bits);
  SPACE(is_cluster, "shared::cluster", &s);
  y[threadIdx.x] = is_shared | is_global << 1 | is_local << 2 | is_constant << 3 | is_param << 4 | is_cluster << 5;
}
