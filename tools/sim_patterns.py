"""Plants every mistake in every synchronization pattern and prints what the checker reports.

python -m tools.sim_patterns [PATTERN ...]      prints the matrix and a line per mistake; exits 1 if one is missed.
python -m tools.sim_patterns --kernels          removes each synchronizing statement of the examples and the corpus.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain

from pyptx.parser import parse
from pyptx.sim.rules import RULES
from tests.sim.patterns import kernels
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.needless import NEEDLESS
from tests.sim.patterns.observe import PLAIN, hunt, run, wrong
from tests.sim.patterns.planted import Mistake, Pattern, patterns

SEEDS = 20
EVERY = (*PLAIN, *((name, seed) for name in ("random", "adversarial") for seed in range(SEEDS)))
SEVERITY = {rule.code: rule.severity.value[0].upper() for rule in RULES}
COLUMNS = {
    "barrier": r"bar\.|barrier\.", "fence": r"fence|membar", "init": r"mbarrier\.init", "expect": r".*expect_tx",
    "wait": r".*(try_wait|test_wait|wait_group|wait_all|wait::)|griddepcontrol.wait", "commit": r".*commit",
    "arrive": r".*arrive|griddepcontrol", "flag": r".*(release|acquire|acq_rel|relaxed)|red\.|atom\.",
    "warp": r"setmaxnreg|shfl|vote|elect|redux|tcgen05\.(alloc|dealloc)", "data": r".*",
}  # fmt: skip
"""Columns of the matrix: what the changed line does, by its opcode. The first match counts."""


@dataclass(frozen=True)
class Row:
    """A planted mistake and the result."""

    mistake: Mistake
    column: str
    trouble: str
    finding_names: str
    runs: int


def column(pattern: Pattern, mistake: Mistake) -> str:
    """Return what the changed line does."""
    text = pattern.text.splitlines()[pattern.lines[mistake.name] - 1]
    text = re.sub(r"^\s*(\w+:)?\s*(@!?%\w+\s+)?", "", text)
    return next(name for name, start in COLUMNS.items() if re.match(start, text.split(" ")[0]))


def hunt_mistake(pattern: Pattern, mistake: Mistake) -> Row:
    """Run one mistake until it is reported."""
    runs = hunt(mistake.text, CASES[pattern.name], mistake.expected)
    counts = Counter(
        f"{report.code}{SEVERITY.get(report.code, 'E')} {pattern.names(report.lines)}"
        for execution in runs
        for report in execution.sightings
    )
    trouble = wrong(mistake.expected, runs)
    expectation = {
        f"{code}{SEVERITY.get(code, 'E')} {pattern.names(lines)}" for code, lines in mistake.expected.reports
    }
    first = [text for text in counts if text in expectation] or list(counts)
    return Row(mistake, column(pattern, mistake), trouble, "; ".join(first if not trouble else counts), len(runs))


def clean(pattern: Pattern) -> list[str]:
    """Return the schedules under which the correct version has findings or wrong results."""
    module, failures = parse(pattern.text), list[str]()
    for schedule, seed in EVERY:
        execution = run(module, CASES[pattern.name], schedule, seed)
        if execution.sightings or not execution.right:
            failures.append(
                f"{schedule} {seed}: {sorted(report.code for report in execution.sightings)}, right: {execution.right}"
            )
    return failures


def table(rows: dict[str, list[Row]]) -> list[str]:
    """Return the matrix: how many of the planted mistakes are reported, by the kind of line changed."""
    lines = [f"{'':18}" + "".join(f"{name:>9}" for name in COLUMNS) + f"{'all':>9}"]
    total: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, pattern_rows in rows.items():
        cells: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for row in pattern_rows:
            for key in (row.column, "all"):
                for counts in (cells[key], total[key]):
                    counts[0] += not row.trouble
                    counts[1] += 1
        lines.append(_line(name, cells))
    return [*lines, _line("all", total)]


def _line(name: str, cells: dict[str, list[int]]) -> str:
    texts = (f"{cells[key][0]}/{cells[key][1]}" if key in cells else "" for key in (*COLUMNS, "all"))
    return f"{name:18}" + "".join(f"{cell:>9}" for cell in texts)


def list_mistakes(pattern: Pattern, rows: list[Row]) -> list[str]:
    """Return a line per mistake."""
    lines: list[str] = []
    for row in rows:
        mistake, mark = row.mistake, "MISSED" if row.trouble else "ok"
        lines.append(f"  {mark:6} {mistake.name}: {mistake.change}")
        if row.trouble:
            expectation = (
                " and ".join(f"{code} {pattern.names(place)}" for code, place in mistake.expected.reports) or "nothing"
            )
            lines.append(f"         {row.trouble}; expected {expectation}; found {row.finding_names or 'nothing'}")
        elif not mistake.expected.reports:
            lines.append(f"         nothing to report: {mistake.expected.reason}")
        else:
            reason = f" ({mistake.expected.reason})" if mistake.expected.reason else ""
            lines.append(
                f"         {row.finding_names}{reason}" + (f" [run {row.runs}]" if row.runs > len(PLAIN) else "")
            )
    return lines


def remove_statements(subject: kernels.Subject) -> tuple[list[str], int, int]:
    """Remove each statement of a kernel; return lines, the number of changes, and the number missed."""
    schedules = EVERY if subject.ours else kernels.SCHEDULES
    baseline, wrong = kernels.baseline(subject, schedules)
    # Published kernels may have warnings, since they omit fences, but no errors. Our examples may have neither.
    alarms = [alarm for alarm in sorted(baseline) if subject.ours or SEVERITY.get(alarm[0], "E") == "E"]
    left = Counter[tuple[str, str, str]]()
    lines, total, misses = list[str](), 0, 0
    for change in subject.changes():
        verdict, total = kernels.judge_version(subject, change.text, baseline), total + 1
        name, text = (subject.name, change.statement, change.change), f"{verdict.outcome} [{verdict.schedule}]"
        if not verdict.is_reported:
            left[name] += 1
            needless = left[name] <= NEEDLESS.get(name, (0, ""))[0]
            misses += not needless
            text = f"needless: {NEEDLESS[name][1]}" if needless else f"MISSED: {verdict.outcome}"
        lines.append(f"    {change.line:4} {change.statement}  {change.change}: {text}")
    stale = [f"    no longer needless: {key[1]} {key[2]}" for key in NEEDLESS
             if key[0] == subject.name and left[key] < NEEDLESS[key][0]]  # fmt: skip
    title = (
        f"{subject.name}: unchanged, {len(baseline)} findings and {len(wrong)} wrong results in {len(schedules)} runs"
    )
    title += f"; {total} changes, {sum(left.values()) - misses} needless, {misses} missed"
    warnings = [f"    unchanged, it has {code} {alarm} {two}" for code, alarm, two in sorted(baseline)]
    warnings += [f"    unchanged, its results are wrong under {schedule}" for schedule in wrong]
    return [title, *warnings, *stale, *lines], total, misses + len(stale) + len(alarms) + len(wrong)


def without_statements() -> int:
    """Print the results for the kernels of the examples and of the corpus without each of their statements."""
    subjects = chain(map(kernels.ours, kernels.RUNS), *(kernels.theirs(producer) for producer in kernels.CORPUS))
    results = [remove_statements(subject) for subject in subjects]
    for lines, _, _ in results:
        print("\n".join(lines))
    total, misses = sum(changes for _, changes, _ in results), sum(count for _, _, count in results)
    print(f"{len(results)} kernels, {total} changes: {misses} missed, stale or false")
    return 1 if misses else 0


def main(argv: list[str] | None = None) -> int:
    """Print the matrix of the named patterns, or of all."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="PATTERN", help=", ".join(sorted(CASES)))
    options.add_argument("--kernels", action="store_true", help="use kernels of the examples and the corpus")
    arguments = options.parse_args(argv)
    if arguments.kernels:
        return without_statements()
    names = arguments.names or sorted(CASES)
    start, rows, alarms, text = time.perf_counter(), dict[str, list[Row]](), 0, list[str]()
    for name in names:
        pattern = patterns()[name]
        noise = clean(pattern)
        alarms += len(noise)
        rows[name] = [hunt_mistake(pattern, mistake) for mistake in pattern.mistakes]
        title = next(line for line in pattern.text.splitlines() if line).removeprefix("// ")
        text += ["", f"{name}: {title}", *(f"  NOISE  {line}" for line in noise), *list_mistakes(pattern, rows[name])]
    all_rows = [row for pattern_rows in rows.values() for row in pattern_rows]
    bugs, misses = (
        sum(bool(row.mistake.expected.reports) for row in all_rows),
        sum(bool(row.trouble) for row in all_rows),
    )
    print("\n".join([*table(rows), *text, ""]))
    print(
        f"{len(names)} correct patterns under {len(EVERY)} schedules each: {alarms} runs with findings or wrong results"
    )
    print(f"{len(all_rows)} changes, {bugs} of them mistakes: {misses} missed, misattributed or with false reports")
    print(f"{time.perf_counter() - start:.0f} s", file=sys.stderr)
    return 1 if misses or alarms else 0


if __name__ == "__main__":
    sys.exit(main())
