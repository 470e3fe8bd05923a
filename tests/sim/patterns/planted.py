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
"""What the manual asks for and published kernels do not do; all else is wrong on hardware."""
FOLDER = Path(__file__).parent / "ptx"
_NAME = re.compile(r"//@ (\w+)\s*$")
_CHANGE = re.compile(r"(?:(?P<remove>remove)|(?P<where>before|after) (?P<target>\w+))?\s*(?:as (?P<text>.+))?")
_REPORT = r"PTX\d{4}(?: (?!and\b)\w+)*"
_VERDICT = re.compile(
    rf"(?:ok|(?P<reports>{_REPORT}(?: and {_REPORT})*))(?:; also(?P<also>(?: PTX\d{{4}})+))?(?: \((?P<reason>.+)\))?"
)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a mistake is reported as: a code at lines, or several; and the codes that follow from it."""

    reports: tuple[tuple[str, frozenset[int]], ...]
    also: frozenset[str]
    reason: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """One change of one line, the text of the whole kernel with it, and what it is reported as."""

    name: str
    change: str
    text: str
    expected: Expected


@dataclass(frozen=True, slots=True)
class Pattern:
    """The right version, with its line names, and its mistakes."""

    name: str
    text: str
    lines: dict[str, int]
    mistakes: tuple[Mistake, ...]

    def names(self, lines: frozenset[int]) -> str:
        """Return lines for people: by their names, or by their numbers."""
        known = {line: name for name, line in self.lines.items()}
        return " ".join(known.get(line, f"line {line}") for line in sorted(lines))


@cache
def patterns() -> dict[str, Pattern]:
    """Return every pattern of the folder by its name."""
    return {path.stem: read(path.stem, path.read_text("utf-8")) for path in sorted(FOLDER.glob("*.ptx"))}


def read(name: str, source: str) -> Pattern:
    """Read one pattern. Lines keep their numbers in every version of the text."""
    rows = source.splitlines()
    lines = {found[1]: at for at, row in enumerate(rows, 1) if (found := _NAME.search(row))}
    here, mistakes = 0, list[Mistake]()
    for at, row in enumerate(rows, 1):
        if not row.lstrip().startswith("//!"):
            here = at
            continue
        change, _, verdict = row.strip().removeprefix("//!").strip().rpartition(" => ")
        named = next((known for known, line in lines.items() if line == here), f"line {here}")
        text = "\n".join(_changed(rows, here, lines, change))
        mistakes.append(Mistake(named, change, text, _expected(verdict, lines)))
    return Pattern(name, source, lines, tuple(mistakes))


def _changed(rows: list[str], line: int, lines: dict[str, int], change: str) -> list[str]:
    found = _CHANGE.fullmatch(change)
    assert found is not None, change
    assert change, line
    rows = list(rows)
    # Without its name: a comment would swallow what is put behind it on the line.
    text = found["text"] or _NAME.sub("", rows[line - 1]).strip()
    if not found["where"]:
        rows[line - 1] = "" if found["remove"] else text
        return rows
    rows[line - 1] = ""
    target = lines[found["target"]] - 1
    there = _NAME.sub("", rows[target]).strip()
    rows[target] = f"{text} {there}" if found["where"] == "before" else f"{there} {text}"
    return rows


def _expected(verdict: str, lines: dict[str, int]) -> Expected:
    found = _VERDICT.fullmatch(verdict)
    assert found, verdict
    reports = [one.split() for one in (found["reports"] or "").split(" and ") if one]
    at = tuple((code, frozenset(lines[name] for name in names)) for code, *names in reports)
    return Expected(at, frozenset((found["also"] or "").split()), found["reason"] or "")
