"""Kernels in Zig, compiled by its own front end and LLVM, and the recipe that compiles them."""
