/* Recursive functions and deep local stacks. */
#include "nvptx.h"

NOINLINE static u64 fibonacci(u32 n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

KERNEL void fibonacci_numbers(u64 *out, int n) {
  int i = global_id();
  if (i < n) out[i] = fibonacci(i % 14);
}

NOINLINE static u32 ackermann(u32 m, u32 n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

KERNEL void ackermann_values(u32 *out, int n) {
  int i = global_id();
  if (i < n) out[i] = ackermann(i % 3, i % 4);
}

NOINLINE static void quicksort(int *values, int low, int high) {
  if (low >= high) return;
  int pivot = values[(low + high) / 2], i = low, j = high;
  while (i <= j) {
    while (values[i] < pivot) i++;
    while (values[j] > pivot) j--;
    if (i <= j) {
      int kept = values[i];
      values[i++] = values[j];
      values[j--] = kept;
    }
  }
  quicksort(values, low, j);
  quicksort(values, i, high);
}

KERNEL void quicksort_rows(int *rows, int count) {
  int i = global_id();
  if (i < count) quicksort(rows + i * 24, 0, 23);
}

static int queens_from(int row, u32 columns, u32 left, u32 right) {
  if (row == 6) return 1;
  int found = 0;
  for (u32 free = ~(columns | left | right) & 63; free; free &= free - 1) {
    u32 bit = free & -free;
    found += queens_from(row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return found;
}

KERNEL void queens(int *out) {
  u32 bit = 1u << thread_id();
  __nvvm_atom_add_gen_i(out, queens_from(1, bit, bit << 1, bit >> 1));
}
