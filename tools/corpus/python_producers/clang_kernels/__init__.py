"""C kernels compiled for NVPTX by the clang inside the ziglang wheel, and the recipe that compiles them."""
