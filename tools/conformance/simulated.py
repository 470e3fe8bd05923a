"""Runs cases on the simulator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tools.conformance.draws import draw
from tools.conformance.forms import Array, Case
from tools.conformance.modules import CTAS, THREADS, TUPLES, batches, module


def draw_operands(case: Case, seed: int) -> Array:
    """Return the operands of a case as its kernel reads them: `[column, thread, 2]` words of 64 bits."""
    words = np.zeros((max(1, len(case.inputs)), TUPLES, 2), np.uint64)
    for position, values in enumerate(draw(case, TUPLES, seed)):
        if values.ndim == 2:
            words[position] = values
        else:
            words[position, :, 0] = values
    return words


def empty(case: Case) -> Array:
    """Return arrays for the results of a case, the carry flag last."""
    return np.zeros((len(case.outputs) + case.carries, TUPLES, 2), np.uint64)


def run(cases: list[Case], seed: int) -> Iterator[tuple[Case, Array, Array | Exception]]:
    """Yield each case with its operands and the results of the simulator, or its exception. Each case has its own
    module, because a run prepares the whole module."""
    for target, version, batch in batches(cases):
        for case in batch:
            operands, results = draw_operands(case, seed), empty(case)
            try:
                sim.run(
                    parse(module(target, version, [case])), "c0", grid=CTAS, block=THREADS, args=[operands, results],
                    check="none", precision="hardware",
                )  # fmt: skip
            except (PtxError, ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as why:
                yield case, operands, why
            else:
                yield case, operands, results
