// Stencils and cellular automata on grids.
//! build nvcc 13.1.115 sm_75 -maxrregcount=64
#define KERNEL extern "C" __global__ void

//! kernel three_point three-point-stencil
//! launch 2 64
//! args n=i32:128 x=f32[128]:normal y=f32[128]:zeros
//! out y:1e-6:1e-6 -> stencil.three_point
KERNEL three_point(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1) y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

//! kernel heat_tile heat-equation
//! launch 2x2 16x16
//! args x=f32[32,32]:uniform y=f32[32,32]:zeros
//! out y:1e-5:1e-6 -> stencil.heat
KERNEL heat_tile(const float *x, float *y) {
  __shared__ float tile[18][18];
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y;
  int i = threadIdx.x + 1, j = threadIdx.y + 1;
  tile[j][i] = x[r * 32 + c];
  if (i == 1) tile[j][0] = c > 0 ? x[r * 32 + c - 1] : 0;
  if (i == 16) tile[j][17] = c < 31 ? x[r * 32 + c + 1] : 0;
  if (j == 1) tile[0][i] = r > 0 ? x[(r - 1) * 32 + c] : 0;
  if (j == 16) tile[17][i] = r < 31 ? x[(r + 1) * 32 + c] : 0;
  __syncthreads();
  float sum = tile[j][i - 1] + tile[j][i + 1] + tile[j - 1][i] + tile[j + 1][i];
  y[r * 32 + c] = tile[j][i] + 0.1f * (sum - 4.0f * tile[j][i]);
}

//! kernel seven_point seven-point-stencil
//! launch 2x2x8 4x4
//! args n=i32:8 x=f32[8,8,8]:normal y=f32[8,8,8]:zeros
//! out y:1e-5:1e-5 -> stencil.seven_point
KERNEL seven_point(int n, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y, k = blockIdx.z;
  if (i < 1 || j < 1 || k < 1 || i > n - 2 || j > n - 2 || k > n - 2) return;
  int p = (k * n + j) * n + i;
  y[p] = x[p - 1] + x[p + 1] + x[p - n] + x[p + n] + x[p - n * n] + x[p + n * n] - 6.0f * x[p];
}

//! kernel game_of_life game-of-life
//! launch 2x2 16x16
//! args x=u8[32,32]:integers(low=0,high=2) y=u8[32,32]:zeros
//! out y -> stencil.life
KERNEL game_of_life(const unsigned char *x, unsigned char *y) {
  int c = blockIdx.x * 16 + threadIdx.x, r = blockIdx.y * 16 + threadIdx.y, n = 0;
  for (int dr = -1; dr <= 1; ++dr)
    for (int dc = -1; dc <= 1; ++dc)
      if (dr || dc) n += x[((r + dr) & 31) * 32 + ((c + dc) & 31)];
  y[r * 32 + c] = n == 3 || (n == 2 && x[r * 32 + c]);
}

//! kernel life_bits game-of-life
//! launch 1 32
//! args x=u32[32]:bits y=u32[32]:zeros
//! out y -> stencil.life_bits
KERNEL life_bits(const unsigned *x, unsigned *y) {
  int r = threadIdx.x;
  unsigned bit0 = 0, bit1 = 0, bit2 = 0, rows[3] = {x[(r + 31) & 31], x[r], x[(r + 1) & 31]};
  for (int k = 0; k < 3; ++k)
    for (int d = -1; d <= 1; ++d) {
      if (k == 1 && d == 0) continue;
      unsigned v = d == 0 ? rows[k] : d < 0 ? __funnelshift_l(rows[k], rows[k], 1) : __funnelshift_r(rows[k], rows[k], 1);
      unsigned c0 = bit0 & v, c1 = bit1 & c0;
      bit0 ^= v;
      bit1 ^= c0;
      bit2 |= c1;
    }
  y[r] = bit1 & ~bit2 & (bit0 | rows[1]);
}

