/* Indirect calls, switches, structures by value, and a printf. */
#include "nvptx.h"

struct shape {
  float width, height;
  int kind;
};

NOINLINE static float rectangle(struct shape s) { return s.width * s.height; }
NOINLINE static float triangle(struct shape s) { return 0.5f * s.width * s.height; }
NOINLINE static float ellipse(struct shape s) { return 0.785398163f * s.width * s.height; }

static float (*const areas[])(struct shape) = {rectangle, triangle, ellipse};

KERNEL void shape_areas(const struct shape *shapes, float *out, int n) {
  int i = global_id();
  if (i < n) out[i] = areas[shapes[i].kind % 3](shapes[i]);
}

/* A byte code: 0 push next, 1 add, 2 multiply, 3 duplicate, 4 swap, 5 subtract, 6 negate, 7 end. */
KERNEL void byte_code(const u8 *program, const int *x, int *out, int n) {
  int i = global_id();
  if (i >= n) return;
  int stack[8] = {x[i]}, top = 0, kept;
  for (int at = 0;;) {
    switch (program[at++]) {
      case 0: stack[++top] = (signed char)program[at++]; break;
      case 1: stack[top - 1] += stack[top]; top--; break;
      case 2: stack[top - 1] *= stack[top]; top--; break;
      case 3: stack[top + 1] = stack[top]; top++; break;
      case 4: kept = stack[top]; stack[top] = stack[top - 1]; stack[top - 1] = kept; break;
      case 5: stack[top - 1] -= stack[top]; top--; break;
      case 6: stack[top] = -stack[top]; break;
      default: out[i] = stack[top]; return;
    }
  }
}

struct view {
  const double *data;
  int rows, cols;
};

KERNEL void trace_of(struct view a, double *out) {
  if (thread_id() == 0) {
    double total = 0;
    for (int i = 0; i < a.rows && i < a.cols; i++) total += a.data[i * a.cols + i];
    *out = total;
  }
}

int vprintf(const char *, void *);

KERNEL void print_thread(const int *x) {
  struct {
    int thread, value;
  } packed = {thread_id(), x[thread_id()]};
  vprintf("thread %d holds %d\n", &packed);
}
