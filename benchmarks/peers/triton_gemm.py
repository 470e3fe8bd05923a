"""The Triton GEMM of sim_peers.py. Run as a program, this file prints the PTX that Triton compiles from it as JSON.

It is a separate file because Triton reads the source of a kernel, and one process cannot both compile and interpret.
"""

import json
import sys

import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, size: tl.constexpr, tile: tl.constexpr, depth: tl.constexpr):
    rows = tl.program_id(0) * tile + tl.arange(0, tile)
    columns = tl.program_id(1) * tile + tl.arange(0, tile)
    steps = tl.arange(0, depth)
    total = tl.zeros((tile, tile), dtype=tl.float32)
    for k in range(0, size, depth):
        left = tl.load(a + rows[:, None] * size + (k + steps)[None, :])
        right = tl.load(b + (k + steps)[:, None] * size + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * size + columns[None, :], total)


def main() -> None:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = {name: int(value) for name, value in zip(("size", "tile", "depth"), sys.argv[1:], strict=True)}
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32"} | dict.fromkeys(constants, "constexpr")
    binary = triton.compile(ASTSource(gemm, signature, constants), target=GPUTarget("cuda", 90, 32))
    print(json.dumps({"ptx": binary.asm["ptx"], "shared": binary.metadata.shared}))


if __name__ == "__main__":
    main()
