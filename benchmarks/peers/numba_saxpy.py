"""The Numba kernel of sim_peers.py, in its own file because Numba's simulator replaces the module's global `cuda`."""

from numba import cuda


@cuda.jit
def saxpy(x, y, a):
    index = cuda.grid(1)
    y[index] = a * x[index] + y[index]
