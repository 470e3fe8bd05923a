"""Reads a pattern: PTX whose lines have names, the mistakes that can be planted in it, and what each is reported as.

`//@ NAME` names a line. A line `//! CHANGE => VERDICT` below it plants a mistake there. Changes: `remove`, `as TEXT`,
`before NAME`, `after NAME` (the last two may go on with `as TEXT`). A verdict is a code and the names of the lines that
the finding must name, others after `and`, then `; also` the codes that come with it: all of them, and no others. Or
`ok (why)`: nothing to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

WARNINGS = {
    "PTX0922": "cp.async data read by the async proxy: published main loops leave the fence out",
    "PTX0923": "a generic read before a bulk load: loops fed by ldmatrix leave the fence out",
    "PTX0924": "results of a bulk store read asynchronously by another CTA: the fence is asked for, nobody writes it",
    "PTX0937": "tcgen05 handed over by acquire and release: the thread-sync fences assemble to nothing",
    "PTX0948": "hardware ignores which quarter of tensor memory an address names: published kernels rely on it",
    "PTX0957": "phases that nobody observed",
    "PTX0963": "bar.warp.sync that includes exited lanes: the manual does not say",
    "PTX0974": "setmaxnreg that asks for the count there is: Triton repeats it without a barrier",
    "PTX0983": "the last bulk store still reads at the end of its CTA",
}
"""Rules of the manual that published kernels break; all other mistakes fail on hardware."""
FOLDER = Path(__file__).parent / "ptx"
_NAME = re.compile(r"//@ (\w+)\s*$")
_CHANGE = re.compile(r"(?:(?P<remove>remove)|(?P<where>before|after) (?P<target>\w+))?\s*(?:as (?P<text>.+))?")
_REPORT = r"PTX\d{4}(?: (?!and\b)\w+)*"
_VERDICT = re.compile(
    rf"(?:ok|(?P<reports>{_REPORT}(?: and {_REPORT})*))(?:; also(?P<also>(?: PTX\d{{4}})+))?(?: \((?P<reason>.+)\))?"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected reports of a mistake: one or several codes at lines, and the codes that follow from them."""

    reports: tuple[tuple[str, frozenset[int]], ...]
    also: frozenset[str]
    reason: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """One change of one line, the text of the whole kernel with it, and its expected reports."""

    name: str
    change: str
    text: str
    expected: Expected


@dataclass(frozen=True, slots=True)
class Pattern:
    """The correct version, with its line names, and its mistakes."""

    name: str
    text: str
    lines: dict[str, int]
    mistakes: tuple[Mistake, ...]

    def names(self, lines: frozenset[int]) -> str:
        """Return lines by their names, or by their numbers if they have none."""
        name_of_line = {line: name for name, line in self.lines.items()}
        return " ".join(name_of_line.get(line, f"line {line}") for line in sorted(lines))


@cache
def patterns() -> dict[str, Pattern]:
    """Return every pattern of the folder by its name."""
    return {path.stem: read(path.stem, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.ptx"))}


def read(name: str, source: str) -> Pattern:
    """Read one pattern. Lines keep their numbers in every version of the text."""
    rows = source.splitlines()
    lines = {match[1]: index for index, row in enumerate(rows, 1) if (match := _NAME.search(row))}
    current, mistakes = 0, list[Mistake]()
    for index, row in enumerate(rows, 1):
        if not row.lstrip().startswith("//!"):
            current = index
            continue
        change, _, verdict = row.strip().removeprefix("//!").strip().rpartition(" => ")
        mistake_name = next((label for label, line in lines.items() if line == current), f"line {current}")
        text = "\n".join(_change_rows(rows, current, lines, change))
        mistakes.append(Mistake(mistake_name, change, text, _expected(verdict, lines)))
    return Pattern(name, source, lines, tuple(mistakes))


def _change_rows(rows: list[str], line: int, lines: dict[str, int], change: str) -> list[str]:
    match = _CHANGE.fullmatch(change)
    assert match is not None, change
    assert change, line
    rows = list(rows)
    # Without its name: a comment would hide text inserted after it on the line.
    text = match["text"] or _NAME.sub("", rows[line - 1]).strip()
    if not match["where"]:
        rows[line - 1] = "" if match["remove"] else text
        return rows
    rows[line - 1] = ""
    target = lines[match["target"]] - 1
    neighbor = _NAME.sub("", rows[target]).strip()
    rows[target] = f"{text} {neighbor}" if match["where"] == "before" else f"{neighbor} {text}"
    return rows


def _expected(verdict: str, lines: dict[str, int]) -> Expected:
    match = _VERDICT.fullmatch(verdict)
    assert match, verdict
    reports = [report.split() for report in (match["reports"] or "").split(" and ") if report]
    index = tuple((code, frozenset(lines[name] for name in names)) for code, *names in reports)
    return Expected(index, frozenset((match["also"] or "").split()), match["reason"] or "")
