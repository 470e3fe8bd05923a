"""TMA copy: out = a, a matrix copied box by box through shared memory; threads touch no elements.

The idea: a tensor map describes the matrix to the hardware, and one thread requests a whole box. An mbarrier counts the
bytes that have arrived. Boxes may cross the edges of the matrix: a load fills out-of-bounds elements with zeros (and
counts their bytes), a store skips them, so the kernel needs no bounds checks.

The protocol: the mbarrier `full` takes one arrival, from thread 0, and the 8 KiB of the box. Thread 0 waits for phase
0. No other thread takes part, so there is no `bar.sync`.
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, Layout, TensorSpec, Tile, kernel, ptx, smem
from pyptx.types import bf16

ROWS, COLUMNS = 64, 64
"""128 bytes are the longest row that the swizzle takes. With boxes of 8 KiB, 24 CTAs share an SM: 192 KiB in flight."""
BOX_BYTES = ROWS * COLUMNS * 2


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid for this shape."""
    return (-(-n // COLUMNS), -(-m // ROWS), 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target. Rows are a multiple of 16 bytes long, as tensor maps require."""
    tile = Tile("m", "n", bf16, Layout.TMA_128B, tma_box=(ROWS, COLUMNS))

    @kernel(arch=arch, in_specs=(tile,), out_specs=(tile,), grid=grid, block=(32, 1, 1))
    def tma_copy(a: TensorSpec, out: TensorSpec) -> None:
        # The pattern of the 128-byte swizzle repeats every 1024 bytes. Both maps use it, so it cancels out.
        box = smem.alloc(bf16, (ROWS, COLUMNS), swizzle="128B", align=1024, name="box")
        full = smem.mbarrier(1, name="full")
        column, row = ptx.special.ctaid.x() * COLUMNS, ptx.special.ctaid.y() * ROWS

        # One thread does everything in program order, including the mbarrier's init: no fence, no `bar.sync`.
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.mbarrier.init(full[0], 1)

            # Phase 1: load the box. The phase completes after this arrival and when all bytes have arrived.
            ptx.mbarrier.arrive_expect_tx(full[0], BOX_BYTES)
            ptx.cp.async_.bulk.tensor_2d(dst=box, src=a, coord=(column, row), mbar=full[0])

            # Phase 2: wait for the box. The first phase has parity 0.
            ptx.mbarrier.wait(full[0], 0)

            # Phase 3: store the box. The async proxy wrote and reads it, so no proxy fence is needed.
            ptx.cp.async_.bulk.tensor_2d.store(dst=out, src=box, coord=(column, row))
            ptx.cp.async_.bulk.commit_group()
            # The CTA must not exit before the store has read shared memory. Only the committing thread can wait.
            ptx.cp.async_.bulk.wait_group(0)

    return tma_copy


def reference(a: Array) -> Array:
    """Return the expected result."""
    return a.copy()


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"m": 64, "n": 64}), Run({"m": 100, "n": 72}, special=True)),
    large={"m": 16384, "n": 16384},
    sass=("UTMALDG.2D", "UTMASTG.2D", "SYNCS"),
    traffic=lambda shape: 4 * shape["m"] * shape["n"],
    peer="clone",
)

if __name__ == "__main__":
    EXAMPLE.show()
