"""What instructions compute, one operand tuple at a time, in exact integers and fractions. Written from the manual and
independent of `pyptx.sim`, which they verify.

A scalar function takes the bits of the inputs as integers, in the order in which a case reads them, and returns the
bits of each output.
"""

from __future__ import annotations

import numpy as np

from tools.conformance.forms import Array, Case
from tools.conformance.references import (
    bounded,
    comparison,
    conversion,
    data_movement,
    extended_precision,
    floating_point,
    integer,
    matrices,
    memory,
    narrow,
    video,
    warp,
)  # fmt: skip
from tools.conformance.references.words import Builder, Scalar

FAMILIES: tuple[dict[str, Builder], ...] = (
    extended_precision.BUILDERS, integer.BUILDERS, floating_point.BUILDERS, comparison.BUILDERS, conversion.BUILDERS,
    video.BUILDERS, narrow.BUILDERS, data_movement.BUILDERS, memory.BUILDERS,
)  # fmt: skip


WARPS: dict[str, warp.Builder] = {**warp.BUILDERS, "mma": matrices.product, **memory.WARPS}
_SLOW = 256
"""Tuples of a form whose reference is slow: four elements each."""


def scalar_of(case: Case) -> Scalar | None:
    """Return the function of a case, of the first family that has one."""
    for builders in FAMILIES:
        builder = builders.get(case.opcode)
        scalar = builder(case.modifiers, case) if builder is not None else None
        if scalar is not None:
            return scalar
    return None


def reference(case: Case, operands: Array) -> Array | None:
    """Return the results of a case as its kernel stores them, of the first tuples only where the reference is slow;
    None where the spelling has no reference."""
    whole = WARPS.get(case.opcode)
    among = whole(case.modifiers, case) if whole is not None else None
    scalar = scalar_of(case)
    if scalar is None and among is None:
        return None
    tuples = min(_tuples(case), operands.shape[1])
    results = np.zeros((len(case.outputs) + case.carries, tuples, 2), np.uint64)
    columns = [_integers(operands[position, :tuples]) for position in range(len(case.inputs))]
    if case.carries:
        columns.insert(0, [thread & 1 for thread in range(tuples)])
    rows = list(zip(*columns, strict=True)) if columns else [()] * tuples
    if among is not None:
        answers = [result for start in range(0, tuples, 32) for result in among(rows[start : start + 32])]
    else:
        assert scalar is not None
        answers = [scalar(*row) for row in rows]
    for row, result in enumerate(answers):
        for position, bits in enumerate(result if isinstance(result, tuple) else (result,)):
            results[position, row] = bits & 0xFFFFFFFFFFFFFFFF, bits >> 64
    return results


def _tuples(case: Case) -> int:
    if case.opcode == "mma":
        return 32 * matrices.warps(case)
    return _SLOW if case.modifiers[-1].endswith("x4") else 1 << 30


def has_reference(case: Case) -> bool:
    """Return whether a case has a reference or an error bound."""
    whole = WARPS.get(case.opcode)
    return (
        (whole is not None and whole(case.modifiers, case) is not None)
        or scalar_of(case) is not None
        or bounded.within_of(case) is not None
    )


def _integers(column: Array) -> list[int]:
    low, high = column[:, 0].tolist(), column[:, 1].tolist()
    return [a | b << 64 for a, b in zip(low, high, strict=True)]
