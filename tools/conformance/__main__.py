"""Runs every form that works on registers and compares the bits: `python -m tools.conformance [--gpu] [--opcode add]`.

Compares the simulator with the scalar `references` beside this file, where a form has one, or with `--gpu` with the GPU
of this machine. Approximations must be within the manual's error bound (`bounded`). Prints a line per opcode and exits
1 if anything differs.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from tools.conformance import device, memory_forms, simulated
from tools.conformance.agreement import Agreement, compare, judged
from tools.conformance.forms import SECTIONS, Case, cases
from tools.conformance.memory_forms import memory_cases
from tools.conformance.references import reference
from tools.conformance.references.bounded import judge


def main(argv: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--section", action="append", choices=sorted({*SECTIONS, *memory_forms.SECTIONS}))
    options.add_argument("--opcode", action="append")
    options.add_argument("--sample", type=int, help="try only this many forms, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--gpu", action="store_true", help="compare with the GPU of this machine")
    options.add_argument("--show", type=int, default=20, help="how many of the forms that differ to print")
    given = options.parse_args(argv)
    gpu = None
    if given.gpu:
        try:
            gpu = device.Gpu()
        except device.NoGpuError as why:
            print(why, file=sys.stderr)
            return 1
        print(gpu.describe())
    arch = gpu.target if gpu else "sm_90a"
    chosen = given.section or [*SECTIONS, *memory_forms.SECTIONS]
    tried = [*cases([name for name in SECTIONS if name in chosen], arch),
             *memory_cases([name for name in memory_forms.SECTIONS if name in chosen], arch)]  # fmt: skip
    tried = [case for case in tried if not given.opcode or case.opcode in given.opcode]
    if given.sample and given.sample < len(tried):
        tried = random.Random(given.seed).sample(tried, given.sample)
    if gpu:
        compared = list(_with_device(gpu, tried, given.seed))
    else:
        compared = list(_with_references(tried, given.seed))
    return report(tried, compared, given.show)


def _with_device(gpu: device.Gpu, tried: list[Case], seed: int) -> Iterable[tuple[Case, Agreement]]:
    found = dict(device.run(gpu, tried, seed))
    mine = [case for case in tried if case in found]
    for case, operands, results in simulated.run(mine, seed):
        right = judge(case, operands, found[case])
        if right is not None and not isinstance(results, Exception):
            yield case, judged(case, operands, found[case], right)
        else:
            yield case, compare(case, operands, results, found[case])


def _with_references(tried: list[Case], seed: int) -> Iterable[tuple[Case, Agreement]]:
    for case, operands, results in simulated.run(tried, seed):
        right = None if isinstance(results, Exception) else judge(case, operands, results)
        if right is not None and not isinstance(results, Exception):
            yield case, judged(case, operands, results, right)
            continue
        wanted = reference(case, operands)
        if wanted is not None or isinstance(results, Exception):
            yield case, compare(case, operands, results, wanted)


def report(tried: list[Case], compared: list[tuple[Case, Agreement]], show: int) -> int:
    """Print counts per opcode and examples of differences."""
    forms = Counter(case.opcode for case in tried)
    by_opcode: defaultdict[str, list[Agreement]] = defaultdict(list)
    for case, agreement in compared:
        by_opcode[case.opcode].append(agreement)
    heads = ("forms", "missing", "compared", "bounded", "tuples", "differing", "payloads")
    print(f"{'opcode':<14}" + "".join(f"{head:>10}" for head in heads))
    for opcode, count in sorted(forms.items()):
        lacking = sum(a.lacking for a in by_opcode[opcode])
        found = [a for a in by_opcode[opcode] if not a.lacking]
        sums = [sum(getattr(a, name) for a in found) for name in ("tuples", "differing", "payloads")]
        columns = (count, lacking, len(found), sum(a.bounded for a in found), *sums)
        print(f"{opcode:<14}" + "".join(f"{number:>10}" for number in columns))
    everything = [a for found in by_opcode.values() for a in found if not a.lacking]
    differing = sum(a.differing for a in everything)
    tuples = sum(a.tuples for a in everything)
    bounded = sum(a.bounded for a in everything)
    print(
        f"{len(tried)} forms, {len(everything)} compared, {bounded} with a bound, {tuples} tuples, {differing} differ"
    )
    for agreement in [a for a in everything if a.differing][:show]:
        print(f"  {agreement.differing} of {agreement.tuples}: {agreement.example}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
