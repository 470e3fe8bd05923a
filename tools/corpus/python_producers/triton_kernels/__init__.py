"""Kernels compiled by Triton, and the recipe that compiles them."""
