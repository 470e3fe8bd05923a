"""Prints which rows of the instruction table have semantics: `python -m tools.sim_coverage [--list]`.

A row has semantics if every spelling has an operation. Spellings without one need an entry in `REASONS`, which names
their words, their target, and the number of rows it covers.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from pyptx.isa import table
from pyptx.isa.lookup import match_of, spellings
from pyptx.isa.model import Form, Match
from pyptx.sim.semantics.reasons import REASONS, Reason
from pyptx.sim.semantics.registry import find_operation, find_section


def missing(row: Form) -> Iterator[Match]:
    """Yield the spellings of a row that have no operation."""
    for binding in spellings(row):
        match = match_of(row, binding)
        if any(find_operation(match, signature) is None for signature in match.signatures):
            yield match


def without() -> Iterator[tuple[Match, Reason | None]]:
    """Yield the reasons why rows lack semantics, each with the first spelling of the row that it covers."""
    for row in table.list_all_rows():
        first: dict[Reason | None, Match] = {}
        for match in missing(row):
            first.setdefault(reason(match), match)
        yield from ((match, why) for why, match in first.items())


def reason(match: Match) -> Reason | None:
    """Return why a spelling has no semantics: the reason with the most words in common."""
    words = {match.form.opcode, *match.modifiers}
    targets = {str(feature) for need in match.needs for feature, _ in need.since}
    fits = [entry for entry in REASONS if entry.target in targets and set(entry.words.split(".")) <= words]
    return max(fits, key=lambda entry: entry.words.count("."), default=None)


def list_miscounts(reasons: Iterable[Reason | None]) -> list[str]:
    """Return the reasons whose number of rows is wrong."""
    rows = Counter(reasons)
    return [
        f"`{entry.words}` on {entry.target} covers {rows[entry]} rows, not {entry.rows}"
        for entry in REASONS
        if rows[entry] != entry.rows
    ]


def spelling(match: Match) -> str:
    """Return a spelling as PTX text."""
    return ".".join((match.form.opcode, *match.modifiers))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every row without semantics")
    options = parser.parse_args()
    lacking = list(without())
    rows = Counter(find_section(row) for row in table.list_all_rows())
    bad = Counter(find_section(row) for row in {match.form for match, _ in lacking})
    print(f"{'table file':22}{'rows':>6}{'with semantics':>16}")
    for name in table.SECTIONS:
        print(f"{name:22}{rows[name]:6}{rows[name] - bad[name]:16}")
    total = sum(rows.values())
    print(f"{'all':22}{total:6}{total - bad.total():16}  {100 * (total - bad.total()) / total:.1f} %")
    for why, count in Counter(entry.why if entry else "NO REASON" for _, entry in lacking).most_common():
        print(f"{count:5} rows: {why}")
    wrong = list_miscounts(entry for _, entry in lacking)
    print("".join(f"{line}\n" for line in wrong), end="")
    if options.list:
        for match, entry in lacking:
            print(f"{find_section(match.form)}: {spelling(match)}: {entry.why if entry else 'NO REASON'}")
    return 1 if wrong or not all(entry for _, entry in lacking) else 0


if __name__ == "__main__":
    sys.exit(main())
