"""What the corpus kernels compute, in NumPy. Each function maps the arguments before a launch to the outputs after it."""
