// Control flow: switches, calls, recursion, tables of functions, virtual methods, printing, stopping.
//! build nvcc 13.0.88 sm_80 -O3 --maxrregcount 128
#include <cstdio>
#include <cassert>
#define KERNEL extern "C" __global__ void

//! kernel interpreter bytecode-interpreter
//! launch 1 32
//! args code=u8[24]:integers(low=0,high=9) n=i32:24 x=i32[32]:integers(low=-9,high=10) y=i32[32]:zeros
//! out y -> control.interpreter
KERNEL interpreter(const unsigned char *code, int n, const int *x, int *y) {
  int a = x[threadIdx.x], b = 1;
  for (int i = 0; i < n; ++i) {
    switch (code[i]) {
      case 0: a += b; break;
      case 1: a -= b * 3; break;
      case 2: b = a; break;
      case 3: a ^= 0x55; break;
      case 4: a = -a; break;
      case 5: b += 7; break;
      case 6: a <<= 1; break;
      case 7: a >>= 2; break;
      default: { int t = a; a = b; b = t; }
    }
  }
  y[threadIdx.x] = a;
}

//! kernel ackermann_recursion recursion
//! launch 1 16
//! args y=i32[16]:zeros
//! out y -> control.ackermann
__device__ __noinline__ int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL ackermann_recursion(int *y) { y[threadIdx.x] = ackermann(threadIdx.x & 1 ? 2 : 1, threadIdx.x / 4); }

//! kernel mutual_recursion recursion
//! launch 1 32
//! args y=i32[32]:zeros
//! out y -> control.hofstadter
__device__ int male(int n);
__device__ __noinline__ int female(int n) { return n == 0 ? 1 : n - male(female(n - 1)); }
__device__ __noinline__ int male(int n) { return n == 0 ? 0 : n - female(male(n - 1)); }
KERNEL mutual_recursion(int *y) { y[threadIdx.x] = female(threadIdx.x % 12) * 100 + male(threadIdx.x % 12); }

typedef float (*Operation)(float, float);
__device__ __noinline__ float op_add(float a, float b) { return a + b; }
__device__ __noinline__ float op_sub(float a, float b) { return a - b; }
__device__ __noinline__ float op_mul(float a, float b) { return a * b; }
__device__ __noinline__ float op_max(float a, float b) { return a > b ? a : b; }
__device__ Operation operations[4] = {op_add, op_sub, op_mul, op_max};

//! kernel function_table function-pointers
//! launch 1 32
//! args which=i32[32]:integers(low=0,high=4) a=f32[32]:normal b=f32[32]:normal y=f32[32]:zeros
//! out y -> control.function_table
KERNEL function_table(const int *which, const float *a, const float *b, float *y) {
  int i = threadIdx.x;
  y[i] = operations[which[i]](a[i], b[i]);
}

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Square : Shape {
  float side;
  __device__ Square(float s) : side(s) {}
  __device__ float area() const override { return side * side; }
};
struct Circle : Shape {
  float radius;
  __device__ Circle(float r) : radius(r) {}
  __device__ float area() const override { return 3.0f * radius * radius; }
};

//! kernel virtual_methods virtual-calls
//! launch 1 32
//! args size=f32[32]:uniform y=f32[32]:zeros
//! out y:1e-6:0 -> control.areas
KERNEL virtual_methods(const float *size, float *y) {
  Square square(size[threadIdx.x]);
  Circle circle(size[threadIdx.x]);
  const Shape *shape = threadIdx.x % 3 ? (const Shape *)&square : (const Shape *)&circle;
  y[threadIdx.x] = shape->area();
}

//! kernel say_hello printing
//! norun prints through vprintf and writes nothing
KERNEL say_hello(int n, float x) {
  if (threadIdx.x < n) printf("thread %d of block %d says %f\n", threadIdx.x, blockIdx.x, (double)x);
}

//! kernel check_bounds assertion
//! norun stops in an assertion when an input is negative
KERNEL check_bounds(const int *x, int *y) {
  assert(x[threadIdx.x] >= 0);
  y[threadIdx.x] = x[threadIdx.x] * 2;
}

