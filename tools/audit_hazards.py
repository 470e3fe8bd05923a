"""Runs the corpus with all checks: `python -m tools.audit_hazards [PRODUCER…]`. Kernels have no errors, except those
listed with the rule that they break; warnings are counted by producer.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass

from pyptx.diagnostics import Severity
from tools.sim_corpus import Outcome, outcomes, tabulate

_RACE = (
    "plain accesses to a location that other threads update concurrently; any value read is acceptable "
    "(Memory Consistency Model, Data-Race)"
)
_UNUSED = "adds a register that this path never writes; a select discards the sum"


@dataclass(frozen=True, slots=True)
class Explained:
    """Kernels (by producer and part of file and name) that break a rule of the manual, and why they still work."""

    producer: str
    name: str
    codes: frozenset[str]
    why: str


def _kernel(producer: str, name: str, codes: str, why: str) -> Explained:
    return Explained(producer, name, frozenset(f"PTX{code}" for code in codes.split()), why)


EXPLAINED = (
    _kernel("numba", "bfs_level", "0901 0902", _RACE),
    _kernel("numba", "sieve", "0902", "several threads cross out the same number: " + _RACE),
    _kernel("nvcc", "compare_and_swap_loop", "0901 0902", "the loop's initial guess: " + _RACE),
    _kernel("nvcc", "bfs_frontier", "0901 0902", _RACE),
    _kernel("nvcc", "union_find", "0901 0902", _RACE),
    _kernel("nvcc", "bellman_ford", "0901 0902", _RACE),
    _kernel("nvcc", "hopper.sm_90a.ptx wgmma_", "0934",
            "the kernel clears the accumulators between wgmma.fence and wgmma.mma_async; the fence must follow all "
            "other accesses to the registers (wgmma.fence)"),
    _kernel("triton", "locked_sum", "0901 0902", "all threads load a value that one stores, and discard it: " + _RACE),
    _kernel("cub", "block_radix_sort", "0911", _UNUSED),
    _kernel("cub", "merge_sort", "0910", "the merge loads one key past the end of a list and discards it"),
)  # fmt: skip


def judge_outcome(outcome: Outcome) -> tuple[list[str], set[tuple[str, str, str]]]:
    """Return the errors of a kernel that the list does not explain, and the entries that explain the others."""
    name = f"{outcome.file} {outcome.entry}"
    candidates = [entry for entry in EXPLAINED if entry.producer == outcome.producer and entry.name in name]
    wrong: list[str] = []
    matches: set[tuple[str, str, str]] = set()
    for hazard in outcome.hazards:
        if hazard.severity is Severity.ERROR:
            code = hazard.rule.code
            why = {(entry.producer, entry.name, code) for entry in candidates if code in entry.codes}
            wrong += [] if why else [f"{outcome.producer}/{name}: {hazard}"]
            matches |= why
    return wrong, matches


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("producers", nargs="*")
    options = parser.parse_args()
    kernels: Counter[str] = Counter()
    hazards: dict[str, Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    matches: set[tuple[str, str, str]] = set()
    for outcome in outcomes(options.producers, "all"):
        kernels[outcome.producer] += 1
        hazards[outcome.producer] += Counter({hazard.rule.code for hazard in outcome.hazards})
        errors, explanations = judge_outcome(outcome)
        wrong, matches = wrong + errors, matches | explanations
        if outcome.verdict != "pass":
            wrong.append(f"{outcome.producer}/{outcome.file} {outcome.entry}: {outcome.why}")
    counts = ", ".join(f"{name} {count}" for name, count in sorted(kernels.items()))
    print(f"{sum(kernels.values())} kernels: {counts}")
    for line in tabulate({name: codes for name, codes in hazards.items() if codes}):
        print(line)
    print("\nexplained errors")
    for entry in EXPLAINED:
        print(f"  {entry.producer} {entry.name} ({', '.join(sorted(entry.codes))}): {entry.why}")
    entries = [
        (entry.producer, entry.name, code)
        for entry in EXPLAINED
        for code in sorted(entry.codes)
        if entry.producer in kernels
    ]
    wrong += [f"{producer} {name}: {code} is listed but does not occur" for producer, name, code in entries
              if (producer, name, code) not in matches]  # fmt: skip
    print(f"\n{len(wrong)} unexplained errors or failures")
    for line in wrong:
        print(f"  {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
