"""Functions compiled by JAX for devices that are not there: XLA's own kernels, and Pallas on Triton and Mosaic GPU."""
