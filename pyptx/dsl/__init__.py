"""What `reg`, `smem`, `ptx` and `@kernel` are made of: the trace, its registers and memory, how it ends as a module.

Knows the layers from `check` down. Nothing here is mutable but the current trace, which one ContextVar holds.
"""
