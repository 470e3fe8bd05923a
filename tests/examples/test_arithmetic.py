"""The arithmetic that example kernels share is as accurate as it says."""

from __future__ import annotations

import numpy as np

from examples.parts.arithmetic import pack, power_of_two_by_fma, unpack
from pyptx import TensorSpec, Tile, kernel, ptx
from pyptx.types import f32


@kernel(arch="sm_100a", in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(256, 1, 1))
def powers(x: TensorSpec, y: TensorSpec) -> None:
    px, py = ptx.global_ptrs(x, y)
    offset = ptx.special.tid.x() * 8
    pair = pack(ptx.ld(f32, ptx.addr(px, offset)), ptx.ld(f32, ptx.addr(px + 4, offset)))
    for i, power in enumerate(unpack(power_of_two_by_fma(pair))):
        ptx.st(f32, ptx.addr(py + 4 * i, offset), power)


def test_powers_by_polynomial_are_within_8e_5_and_do_not_underflow() -> None:
    exponents = np.linspace(-125, 126.9, 512, dtype=np.float32)
    result = powers.simulate(exponents).outputs["y"]
    np.testing.assert_allclose(result, np.exp2(exponents.astype(np.float64)), rtol=8e-5)
    lowest = powers.simulate(np.full(512, -np.inf, np.float32)).outputs["y"]
    np.testing.assert_allclose(lowest, 2.0**-125, rtol=8e-5)
