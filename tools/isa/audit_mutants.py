"""Audits `check` on variations of legal instructions: it must accept and reject what ptxas accepts and rejects.

    python -m tools.isa.audit_mutants [--count 20000] [--seed 1] [--stratum type] [--opcode ld] [--show 40]

Prints the agreement by stratum and each disagreement. Fails below 99% overall or 95% in one stratum.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence

from pyptx.check import check
from pyptx.diagnostics import Severity
from pyptx.parser import parse
from tools.isa.mutants import STRATA, Mutant, Source
from tools.isa.ptxas import Case, module_text, verdicts

_CHUNK = 500


def our_verdicts(cases: Sequence[Case]) -> dict[Case, str | None]:
    """Return, for each case, why `check` rejects it, or None if it accepts it."""
    by_header: defaultdict[tuple[str, tuple[int, int], bool], list[Case]] = defaultdict(list)
    for case in cases:
        by_header[case.target, case.version, "q_samplerref" in case.text].append(case)
    reasons: dict[Case, str | None] = {}
    for (target, version, _), group in by_header.items():
        group.sort(key=lambda case: case.group)
        for start in range(0, len(group), _CHUNK):
            reasons |= _ours(group[start : start + _CHUNK], target, version)
    return reasons


def _ours(cases: list[Case], target: str, version: tuple[int, int]) -> dict[Case, str | None]:
    text, case_of_line = module_text(cases, target, version)
    module, problems = parse(text, recover=True)
    why: dict[int, str] = {}
    for diagnostic in (*problems, *check(module)):
        if diagnostic.severity is Severity.ERROR and diagnostic.line in case_of_line:
            why.setdefault(case_of_line[diagnostic.line], f"{diagnostic.code} {diagnostic.message}")
    return {case: why.get(index) for index, case in enumerate(cases)}


def report(mutants: Sequence[Mutant], show: int, least: float = 0.99, least_in_stratum: float = 0.95) -> bool:
    """Print the agreement; return whether it suffices."""
    ours = our_verdicts([mutant.case for mutant in mutants])
    theirs = dict(verdicts([mutant.case for mutant in mutants]))
    totals, differing, rejections = Counter[str](), Counter[str](), 0
    for mutant in mutants:
        totals[mutant.stratum] += 1
        mine, judge = ours[mutant.case], theirs[mutant.case]
        rejections += judge is not None
        if (mine is None) != (judge is None):
            differing[mutant.stratum] += 1
            if sum(differing.values()) <= show:
                header = f"{mutant.case.target} {mutant.case.version[0]}.{mutant.case.version[1]}"
                print(f"{mutant.stratum:9} {mutant.case.text[:140]}  [{header}]\n    ptxas: {judge}\n    check: {mine}")
    good = True
    for stratum in totals:
        share = 1 - differing[stratum] / totals[stratum]
        good &= share >= least_in_stratum
        print(f"{stratum:10} {totals[stratum]:6} mutants, {differing[stratum]:5} disagreements, agreement {share:.2%}")
    share = 1 - sum(differing.values()) / sum(totals.values())
    print(f"{'all':10} {sum(totals.values()):6} mutants, ptxas rejects {rejections}, agreement {share:.2%}")
    return good and share >= least


def main() -> int:
    """Run the audit."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--stratum", choices=STRATA)
    options.add_argument("--opcode", action="append", default=[])
    options.add_argument("--show", type=int, default=40)
    arguments = options.parse_args()
    source = Source(arguments.seed, arguments.opcode)
    strata = [arguments.stratum] if arguments.stratum else list(STRATA)
    mutants: dict[Case, Mutant] = {}
    for attempt in range(20 * arguments.count):
        mutant = source.mutant(strata[attempt % len(strata)])
        mutants.setdefault(mutant.case, mutant)
        if len(mutants) == arguments.count:
            break
    return 0 if report(list(mutants.values()), arguments.show) else 1


if __name__ == "__main__":
    sys.exit(main())
