"""Kernels compiled by numba-cuda, and the recipe that compiles them."""
