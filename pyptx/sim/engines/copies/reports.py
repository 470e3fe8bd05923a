"""What copies report to their mbarrier: bytes that mean "not valid", by `.mbarrier::report::validity` (manual: Report
Mechanisms for Asynchronous Copy Operations). Hardware samples an element of every 16 bytes; here it is the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from pyptx.sim.base.formats import Array

Test = Callable[[Array], bool]
_CHUNK = 16
_NEGATIVE_ZERO = {"80000000": ("u4", 0x80000000), "8000": ("u2", 0x8000), "80": ("u1", 0x80)}


def parse_report(modifiers: Iterable[str]) -> Test | None:
    """Return the test that a spelling applies to the copied bytes, None if it has none."""
    modifier = next((m.rpartition("::") for m in modifiers if "report::validity" in m), None)
    if modifier is None:
        return None
    granularity, _, pattern = modifier
    if granularity.endswith("per_element"):
        return lambda data: bool((data == 0xFF).any())
    if pattern == "8":
        return lambda data: bool((data[::_CHUNK] & 0xF == 8).any())
    kind, code = _NEGATIVE_ZERO[pattern]
    return lambda data: bool((data.view(kind)[:: _CHUNK // np.dtype(kind).itemsize] == code).any())
