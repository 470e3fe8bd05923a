"""Transpiles the whole corpus and every legal spelling to Python, runs it, and compares bytes, nodes and vocabulary.

    python -m tools.audit_transpile [--spellings 5000] [FILE …]

Prints, for each producer, how many statements need a layout of their own, and the time per instruction.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from pyptx.codegen import ptx_to_python
from pyptx.ir import Instruction, visit
from pyptx.isa import lookup, table
from pyptx.parser import parse
from tests.codegen.transcripts import module_of, problem
from tools.isa.audit_spellings import cases, cases_of
from tools.isa.ptxas import Case

CORPUS = Path(__file__).parent.parent / "tests" / "corpus"
_PER_MODULE = 400


def main() -> int:
    """Run the audit; exit 1 if anything differs."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", type=Path, help="PTX files instead of the corpus")
    options.add_argument("--spellings", type=int, help="try only this many legal spellings, chosen by --seed")
    options.add_argument("--seed", type=int, default=0)
    arguments = options.parse_args()
    wrong = corpus(arguments.files or sorted(CORPUS.glob("*/*.ptx")))
    if not arguments.files:
        wrong += spellings(arguments.spellings, arguments.seed)
    return 1 if wrong else 0


def corpus(files: Sequence[Path]) -> int:
    """Check files, print a line per producer, and return how many differ."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in files:
        text = path.read_bytes().decode()
        producer = path.parent.name
        for key, value in _measure_file(text).items():
            counts[producer][key] += value
            counts["all"][key] += value
        why = problem(text)
        for name in (producer, "all"):
            counts[name]["files"] += 1
            counts[name]["wrong"] += why is not None
        if why is not None:
            print(f"{path}: {why}")
    print("producer   files  equal  statements  layouts   share  lines of Python  microseconds per instruction")
    for name, c in counts.items():
        share = 100 * c["layouts"] / max(c["statements"], 1)
        microseconds = [c[key] / max(c["instructions"], 1) / 1000 for key in ("transpiled", "traced")]
        print(
            f"{name:10} {c['files']:5} {c['files'] - c['wrong']:6} {c['statements']:11} {c['layouts']:8} {share:6.2f}% "
            f"{c['lines']:15}  {microseconds[0]:.0f} to transpile, {microseconds[1]:.0f} to run"
        )
    return counts["all"]["wrong"]


def _measure_file(text: str) -> dict[str, int]:
    statements = list(visit(parse(text)))
    start = time.process_time_ns()
    python = ptx_to_python(text)
    transpile_time = time.process_time_ns() - start
    start = time.process_time_ns()
    module_of(python).ptx()
    return {
        "statements": len(statements),
        "instructions": sum(isinstance(node, Instruction) for node in statements),
        "layouts": python.count(".layout("),
        "lines": python.count("\n"),
        "transpiled": transpile_time,
        "traced": time.process_time_ns() - start,
    }


def spellings(sample: int | None, seed: int) -> int:
    """Check legal spellings with all their operand lists; return how many modules differ."""
    wrong = total = 0
    for source, count in modules(sample, seed):
        total += count
        why = problem(source)
        if why is None and "unchecked" in ptx_to_python(source):
            why = "an instruction that ptxas accepts is emitted unchecked"
        if why is not None:
            wrong += 1
            print(f"{source.splitlines()[:2]}: {why}")
    print(f"{total} instructions of the table with all their operand lists, {wrong} modules differ")
    return wrong


def modules(sample: int | None, seed: int) -> Iterator[tuple[str, int]]:
    """Yield modules of legal instructions with their counts: all spellings, or a random sample."""
    population = (
        cases(table.list_all_rows(), below=False) if sample is None else _draw_cases(sample, random.Random(seed))
    )
    groups: defaultdict[tuple[str, tuple[int, int]], list[Case]] = defaultdict(list)
    for case in population:
        groups[case.target, case.version].append(case)
    for (target, version), group in sorted(groups.items()):
        for start in range(0, len(group), _PER_MODULE):
            part = group[start : start + _PER_MODULE]
            head = f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n.entry k()\n{{\n"
            yield head + "".join([f"\t{case.text}\n" for case in part]) + "}\n", len(part)


def _draw_cases(sample: int, draw: random.Random) -> Iterator[Case]:
    """Yield the cases of a number of spellings; all rows of the table are equally likely."""
    rows = table.list_all_rows()
    for _ in range(sample):
        row = draw.choice(rows)
        sequence = draw.choice(lookup.list_sequences(row))
        yield from cases_of(row, tuple([(slot.name, draw.choice(slot.choices)) for slot in sequence]), below=False)


if __name__ == "__main__":
    sys.exit(main())
