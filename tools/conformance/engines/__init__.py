"""Records what Hopper's copy engines and tensor cores return on a GPU, and compares it with the simulator."""
