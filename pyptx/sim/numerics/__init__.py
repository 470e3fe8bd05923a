"""What numbers mean: formats, roundings, arithmetic and tensor-core sums, as pure functions of NumPy arrays.

Knows nothing of registers, threads or memory. Numbers of 16 bits or fewer are codes in unsigned integers; f32, tf32
and f64 are floats.
"""
