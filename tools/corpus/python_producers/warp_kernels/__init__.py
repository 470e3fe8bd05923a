"""Kernels compiled by Warp, and the recipe that compiles them."""
