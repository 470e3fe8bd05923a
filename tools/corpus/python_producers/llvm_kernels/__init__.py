"""LLVM IR written by hand and compiled by the NVPTX back end in llvmlite, and the recipe that compiles it."""
