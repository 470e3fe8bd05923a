"""Image pipelines in Halide with GPU schedules, and the recipe that compiles them."""
