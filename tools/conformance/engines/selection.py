"""All cases, and the batches that a process runs: cases of a few kernels."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tools.conformance.engines import (
    barriers,
    bulk_copies,
    clusters,
    failures,
    map_fields,
    probes,
    products,
    tensor_copies,
)
from tools.conformance.engines.cases import Case, Entry

MODULES = (probes, tensor_copies, bulk_copies, products, clusters, barriers, map_fields)
_MOST_ENTRIES, _MOST_CASES, _MOST_RISKY = 40, 320, 20
_LAST = ("store", "reduce", "im2col", "interleave", "atoms", "probe")
"""Families in which cases may fault."""


def select_cases(families: Sequence[str] = (), sample: int | None = None, seed: int = 0) -> list[Case]:
    """Return the cases of some families (of all if there are none, except failures), or a sample of them."""
    modules = (*MODULES, failures) if failures.FAMILY in families else MODULES
    cases = [case for module in modules for case in module.list_cases() if not families or case.family in families]
    if sample is not None and sample < len(cases):
        keep = {case.name for case in random.Random(seed).sample(cases, sample)}
        cases = [case for case in cases if case.name in keep]
    return cases


def make_batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Return the cases in groups with few kernels each. Cases without a kernel never fail and share a group."""
    batches: list[list[Case]] = []
    names = set[str]()
    with_entries = [case for case in cases if case.entry]
    for case in sorted(with_entries, key=lambda case: (case.family in _LAST, case.family)):
        assert case.entry is not None
        names.add(case.entry.name)
        most = _MOST_RISKY if case.family in _LAST else _MOST_CASES
        is_full = len(names) > _MOST_ENTRIES or len(batches[-1]) >= most if batches else True
        if is_full or case.family != batches[-1][0].family:
            batches.append([])
            names = {case.entry.name}
        batches[-1].append(case)
    maps = [case for case in cases if case.entry is None]
    return [*([maps] if maps else []), *batches]


def list_entries(cases: Sequence[Case]) -> list[Entry]:
    """Return the kernels of some cases."""
    return list({case.entry.name: case.entry for case in cases if case.entry}.values())
