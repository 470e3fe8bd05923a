"""What numbers mean: formats, roundings, arithmetic and tensor-core sums, as pure functions of NumPy arrays.

Knows nothing of registers, threads or memory. A number of 16 bits or fewer is its code in an unsigned integer; f32,
tf32 and f64 are floats of that width.
"""
