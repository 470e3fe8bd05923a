"""Launch kernels: encode arguments, run batches of CTAs, and return results; also step by step and in streams."""
