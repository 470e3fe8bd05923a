"""Row sums of wide rows over a cluster: y[r] = sum(x[r, :]), four CTAs per row, through distributed shared memory.

The idea: a row that is too wide for one SM is split over the CTAs of a cluster. Each CTA reduces its quarter and writes
the result into the shared memory of all four, so no CTA waits for global memory. The first then adds the four values,
which it has locally, in the order of the ranks.

The protocol: `cells` of a CTA has one value per peer, written by that peer with `st.shared::cluster`. The first
`cluster.sync` comes before: a CTA must have started before its shared memory may be written. The second (release and
acquire at cluster scope) makes the values visible. After it, no CTA touches another one's memory, so none must wait
before it exits. The CTA's own sum takes one `bar.sync 0` (`examples/parts/reduction.py`).
"""

from __future__ import annotations

import numpy as np

from examples.parts.example import Array, Example, Run
from examples.parts.reduction import cta_reduce
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32

THREADS, WIDTH, CTAS = 256, 4, 4


def grid(m: int, n: int) -> tuple[int, int, int]:
    """Return the grid: four CTAs per row."""
    if n % (WIDTH * CTAS):
        raise ValueError(f"the row length must be a multiple of {WIDTH * CTAS}, found {n}")
    return (CTAS, m, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target with clusters."""

    @kernel(
        arch=arch, in_specs=(Tile("m", "n", f32),), out_specs=(Tile("m", f32),), grid=grid, block=(THREADS, 1, 1),
        cluster=(CTAS, 1, 1),
    )  # fmt: skip
    def cluster_reduction(x: TensorSpec, y: TensorSpec) -> None:
        part = x.shape[1] // CTAS
        px, py = ptx.global_ptrs(x, y)
        cells = smem.alloc(f32, CTAS, name="cells")
        thread, row, rank = ptx.special.tid.x(), ptx.special.ctaid.y(), ptx.special.cluster_ctarank()
        source = ptx.mad(row * CTAS + rank, part * 4, px, mode="wide")

        # Phase 1: the sum of this CTA's part, in every thread.
        values, total = reg.array(f32, WIDTH), reg.scalar(f32, 0, name="total")
        for i in ptx.range_(thread * WIDTH, part, THREADS * WIDTH):
            ptx.ld(f32, values, ptx.addr(source, i * 4))
            for value in values:
                ptx.add(f32, total, total, value)
        total = cta_reduce("sum", total, thread, THREADS)

        # Phase 2: threads 0 to 3 write the sum to the CTAs of the cluster.
        ptx.cluster.sync()
        with ptx.if_(thread < CTAS):
            remote = ptx.cluster.map_shared_u32(cells[rank].address(), thread)
            ptx.st(f32, ptx.addr(remote), total, space="shared::cluster")
        ptx.cluster.sync()

        # Phase 3: one thread of the cluster adds the four values.
        with ptx.if_(thread + rank == 0):
            whole = smem.load(f32, cells[0])
            for peer in range(1, CTAS):
                whole = whole + smem.load(f32, cells[peer])
            ptx.st(f32, ptx.addr(py, row * 4), whole)

    return cluster_reduction


def reference(x: Array) -> Array:
    """Return the expected result, in f64."""
    return x.astype(np.float64).sum(axis=1)


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a", "sm_100a", "sm_120a"),
    runs=(
        Run({"m": 1, "n": 16}, 1e-6, 1e-5),
        Run({"m": 2, "n": 5008}, 1e-5, 1e-4),
        Run({"m": 1, "n": 256}, special=True),
    ),
    large={"m": 1024, "n": 65536},
    sass=("UCGABAR_ARV", "ST.E"),
    traffic=lambda shape: 4 * shape["m"] * shape["n"],
    peer="sum",
)

if __name__ == "__main__":
    EXAMPLE.show()
