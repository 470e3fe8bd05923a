"""The rules about calling a kernel."""

from __future__ import annotations

from pyptx.diagnostics import Rule

ARRAYS = Rule(
    "PTX1001",
    "arrays do not fit the kernel's tensors",
    "Each array must have the tensor's dtype, rank and fixed dimensions, agree with the others on named dimensions, "
    "and lie in memory row by row without gaps.",
    "",
    "",
)
GRID = Rule(
    "PTX1002",
    "grid of a kernel",
    "A kernel is launched on a grid of one to three positive dimensions, given to `@kernel` or to the call.",
    "",
    "",
)

GRADIENTS = Rule(
    "PTX1003",
    "kernels that make no differentiable function",
    "The backward kernel takes the saved inputs and the gradient of each output of the forward kernel, and has one "
    "output for each input that gets a gradient.",
    "",
    "",
)

RULES = (ARRAYS, GRID, GRADIENTS)
