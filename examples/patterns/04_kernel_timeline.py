"""A kernel that records its own timeline: y = x copied through shared memory, and when each warp passed each step.

The idea: a profiler shows how long a kernel takes, not which warp waited for which. `%globaltimer` counts nanoseconds
on a clock that all SMs share, so one thread per warp can write down when its warp begins, has its data, and ends, and
on which SM. Two stores per warp disturb a kernel little; a tool such as Perfetto draws the records.

The protocol: one `bar.sync 0` of all threads, between writing the shared copy and reading it.

The records of a run on the simulator are numbers of steps, not times, so only the copied values are compared.
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg, smem
from pyptx.types import f32, u64

THREADS, WARPS, EVENTS = 128, 4, 4
"""Events of a warp: its SM, and the times at which it begins, has its data, and ends."""


def grid(n: int, g: int) -> tuple[int, int, int]:
    """Return the grid: one CTA per 128 values."""
    if n != g * THREADS:
        raise ValueError(f"the length must be {THREADS} times the number of CTAs, found {n} and {g}")
    return (g, 1, 1)


def read_time() -> reg.Reg:
    """Return the nanoseconds of the clock that all SMs share. The instruction is volatile, so it stays in its place."""
    return ptx.special.globaltimer()


def make(arch: str = "sm_80") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("n", f32),), out_specs=(Tile("n", f32), Tile("g", WARPS, EVENTS, u64)), grid=grid,
        block=(THREADS, 1, 1),
    )  # fmt: skip
    def kernel_timeline(x: TensorSpec, y: TensorSpec, events: TensorSpec) -> None:
        px, py, pevents = ptx.global_ptrs(x, y, events)
        cells = smem.alloc(f32, THREADS, name="cells")
        thread, cta = ptx.special.tid.x(), ptx.special.ctaid.x()
        offset = (cta * THREADS + thread) * 4

        begin = read_time()
        cells[thread] = ptx.ld(f32, ptx.addr(px, offset))
        ptx.bar.sync(0)
        loaded = read_time()
        ptx.st(f32, ptx.addr(py, offset), smem.load(f32, cells[thread]))
        end = read_time()

        # Lane 0 of each warp writes the record, as two stores of 16 bytes.
        with ptx.if_(thread & 31 == 0):
            record = ptx.addr(pevents, (cta * WARPS + (thread >> 5)) * (EVENTS * 8))
            sm = reg.scalar(u64)
            ptx.cvt(u64, "u32", sm, ptx.special.smid())
            ptx.st(u64, record, [sm, begin])
            ptx.st(u64, ptx.addr(pevents, (cta * WARPS + (thread >> 5)) * (EVENTS * 8) + 16), [loaded, end])

    return kernel_timeline


def reference(x: Array) -> tuple[Array | None, ...]:
    """Return the expected values; times are not compared."""
    return x, None


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_80", "sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"n": THREADS, "g": 1}), Run({"n": 3 * THREADS, "g": 3}, special=True)),
    large={"n": 1024 * THREADS, "g": 1024},
    sass=("SR_GLOBALTIMERLO", "STG.E.128"),
    traffic=lambda shape: 8 * shape["n"],
    peer="clone",
)

if __name__ == "__main__":
    EXAMPLE.show()
