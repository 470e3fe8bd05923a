// Textures and surfaces through objects, and through names by inline assembly.
//! build nvrtc 12.8.93 sm_86
#define KERNEL extern "C" __global__ void
#define HANDLES cudaTextureObject_t t, float *y
#define AT threadIdx.x

//! kernel fetch_1d texture-fetch
//! norun reads a texture
KERNEL fetch_1d(HANDLES) { y[AT] = tex1Dfetch<float>(t, AT) + tex1D<float>(t, AT * 0.25f); }
//! kernel sample_2d texture-sampling
//! norun reads a texture
KERNEL sample_2d(cudaTextureObject_t t, float4 *y) {
  float u = AT * 0.1f, v = 1.0f - u;
  float4 a = tex2D<float4>(t, u, v), b = tex2DLod<float4>(t, v, u, 1.5f);
  float4 c = tex2DGrad<float4>(t, u, v, make_float2(0.1f, 0.0f), make_float2(0.0f, 0.1f));
  y[AT] = make_float4(a.x + b.x + c.x, a.y + b.y + c.y, a.z + b.z + c.z, a.w + b.w + c.w);
}
//! kernel gather_2d texture-gather
//! norun reads a texture
KERNEL gather_2d(cudaTextureObject_t t, int4 *y) {
  float u = AT * 0.3f;
  int4 a = tex2Dgather<int4>(t, u, u, 0), b = tex2Dgather<int4>(t, u, u, 3);
  y[AT] = make_int4(a.x ^ b.x, a.y ^ b.y, a.z ^ b.z, a.w ^ b.w);
}
//! kernel sample_3d_and_layers volume-sampling
//! norun reads textures
KERNEL sample_3d_and_layers(cudaTextureObject_t v, cudaTextureObject_t l, cudaTextureObject_t c, float *y) {
  float u = AT * 0.2f;
  y[AT] = tex3D<float>(v, u, u, 0.5f) + tex2DLayered<float>(l, u, u, AT & 3) + texCubemap<float>(c, u, 1.0f, -u) +
          tex1DLayered<float>(l, u, 2) + tex3DLod<float>(v, u, 0.1f, u, 2.0f);
}
//! kernel integer_texels texture-fetch
//! norun reads a texture
KERNEL integer_texels(cudaTextureObject_t t, unsigned *y) {
  uchar4 p = tex2D<uchar4>(t, AT + 0.5f, 0.5f);
  short2 q = tex1D<short2>(t, AT + 0.5f);
  y[AT] = p.x + p.y * 3 + p.z * 5 + p.w * 7 + q.x - q.y;
}
//! kernel surface_copy surface-copy
//! norun reads and writes surfaces
KERNEL surface_copy(cudaSurfaceObject_t from, cudaSurfaceObject_t to) {
  float4 v;
  unsigned short h;
  surf2Dread(&v, from, threadIdx.x * 16, threadIdx.y);
  surf2Dwrite(v, to, threadIdx.x * 16, threadIdx.y, cudaBoundaryModeClamp);
  surf1Dread(&h, from, threadIdx.x * 2, cudaBoundaryModeZero);
  surf1Dwrite((unsigned char)h, to, threadIdx.x);
  unsigned long long w;
  surf3Dread(&w, from, threadIdx.x * 8, threadIdx.y, threadIdx.z);
  surf2DLayeredwrite(w, to, threadIdx.x * 8, threadIdx.y, 3);
}
//! kernel queries_and_samples texture-query
//! norun queries a texture and a surface
KERNEL queries_and_samples(cudaTextureObject_t t, cudaSurfaceObject_t s, int *y) {
  int w, h, n, f, k, sw;
  float a, b, c, d;
  asm volatile("txq.width.b32 %0, [%2];\n\ttxq.height.b32 %1, [%2];" : "=r"(w), "=r"(h) : "l"(t));
  asm volatile("txq.depth.b32 %0, [%2];\n\ttxq.channel_data_type.b32 %1, [%2];" : "=r"(n), "=r"(f) : "l"(t));
  asm volatile("txq.level.width.b32 %0, [%1], 2;" : "=r"(k) : "l"(t));
  asm volatile("suq.width.b32 %0, [%1];" : "=r"(sw) : "l"(s));
  asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(t), "r"(w), "r"(h));
  asm volatile("sust.b.1d.b32.trap [%2, {%0}], %1;" ::"r"(w), "r"(n), "l"(s));
  asm volatile("sured.b.add.2d.u32.clamp [%3, {%0, %1}], %2;" ::"r"(w), "r"(h), "r"(n), "l"(s));
  asm volatile("sust.p.2d.v4.b32.zero [%2, {%0, %0}], {%1, %1, %1, %1};" ::"r"(w), "r"(n), "l"(s));
  y[0] = w + h + n + f + k + sw + (int)(a + b + c + d);
}
