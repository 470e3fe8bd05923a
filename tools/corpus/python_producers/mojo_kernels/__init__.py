"""Kernels in Mojo, and the recipe that compiles them."""
