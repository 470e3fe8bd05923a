"""What instructions compute, one operand tuple at a time, in exact integers and fractions.

Written from the manual and independent of `pyptx.sim`, which is what they judge. A scalar function gets the bits of
the inputs as integers, in the order in which a case reads them, and returns the bits of each output.
"""

from __future__ import annotations

import numpy as np

from tools.conformance.forms import Array, Case
from tools.conformance.references import comparison, conversion, extended_precision, floating_point, integer, video
from tools.conformance.references.words import Builder, Scalar

FAMILIES: tuple[dict[str, Builder], ...] = (
    extended_precision.BUILDERS, integer.BUILDERS, floating_point.BUILDERS, comparison.BUILDERS, conversion.BUILDERS,
    video.BUILDERS,
)  # fmt: skip


def scalar_of(case: Case) -> Scalar | None:
    """Return the function of a case, of the first family that has one."""
    for builders in FAMILIES:
        builder = builders.get(case.opcode)
        found = builder(case.modifiers, case) if builder is not None else None
        if found is not None:
            return found
    return None


def reference(case: Case, operands: Array) -> Array | None:
    """Return the results of a case as its kernel stores them, None where the spelling has no reference."""
    scalar = scalar_of(case)
    if scalar is None:
        return None
    results = np.zeros((len(case.outputs) + case.carries, operands.shape[1], 2), np.uint64)
    columns = [_integers(operands[position]) for position in range(len(case.inputs))]
    if case.carries:
        columns.insert(0, [thread & 1 for thread in range(operands.shape[1])])
    for row, given in enumerate(zip(*columns, strict=True) if columns else [()] * operands.shape[1]):
        found = scalar(*given)
        for position, bits in enumerate(found if isinstance(found, tuple) else (found,)):
            results[position, row] = bits & 0xFFFFFFFFFFFFFFFF, bits >> 64
    return results


def _integers(column: Array) -> list[int]:
    low, high = column[:, 0].tolist(), column[:, 1].tolist()
    return [a | b << 64 for a, b in zip(low, high, strict=True)]