//! kernel rule_110 cellular-automaton
//! launch 1 32
//! args rule=u32:110 x=u8[32]:integers(low=0,high=2) y=u8[8,32]:zeros
//! out y -> stencil.elementary
KERNEL rule_110(unsigned rule, const unsigned char *x, unsigned char *y) {
  unsigned cell = x[threadIdx.x];
  for (int step = 0; step < 8; ++step) {
    unsigned left = __shfl_sync(0xffffffffu, cell, threadIdx.x + 31);
    unsigned right = __shfl_sync(0xffffffffu, cell, threadIdx.x + 1);
    cell = rule >> (4 * left + 2 * cell + right) & 1;
    y[step * 32 + threadIdx.x] = cell;
  }
}

//! kernel wave_step wave-equation
//! launch 1 64
//! args u=f64[64]:normal before=f64[64]:normal after=f64[64]:zeros
//! out after:1e-13:1e-13 -> stencil.wave
KERNEL wave_step(const double *u, const double *before, double *after) {
  int i = threadIdx.x;
  double left = i ? u[i - 1] : 0, right = i < 63 ? u[i + 1] : 0;
  after[i] = 2 * u[i] - before[i] + 0.25 * (left - 2 * u[i] + right);
}

//! kernel jacobi_shared jacobi-iteration
//! launch 1 16x16
//! args f=f32[16,16]:normal u=f32[16,16]:zeros
//! out u:1e-4:1e-5 -> stencil.jacobi
KERNEL jacobi_shared(const float *f, float *u) {
  __shared__ float s[18][18];
  int i = threadIdx.x + 1, j = threadIdx.y + 1;
  for (int k = threadIdx.y * 16 + threadIdx.x; k < 324; k += 256) (&s[0][0])[k] = 0.0f;
  __syncthreads();
  float b = f[(j - 1) * 16 + i - 1];
  for (int step = 0; step < 10; ++step) {
    float v = 0.25f * (s[j][i - 1] + s[j][i + 1] + s[j - 1][i] + s[j + 1][i] - b);
    __syncthreads();
    s[j][i] = v;
    __syncthreads();
  }
  u[(j - 1) * 16 + i - 1] = s[j][i];
}

__constant__ int dx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ int dy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ float weight[9] = {4.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 9, 1.f / 36, 1.f / 36, 1.f / 36, 1.f / 36};

//! kernel lattice_boltzmann lattice-boltzmann
//! launch 2x2 8x8
//! args omega=f32:1.2 f=f32[9,16,16]:uniform(low=0.1,high=0.2) g=f32[9,16,16]:zeros
//! out g:1e-4:1e-5 -> stencil.lattice_boltzmann
KERNEL lattice_boltzmann(float omega, const float *f, float *g) {
  int x = blockIdx.x * 8 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  float in[9], rho = 0, ux = 0, uy = 0;
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    in[k] = f[k * 256 + ((y - dy[k]) & 15) * 16 + ((x - dx[k]) & 15)];
    rho += in[k];
    ux += in[k] * dx[k];
    uy += in[k] * dy[k];
  }
  ux /= rho;
  uy /= rho;
  float square = 1.5f * (ux * ux + uy * uy);
#pragma unroll
  for (int k = 0; k < 9; ++k) {
    float along = 3.0f * (dx[k] * ux + dy[k] * uy);
    float equilibrium = weight[k] * rho * (1.0f + along + 0.5f * along * along - square);
    g[k * 256 + y * 16 + x] = in[k] + omega * (equilibrium - in[k]);
  }
}

//! kernel red_black gauss-seidel
//! launch 1 8x16
//! args u=f32[16,16]:normal
//! out u:1e-5:1e-5 -> stencil.red_black
KERNEL red_black(float *u) {
  int j = threadIdx.y;
  for (int colour = 0; colour < 2; ++colour) {
    int i = 2 * threadIdx.x + ((j + colour) & 1);
    if (i > 0 && i < 15 && j > 0 && j < 15)
      u[j * 16 + i] = 0.25f * (u[j * 16 + i - 1] + u[j * 16 + i + 1] + u[(j - 1) * 16 + i] + u[(j + 1) * 16 + i]);
    __syncthreads();
  }
}
