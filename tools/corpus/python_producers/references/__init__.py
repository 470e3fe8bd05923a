"""What the kernels of the Python producers must compute, in NumPy; one module per field."""
