"""A check of tuning by the time on the GPU, which is the cost if none is passed."""

from __future__ import annotations

import numpy as np

from pyptx import Tile, kernel, ptx, reg
from pyptx.tuning import Cost
from pyptx.types import f32
from tools.gpu.checks import Machine, check
from tools.gpu.launches import copy_to_device

SIZE, WIDTHS = 4096, (2, 4)
COST: Cost | None = None
"""The simulated driver has no times, so a test passes a cost of its own."""


@kernel(arch="sm_80", in_specs=[Tile(SIZE, f32)], out_specs=[Tile(SIZE, f32)], grid=(1,), block=(32, 1, 1))
def double(x: object, y: object, *, width: int = 2) -> None:
    """y = 2 x, in vectors of `width` elements"""
    px, py = ptx.global_ptrs(x, y)
    for i in ptx.range_(ptx.special.tid.x() * width, SIZE, 32 * width):
        value = reg.array(f32, width)
        ptx.ld(f32, value, ptx.addr(px, i * 4))
        for element in value:
            ptx.mul(f32, element, element, 2.0)
        ptx.st(f32, ptx.addr(py, i * 4), value)


@check("tuning with the default cost, the time on the GPU: a choice, its results, and the explanation", "a GPU")
def tuning_by_time(machine: Machine) -> str:
    """Choose the width of the vectors of a kernel, and compare what it computes."""
    values = np.arange(SIZE, dtype=np.float32)
    x = copy_to_device(values, 0)
    tuned = double.tune({"width": WIDTHS}, [x], check_args=[values], cost=COST, cache=False)
    assert [trial.problem for trial in tuned.trials] == [""] * len(WIDTHS), str(tuned)
    cheapest = min(tuned.trials, key=lambda trial: trial.cost or 0.0)
    assert tuned.best == cheapest.configuration, f"{tuned.best} is not the cheapest:\n{tuned}"
    assert str(tuned).splitlines() == [
        "double, tried now:", *map(str, sorted(tuned.trials, key=lambda trial: trial.cost or 0.0))
    ]  # fmt: skip
    np.testing.assert_array_equal(tuned(x).to_numpy(), 2 * values)
    return ", ".join(str(tuned).splitlines()[1:])
