"""The kernel that sim_peers.py gives to Numba, whose simulator replaces the global `cuda` of a kernel's file."""

from numba import cuda


@cuda.jit
def saxpy(x, y, a):
    at = cuda.grid(1)
    y[at] = a * x[at] + y[at]
