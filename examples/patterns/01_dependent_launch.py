"""Scale each row after its predecessor: y[r, :] = x[r, :] * w, in a programmatic dependent launch.

The idea: a launch costs microseconds in which the GPU is idle. With the launch attribute "programmatic", the next grid
starts when all CTAs of this one have executed `griddepcontrol.launch_dependents` or exited. It may then do everything
that does not need the predecessor's results: here, each CTA loads the weights and computes its addresses.

The protocol: `griddepcontrol.wait` returns when the preceding grids have completed and their memory is visible, so
every access to `x` and `y` comes after it: `x` is the predecessor's result, and `y` may be what it still reads. `w` is
constant, so it is loaded before. `launch_dependents` comes early: a dependent grid that starts early only occupies
free slots, and its own wait still holds until this grid has completed.
"""

from __future__ import annotations

from examples.parts.example import Array, Example, Run
from pyptx import Kernel, TensorSpec, Tile, kernel, ptx, reg
from pyptx.types import f32

THREADS, WIDTH = 256, 4
COLUMNS = THREADS * WIDTH


def grid(m: int) -> tuple[int, int, int]:
    """Return the grid: one CTA per row."""
    return (m, 1, 1)


def make(arch: str = "sm_90a") -> Kernel:
    """Return the kernel for a target."""

    @kernel(
        arch=arch, in_specs=(Tile("m", COLUMNS, f32), Tile(COLUMNS, f32)), out_specs=(Tile("m", COLUMNS, f32),),
        grid=grid, block=(THREADS, 1, 1),
    )  # fmt: skip
    def dependent_launch(x: TensorSpec, w: TensorSpec, y: TensorSpec) -> None:
        px, pw, py = ptx.global_ptrs(x, w, y)
        offset = ptx.special.tid.x() * (WIDTH * 4)
        row = ptx.special.ctaid.x() * (COLUMNS * 4) + offset
        weights, values = reg.array(f32, WIDTH, name="weight"), reg.array(f32, WIDTH, name="value")

        # Phase 1, while the preceding grid may still run: load what no kernel writes.
        ptx.griddepcontrol.launch_dependents()
        ptx.ld(f32, weights, ptx.addr(pw, offset), space="global", cache="nc")

        # Phase 2: after the preceding grid.
        ptx.griddepcontrol.wait()
        ptx.ld(f32, values, ptx.addr(px, row))
        for value, weight in zip(values, weights, strict=True):
            ptx.mul(f32, value, value, weight)
        ptx.st(f32, ptx.addr(py, row), values)

    return dependent_launch


def reference(x: Array, w: Array) -> Array:
    """Return the expected result."""
    return x * w


EXAMPLE = Example(
    make=make,
    reference=reference,
    targets=("sm_90a", "sm_100a", "sm_120a"),
    runs=(Run({"m": 1}), Run({"m": 5}, special=True)),
    large={"m": 16384},
    sass=("ACQBULK", "PREEXIT", "LDG.E.128"),
    traffic=lambda shape: 8 * shape["m"] * COLUMNS,
    peer="multiply",
)

if __name__ == "__main__":
    EXAMPLE.show()
