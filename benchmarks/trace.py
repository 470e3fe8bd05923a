"""Measure the time per instruction to trace and print a kernel; it must not grow with the kernel.

    python benchmarks/trace.py [--most 200000]

Times are process times, the best of three.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ratios import Pairs, Round, interleave, make_python_source, measure_seconds, tokenize_all
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.dsl.scopes import intrinsic
from pyptx.reg import Reg
from pyptx.types import b64, bf16, f32, pred, u32

SIZES = (1_000, 20_000, 200_000)


def adds(count: int) -> Kernel:
    """Return a kernel of plain additions."""

    @kernel
    def plain() -> None:
        a, b, c = reg.scalar(u32), reg.scalar(u32), reg.scalar(u32)
        for _ in range(count // 2):
            ptx.inst.add.u32(a, b, c)
            ptx.inst.mad.lo.u32(c, a, b, 7)

    return plain


def operators(count: int) -> Kernel:
    """Return a kernel of operators, each of which creates a register."""

    @kernel
    def expression() -> None:
        x = reg.scalar(u32, 1)
        for _ in range(count // 2):
            x = x * 3 + 1

    return expression


def products(count: int) -> Kernel:
    """Return a kernel of wgmma with 128 accumulator registers."""

    @kernel
    def matrix() -> None:
        d, a, b, p = reg.array(f32, 128), reg.scalar(b64), reg.scalar(b64), reg.scalar(pred)
        multiply = ptx.inst.wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16
        for _ in range(count):
            multiply(d, a, b, p, 1, 1, 0, 0)

    return matrix


def helpers(count: int) -> Kernel:
    """Return a kernel whose instructions are emitted three function calls deep."""

    def first(x: Reg) -> None:
        second(x)

    @intrinsic
    def second(x: Reg) -> None:
        third(x)

    def third(x: Reg) -> None:
        ptx.add(u32, x, x, 1)

    @kernel
    def deep() -> None:
        x = reg.scalar(u32, 0)
        for _ in range(count):
            first(x)

    return deep


def accesses(count: int) -> Kernel:
    """Return a kernel of loads and stores at offsets and slices."""

    @kernel
    def memory() -> None:
        tile, x, base = smem.alloc(f32, (64, 64)), reg.scalar(f32), reg.scalar(b64)
        for i in range(count // 4):
            ptx.ld(f32, x, ptx.addr(base, i % 64 * 4))
            ptx.st(f32, tile[i % 64], x, space="shared")
            ptx.ld(f32, x, tile[i % 64], space="shared")
            ptx.st(f32, ptx.addr(base, i % 64 * 4), x)

    return memory


def barriers(count: int) -> Kernel:
    """Return a kernel of operations on a ring of mbarriers."""

    @kernel
    def ring() -> None:
        bars, phase = smem.mbarrier(4), reg.scalar(u32)
        for i in range(count // 4):
            ptx.mbarrier.init(bars[i % 4], 1)
            ptx.mbarrier.arrive(bars[i % 4])
            ptx.mbarrier.expect_tx(bars[i % 4], 4096)
            ptx.mbarrier.try_wait(bars[i % 4], phase)

    return ring


def copies(count: int) -> Kernel:
    """Return a kernel of tensor copies through maps."""

    @kernel(in_specs=(Tile(4096, 4096, bf16, tma_box=(64, 64)),))
    def tma(a: TensorSpec) -> None:
        bars, tile, row = smem.mbarrier(4), smem.alloc(bf16, (4, 64, 64)), reg.scalar(u32)
        for i in range(count):
            ptx.cp.async_.bulk.tensor_2d(
                dst=tile[i % 4], src=a.tma_desc(), coord=(row, i % 64), mbar=bars[i % 4], pred=None
            )

    return tma


KINDS = (adds, operators, products, helpers, accesses, barriers, copies)


def main(arguments: Sequence[str]) -> int:
    """Print microseconds per instruction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=SIZES[-1])
    most: int = parser.parse_args(arguments).most
    print(f"{'µs per instruction':20}" + "".join(f"{size:>12,}" for size in SIZES if size <= most))
    for make in KINDS:
        times = [_least(make, size) / size * 1e6 for size in SIZES if size <= most]
        print(f"{make.__name__:20}" + "".join(f"{t:12.2f}" for t in times), flush=True)
    return 0


def _least(make: Callable[[int], Kernel], size: int) -> float:
    return min(measure_seconds(make(size).ptx) for _ in range(3 if size < 100_000 else 1))


def list_pairs() -> Pairs:
    """Compare tracing with `tokenize`, and one kernel with ten kernels of a tenth of its size."""
    return {f"{make.__name__}, 1,000 instructions / tokenize of 50 kB": partial(compare, make) for make in KINDS} | {
        f"{make.__name__}, 5,000 instructions / ten times 500": partial(grow, make) for make in (operators, accesses)
    }


def compare(make: Callable[[int], Kernel]) -> Round:
    """Compare tracing a kernel with tokenizing Python."""
    python = make_python_source(50_000)
    return interleave(lambda: make(1_000).ptx(), lambda: tokenize_all(python))


def grow(make: Callable[[int], Kernel]) -> Round:
    """Compare tracing one large kernel with tracing ten small ones."""
    return interleave(lambda: make(5_000).ptx(), lambda: [make(500).ptx() for _ in range(10)])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
