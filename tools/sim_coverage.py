"""Says which rows of the instruction table have semantics: `python -m tools.sim_coverage [--list]`.

A row counts when every spelling has an operation. Rows without one need an entry in `REASONS`, by table file or by the
start of the spelling.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator

from pyptx.isa import table
from pyptx.isa.lookup import match_of, spellings
from pyptx.isa.model import Form
from pyptx.sim.semantics.reasons import REASONS
from pyptx.sim.semantics.registry import operation, section


def missing(row: Form) -> Iterator[str]:
    """Yield the spellings of a row that have no operation."""
    for bound in spellings(row):
        match = match_of(row, bound)
        if any(operation(match, signature) is None for signature in match.signatures):
            yield ".".join((row.opcode, *match.modifiers))


def without() -> Iterator[tuple[str, str, str | None]]:
    """Yield the table file of each row that lacks semantics for a spelling, that spelling, and the reason given."""
    for row in table.all_rows():
        lacks = next(missing(row), None)
        if lacks is not None:
            yield section(row), lacks, reason(row, lacks)


def reason(row: Form, spelling: str) -> str | None:
    """Return why a spelling has no semantics: by table file, or by the longest prefix of the spelling."""
    words = spelling.split(".")
    for length in range(len(words), 0, -1):
        found = REASONS.get(".".join(words[:length]))
        if found is not None:
            return found
    return REASONS.get(section(row))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="print every row without semantics")
    options = parser.parse_args()
    lacking = list(without())
    rows = Counter(section(row) for row in table.all_rows())
    bad = Counter(name for name, _, _ in lacking)
    print(f"{'table file':22}{'rows':>6}{'with semantics':>16}")
    for name in table.SECTIONS:
        print(f"{name:22}{rows[name]:6}{rows[name] - bad[name]:16}")
    total = sum(rows.values())
    print(f"{'all':22}{total:6}{total - len(lacking):16}  {100 * (total - len(lacking)) / total:.1f} %")
    for why, count in Counter(why or "NO REASON" for _, _, why in lacking).most_common():
        print(f"{count:5} rows: {why}")
    if options.list:
        for name, spelling, why in lacking:
            print(f"{name}: {spelling}: {why}")
    return 0 if all(why for _, _, why in lacking) else 1


if __name__ == "__main__":
    sys.exit(main())
