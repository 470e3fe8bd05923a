"""The basis of `reg`, `smem`, `ptx` and `@kernel`: the trace, its registers and memory, and how it becomes a module.

Knows the layers from `check` down. Only the current trace is mutable; one ContextVar holds it.
"""
