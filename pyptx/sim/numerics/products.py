"""Which sum a matrix instruction makes: quickly in float32, or as the tensor core of a target does.

Factors come as decoded numbers, `[…, M, K]` and `[…, K, N]`; an f16 accumulator as values of f16.
"""

from __future__ import annotations

import numpy as np

from pyptx.sim.numerics.arrays import F32, F64, I16, Array, quiet
from pyptx.sim.numerics.blocks import block_dot
from pyptx.sim.numerics.dot import Operand, dot, operand
from pyptx.sim.numerics.fast_dot import fast_dot
from pyptx.sim.numerics.plain_dots import scalar_dot
from pyptx.sim.numerics.rounding import canonical
from pyptx.sim.numerics.tensor_core import Lowering, Rule, lowering, rule


def product(
    left: Array, right: Array, start: Array, names: tuple[str, str, str], *, instruction: str, sm: int = 0,
    sparse: bool = False,
) -> F32:  # fmt: skip
    """Return left @ right + start. `names` are the formats of D, A and B; `sm` 0 means: quickly."""
    c = start.astype(np.float32, copy=False)
    if not sm:
        return (
            fast_dot(left, right, c, names[0]) if left.dtype == right.dtype == np.float32 else _sum_wide(left, right, c)
        )
    match lowering(instruction, sm, names[1], left.shape[-1]):
        case Lowering.UNPACKED:
            return _sum_unpacked(left, right, c, rule("mma", sm, "f16", names[0], sparse=sparse), 8 if sparse else 4)
        case Lowering.SCALAR:
            return scalar_dot(left, right, c, names[0])
        case Lowering.MATRIX:
            dot_rule = rule(instruction, sm, names[1], names[0], sparse=sparse)
            return dot(operand(left, names[1]), operand(right, names[2]), c, dot_rule)


def _sum_unpacked(left: Array, right: Array, c: F32, dot_rule: Rule, span: int) -> F32:
    """Return the sum of f16 factors whose registers hold `span` elements of K: of the lower halves, then of the upper
    halves, then of the addend."""
    total: F32 = np.zeros_like(c)
    depth = left.shape[-1]
    for upper in (False, True):
        half = [k for k in range(depth) if (k % span >= span // 2) is upper]
        total = dot(operand(left[..., half], "f16"), operand(right[..., half, :], "f16"), total, dot_rule)
    with quiet():
        exact = total.astype(np.float64) + c
        return canonical((exact.astype(np.float16) if dot_rule.output == "f16" else exact).astype(np.float32))


def _sum_wide(left: Array, right: Array, c: F32) -> F32:
    """Return the sum in float64, rounded once: of factors that float32 cannot hold."""
    with quiet():
        return canonical((np.matmul(left, right) + c).astype(np.float32))


def scaled_product(
    left: Array, right: Array, scales: tuple[F64, F64], start: Array, names: tuple[str, str], *,
    instruction: str, sm: int = 0, sparse: bool = False,
) -> F32:  # fmt: skip
    """Return (left * scale) @ (right * scale) + start; the scales are `[…, M, blocks]` and `[…, blocks, N]`, each for
    as many neighbors along K."""
    c = start.astype(np.float32, copy=False)
    if sm and names[0] == "e2m1" == names[1] and left.shape[-1] // scales[0].shape[-1] < left.shape[-1]:
        return block_dot(left, right, scales[0].astype(np.float32), scales[1].astype(np.float32), c)
    wide = left.shape[-1] // scales[0].shape[-1]
    for_a, for_b = np.repeat(scales[0], wide, axis=-1), np.repeat(scales[1], wide, axis=-2)
    if not sm:
        return _sum_wide(left * for_a, right * for_b, c)
    dot_rule = rule(instruction, sm, names[0], "f32", sparse=sparse)
    return dot(_scale_factors(left, names[0], for_a), _scale_factors(right, names[1], for_b), c, dot_rule)


def _scale_factors(values: Array, name: str, scale: F64) -> Operand:
    """Return factors times powers of two; the power of NaN makes them NaN."""
    values, scale = np.broadcast_arrays(values, scale)
    lost = np.isnan(scale)
    exponent: I16 = np.frexp(np.where(lost, 1.0, scale))[1].astype(np.int16) - np.int16(1)
    return operand(np.where(lost, np.float32(np.nan), values).astype(np.float32), name, exponent)
