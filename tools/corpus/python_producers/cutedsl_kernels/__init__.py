"""Kernels compiled by the CuTe DSL of CUTLASS, and the recipe that compiles them."""