//! kernel local_table local-memory
//! launch 1 32
//! args x=i32[32]:integers(low=0,high=32) y=i32[32]:zeros
//! out y -> control.local_table
KERNEL local_table(const int *x, int *y) {
  int table[32];
  for (int i = 0; i < 32; ++i) table[i] = i * i + threadIdx.x;
  table[x[threadIdx.x]] = -1;
  int sum = 0;
  for (int i = 0; i < 32; i += 1 + (x[i] & 1)) sum += table[i];
  y[threadIdx.x] = sum;
}

struct Pair {
  double weight;
  int key;
  short tag[3];
};

//! kernel structures_by_value structure-passing
//! launch 1 32
//! args x=f64[32]:normal y=f64[32]:zeros
//! out y:1e-14:0 -> control.structures
__device__ __noinline__ Pair update(Pair p, int by) {
  p.weight *= by;
  p.key += by;
  p.tag[by & 1] = (short)p.key;
  return p;
}
KERNEL structures_by_value(const double *x, double *y) {
  Pair p = {x[threadIdx.x], (int)threadIdx.x, {1, 2, 3}};
  for (int i = 1; i < 4; ++i) p = update(p, i);
  y[threadIdx.x] = p.weight + p.key + p.tag[0] + p.tag[1] + p.tag[2];
}

//! kernel early_exits divergence
//! launch 1 64
//! args x=i32[64]:integers(low=-50,high=50) y=i32[64]:fill(value=7)
//! out y -> control.early_exits
KERNEL early_exits(const int *x, int *y) {
  int v = x[threadIdx.x];
  if (v < -25) return;
  for (int i = 0;; ++i) {
    if (v > 40) goto done;
    if (v & 1) v = v * 3 + 1;
    else if (v % 3 == 0) { v += 5; continue; }
    else v += i;
    if (i > 9) break;
  }
  v = -v;
done:
  y[threadIdx.x] = v;
}

//! kernel towers_of_hanoi hanoi
//! launch 1 8
//! args moves=i32[8,3]:zeros
//! out moves -> control.hanoi
__device__ void hanoi(int n, int from, int to, int *count) {
  if (n == 0) return;
  hanoi(n - 1, from, 3 - from - to, count);
  ++count[from];
  hanoi(n - 1, 3 - from - to, to, count);
}
KERNEL towers_of_hanoi(int *moves) { hanoi(threadIdx.x % 8 / 2 + 1, 0, 2, moves + 3 * threadIdx.x); }

//! kernel stop_on_error trap
//! norun traps when it finds a NaN
KERNEL stop_on_error(const float *x, float *y) {
  float v = x[threadIdx.x];
  if (v != v) __trap();
  y[threadIdx.x] = v + 1.0f;
}

//! kernel heap_list device-allocation
//! norun allocates from the device heap
KERNEL heap_list(int n, int *y) {
  struct Node { int value; Node *next; } *head = nullptr;
  for (int i = 0; i < n; ++i) {
    Node *node = (Node *)malloc(sizeof(Node));
    node->value = i;
    node->next = head;
    head = node;
  }
  int sum = 0;
  while (head) {
    Node *next = head->next;
    sum += head->value;
    free(head);
    head = next;
  }
  y[threadIdx.x] = sum;
}

//! kernel state_machine regular-expression
//! launch 1 32
//! args text=u8[32,10]:integers(low=97,high=100) hit=i32[32]:zeros
//! out hit -> control.regular_expression
KERNEL state_machine(const unsigned char *text, int *hit) {
  int state = 0;
  for (int i = 0; i < 10; ++i) {
    unsigned char c = text[threadIdx.x * 10 + i];
    switch (state) {
      case 0: state = c == 'a' ? 1 : 0; break;
      case 1: state = c == 'b' ? 2 : c == 'a' ? 1 : 0; break;
      case 2: state = c == 'c' ? 3 : c == 'b' ? 2 : c == 'a' ? 1 : 0; break;
    }
  }
  hit[threadIdx.x] = state == 3;
}
