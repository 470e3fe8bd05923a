"""Rules PTX1001 to PTX1007: calling a kernel with arrays."""

from __future__ import annotations

from pyptx.diagnostics import Rule

ARRAYS = Rule(
    "PTX1001",
    "arrays do not fit the kernel's tensors",
    "Each array must have the tensor's dtype, rank and fixed dimensions, agree with the others on named dimensions, "
    "and be contiguous in row-major order.",
    "",
    "",
)
GRID = Rule(
    "PTX1002",
    "missing or invalid grid",
    "A kernel is launched on a grid of one to three positive dimensions, passed to `@kernel` or to the call. "
    "Only a call with an array of no elements may have an empty grid.",
    "",
    "",
)

GRADIENTS = Rule(
    "PTX1003",
    "kernels that do not form a differentiable function",
    "The backward kernel takes the saved inputs and the gradient of each output of the forward kernel, and has one "
    "output for each input that needs a gradient.",
    "",
    "",
)

DRIVER = Rule(
    "PTX1004",
    "the CUDA driver cannot run the kernel",
    "The driver or a package is missing, the device does not fit the kernel, or the driver refused a call. Launches "
    "are asynchronous: an error may belong to an earlier launch.",
    "",
    "",
)

TRANSFORMS = Rule(
    "PTX1005",
    "a transformation that the kernel does not support",
    "Compilers and transformations of PyTorch see a kernel as one operator. It has a gradient only if it was given "
    "one, and what they record must mean the same when it runs later.",
    "",
    "",
)

EXPORT = Rule(
    "PTX1006",
    "exported kernel that cannot be loaded",
    "The directory has no manifest of an exported kernel, or its files are not those that the manifest describes.",
    "",
    "",
)

TUNING = Rule(
    "PTX1007",
    "kernel that cannot be tuned",
    "Tuning takes template parameters with their values, and a GPU or another cost; one configuration must be right.",
    "",
    "",
)

RULES = (ARRAYS, GRID, GRADIENTS, DRIVER, TRANSFORMS, EXPORT, TUNING)
