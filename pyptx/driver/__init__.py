"""A simulated CUDA driver: programs that call the driver API run their kernels on the simulator."""
