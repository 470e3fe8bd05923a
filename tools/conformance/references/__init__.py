"""What instructions compute, one operand tuple at a time, in exact integers and fractions.

Written from the manual and independent of `pyptx.sim`, which is what they judge. A scalar function gets the bits of
the inputs as integers, in the order in which a case reads them, and returns the bits of each output.
"""

from __future__ import annotations

import numpy as np

from tools.conformance.forms import Array, Case
from tools.conformance.references import integer
from tools.conformance.references.words import Builder

BUILDERS: dict[str, Builder] = {**integer.BUILDERS}


def reference(case: Case, operands: Array) -> Array | None:
    """Return the results of a case as its kernel stores them, None where the spelling has no reference."""
    builder = BUILDERS.get(case.opcode)
    scalar = builder(case.modifiers, case) if builder is not None else None
    if scalar is None:
        return None
    results = np.zeros((len(case.outputs) + case.carries, operands.shape[1], 2), np.uint64)
    columns = [_integers(operands[position]) for position in range(len(case.inputs))]
    for row, given in enumerate(zip(*columns, strict=True) if columns else [()] * operands.shape[1]):
        found = scalar(*given)
        for position, bits in enumerate(found if isinstance(found, tuple) else (found,)):
            results[position, row] = bits & 0xFFFFFFFFFFFFFFFF, bits >> 64
    return results


def _integers(column: Array) -> list[int]:
    low, high = column[:, 0].tolist(), column[:, 1].tolist()
    return [a | b << 64 for a, b in zip(low, high, strict=True)]
