"""Compares two results of a case bit for bit. Two NaNs are equal; different payloads are counted separately."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.numbers import FORMATS, Format, is_float, split_packed
from pyptx.sim.rules.faults import UNSUPPORTED
from tools.conformance.forms import Array, Case
from tools.conformance.modules import TUPLES


@dataclass
class Agreement:
    """The result of one form: tuples compared, tuples that differ, and tuples that differ only in a NaN payload."""

    tuples: int = 0
    differing: int = 0
    payloads: int = 0
    example: str = ""
    has_bound: bool = False
    """Results are compared with an error bound, not bit for bit."""
    lacking: bool = False
    """The simulator has no semantics for the form."""


def compare(case: Case, operands: Array, mine: Array | Exception, theirs: Array | None) -> Agreement:
    """Compare two results of a case; `mine` may be an exception, which never agrees."""
    if isinstance(mine, Exception):
        return failure(case, mine)
    assert theirs is not None
    mine = mine[:, : theirs.shape[1]]
    unequal = (mine != theirs).any(axis=(0, 2))
    different = (canonicalize(case, mine) != canonicalize(case, theirs)).any(axis=(0, 2))
    agreement = Agreement(mine.shape[1], int(different.sum()), int((unequal & ~different).sum()))
    if agreement.differing:
        index = int(np.flatnonzero(different)[0])
        inputs = ", ".join(hex(int(column[index, 0])) for column in operands[: len(case.inputs)])
        results = ", ".join(f"{int(m[index, 0]):#x} / {int(t[index, 0]):#x}" for m, t in zip(mine, theirs, strict=True))
        agreement.example = f"{case.text}  ({inputs}) -> {results}"
    return agreement


def summarize_judgments(case: Case, operands: Array, results: Array, right: list[bool]) -> Agreement:
    """Return the agreement of a case whose results were compared one by one."""
    agreement = Agreement(len(right), right.count(False), has_bound=True)
    if agreement.differing:
        index = right.index(False)
        inputs = ", ".join(hex(int(column[index, 0])) for column in operands[: len(case.inputs)])
        agreement.example = f"{case.text}  ({inputs}) -> {int(results[0, index, 0]):#x}, beyond the bound"
    return agreement


def failure(case: Case, why: Exception) -> Agreement:
    """Return the agreement of a case that did not run."""
    if isinstance(why, PtxError) and why.diagnostics[0].code == UNSUPPORTED.code:
        return Agreement(lacking=True)
    first = str(why).splitlines()[0] if str(why) else ""
    return Agreement(TUPLES, TUPLES, 0, f"{case.text}  {type(why).__name__}: {first}")


def canonicalize(case: Case, results: Array) -> Array:
    """Return results in which every NaN has the same bits, all of them ones."""
    copy = results.copy()
    for words, column in zip(copy, case.outputs, strict=False):
        lane = split_packed(column.type or "")[0]
        if is_float(lane) and FORMATS[lane].bits >= 16:
            words[:, 0] |= _mask_nans(words[:, 0], FORMATS[lane])
    return copy


def _mask_nans(words: Array, form: Format) -> Array:
    """Return words with ones where a lane holds a NaN."""
    # The bits of a tf32 below its code count as part of the fraction.
    width, mask, infinity = form.width, (1 << form.width) - 1, form.exponent_mask << form.shift
    result = np.zeros_like(words)
    for start in range(0, 64, width):
        lane = (words >> np.uint64(start)) & np.uint64(mask >> 1)
        result |= np.where(lane > np.uint64(infinity), np.uint64(mask << start), np.uint64(0))
    return result
