"""Matrix products of instructions: fast in float32, or bit for bit as the tensor core of a target.

Factors are decoded numbers, `[…, M, K]` and `[…, K, N]`; an f16 accumulator holds f16 values as f32.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, I16, Array, quiet
from pyptx.sim.numerics.blocks import block_dot
from pyptx.sim.numerics.dot import Operand, dot, prepare_operand
from pyptx.sim.numerics.fast_dot import fast_dot
from pyptx.sim.numerics.plain_dots import scalar_dot
from pyptx.sim.numerics.rounding import canonicalize_nan
from pyptx.sim.numerics.tensor_core import Lowering, Rule, select_lowering, select_rule


def multiply_matrices(
    a: Array, b: Array, addend: Array, names: tuple[str, str, str], *, instruction: str, sm: int = 0,
    sparse: bool = False,
) -> F32:  # fmt: skip
    """Return a @ b + addend. `names` are the formats of D, A and B; with `sm` 0 the sum is computed in float32."""
    c = addend.astype(np.float32, copy=False)
    if not sm:
        return fast_dot(a, b, c, names[0]) if a.dtype == b.dtype == np.float32 else _sum_wide(a, b, c)
    match select_lowering(instruction, sm, names[1], a.shape[-1]):
        case Lowering.UNPACKED:
            return _sum_unpacked(a, b, c, select_rule("mma", sm, "f16", names[0], sparse=sparse), 8 if sparse else 4)
        case Lowering.SCALAR:
            return scalar_dot(a, b, c, names[0])
        case Lowering.MATRIX:
            dot_rule = select_rule(instruction, sm, names[1], names[0], sparse=sparse)
            return dot(prepare_operand(a, names[1]), prepare_operand(b, names[2]), c, dot_rule)


def _sum_unpacked(a: Array, b: Array, c: F32, dot_rule: Rule, span: int) -> F32:
    """Return the product of factors unpacked to f16, `span` elements of K per pair of registers: first the lower
    halves are summed, then the upper halves, then the addend."""
    total: F32 = np.zeros_like(c)
    depth = a.shape[-1]
    for upper in (False, True):
        half = [k for k in range(depth) if (k % span >= span // 2) is upper]
        total = dot(prepare_operand(a[..., half], "f16"), prepare_operand(b[..., half, :], "f16"), total, dot_rule)
    with quiet():
        exact = total.astype(np.float64) + c
        return canonicalize_nan((exact.astype(np.float16) if dot_rule.output == "f16" else exact).astype(np.float32))


def _sum_wide(a: Array, b: Array, c: F32) -> F32:
    """Return a @ b + c computed in float64 and rounded once, for factors that float32 cannot hold."""
    with quiet():
        return canonicalize_nan((np.matmul(a, b) + c).astype(np.float32))


def multiply_scaled_matrices(
    a: Array, b: Array, scales: tuple[F64, F64], addend: Array, names: tuple[str, str], *,
    instruction: str, sm: int = 0, sparse: bool = False,
) -> F32:  # fmt: skip
    """Return (a * scale) @ (b * scale) + addend. The scales are `[…, M, blocks]` and `[…, blocks, N]`; each covers a
    block of equal size along K."""
    c = addend.astype(np.float32, copy=False)
    if sm and names[0] == "e2m1" == names[1] and a.shape[-1] // scales[0].shape[-1] < a.shape[-1]:
        return block_dot(a, b, scales[0].astype(np.float32), scales[1].astype(np.float32), c)
    wide = a.shape[-1] // scales[0].shape[-1]
    a_scales, b_scales = np.repeat(scales[0], wide, axis=-1), np.repeat(scales[1], wide, axis=-2)
    if not sm:
        return _sum_wide(a * a_scales, b * b_scales, c)
    dot_rule = select_rule(instruction, sm, names[0], "f32", sparse=sparse)
    return dot(_scale_factors(a, names[0], a_scales), _scale_factors(b, names[1], b_scales), c, dot_rule)


def _scale_factors(values: Array, name: str, scale: F64) -> Operand:
    """Return factors times powers of two; a NaN scale makes its factors NaN."""
    values, scale = np.broadcast_arrays(values, scale)
    is_nan = np.isnan(scale)
    exponent: I16 = np.frexp(np.where(is_nan, 1.0, scale))[1].astype(np.int16) - np.int16(1)
    return prepare_operand(np.where(is_nan, np.float32(np.nan), values).astype(np.float32), name, exponent)
