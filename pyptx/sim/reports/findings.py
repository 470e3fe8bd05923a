"""Findings: two places, the agents, the bytes and the rule; equal findings are one, with a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from pyptx.diagnostics import Diagnostic, Rule, Severity, render
from pyptx.sim.base.events import Place
from pyptx.sim.rules import REMEDIES


class Cta(int):
    """A CTA's number in its grid. As text it is `(x, y, z)` if the grid has several dimensions."""

    grid: tuple[int, int, int]

    def __new__(cls, number: int, grid: tuple[int, int, int] = (0, 1, 1)) -> Cta:
        cta = super().__new__(cls, number)
        cta.grid = grid
        return cta

    @classmethod
    def from_ctaid(cls, ctaid: Iterable[int], grid: tuple[int, int, int]) -> Cta:
        """Return the CTA at these coordinates."""
        x, y, z = (int(value) for value in ctaid)
        return cls(x + grid[0] * (y + grid[1] * z), grid)

    def __str__(self) -> str:
        width, height, depth = self.grid
        if height == depth == 1:
            return int.__repr__(self)
        return f"({self % width}, {self // width % height}, {self // (width * height)})"

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class Agent:
    """A lane, or the asynchronous operation that it issued. Lane -1 means the whole warp."""

    cta: int
    warp: int
    lane: int
    engine: str = ""
    grid: str = ""
    """The name of the grid if there are several."""

    def __str__(self) -> str:
        text = f"CTA {self.cta} warp {self.warp}" + (f" lane {self.lane}" if self.lane >= 0 else "")
        text += f" of `{self.grid}`" if self.grid else ""
        return f"{self.engine} of {text}" if self.engine else text

    def as_json(self) -> dict[str, object]:
        grid = {"grid": self.grid} if self.grid else {}
        return {"cta": self.cta, "warp": self.warp, "lane": self.lane, "engine": self.engine or None, **grid}


@dataclass(slots=True, repr=False)
class Finding:
    """One hazard. `place` is where it was detected, `other` the earlier access or the barrier's last event."""

    rule: Rule
    place: Place
    agent: Agent | None
    what: str
    other: Place | None = None
    other_agent: Agent | None = None
    where: str = ""
    notes: tuple[str, ...] = ()
    count: int = 1
    help: str = ""
    """The remedy here; that of the rule if empty."""
    source: str | None = None
    """The text that contains the places."""
    details: tuple[str, ...] = ()
    """Lines after the remedy."""

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    @property
    def agents_grids(self) -> tuple[str, str]:
        """The names of the grids involved."""
        return self.agent.grid if self.agent else "", self.other_agent.grid if self.other_agent else ""

    def __str__(self) -> str:
        """Return the finding as the command line prints it, with the source lines of both places."""
        return render([self.diagnostic()], self.source)

    def __repr__(self) -> str:
        other_place = f", other place {self.other}" if self.other else ""
        times = _format_times(self.count)
        return f"<{self.severity} {self.rule.code} ({self.rule.title}) at {self.place}{other_place}, {times}>"

    def diagnostic(self) -> Diagnostic:
        """Return the finding as a `Diagnostic`."""
        agents = [f"{'first by' if self.count > 1 else 'by'} {self.agent}"] if self.agent else []
        if self.other is not None:
            by = f", by {self.other_agent}" if self.other_agent else ""
            agents.append(f"the other place: {self.other}{by}")
        notes = [*(["; ".join(agents)] if agents else []), *self.notes, self.rule.why]
        message = f"{self.rule.title}: {self.what}"
        if self.count > 1 and self.agent:
            message += f" ({_format_times(self.count)})"
        help, other_origin = self.help or REMEDIES[self.rule.code], self.other.origin if self.other else None
        result = self.rule.report(self.place.origin, message, notes=notes, help=help, other=other_origin)
        return replace(result, details=self.details)

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        first = self.other.origin if self.other else None
        return {
            **self.diagnostic().as_json(),
            "instruction": self.place.text,
            "agent": self.agent.as_json() if self.agent else None,
            "other": {
                "instruction": self.other.text,
                "file": first.file if first else None,
                "line": self.other.line,
                "agent": self.other_agent.as_json() if self.other_agent else None,
            }
            if self.other
            else None,
            "where": self.where,
            "count": self.count,
        }


_Key = tuple[str, Place, Place | None, str, str, str]


@dataclass(slots=True)
class Ledger:
    """All findings of a run, in order of appearance."""

    limit: int = 1000
    _findings: dict[_Key, Finding] = field(default_factory=dict["_Key", Finding])

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it if its rule, both places and their grids are already known."""
        location = "" if finding.agent else finding.where
        key = finding.rule.code, finding.place, finding.other, *finding.agents_grids, location
        previous = self._findings.get(key)
        if previous is not None:
            previous.count += finding.count
        elif len(self._findings) < self.limit:
            self._findings[key] = finding

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._findings.values())

    def __len__(self) -> int:
        return len(self._findings)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self if finding.severity is Severity.WARNING]


def _format_times(count: int) -> str:
    return f"{count} times" if count > 1 else "once"


_MOST_LISTED = 8


def group_by_cause(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding for each cause, in order of appearance. Findings of one rule have one cause if one point of
    the program is between the two places of each, where a barrier or fence is missing: keep the first, with a note."""
    groups: dict[object, list[_Cause]] = {}
    causes: list[_Cause] = []
    for finding in findings:
        new_cause = _Cause.from_finding(finding)
        candidates = groups.setdefault(new_cause.key, [])
        if not any(cause.absorb(new_cause) for cause in candidates):
            candidates.append(new_cause)
            causes.append(new_cause)
    return [_merge_findings(cause.findings) for cause in causes]


_Point = tuple[int, ...]
"""A line and column, empty if unknown."""


@dataclass(slots=True)
class _Cause:
    """Findings of one cause, and the part of the program that contains it: from `first` to `last`."""

    key: object
    findings: list[Finding]
    first: _Point
    last: _Point

    @classmethod
    def from_finding(cls, finding: Finding) -> _Cause:
        origin, other_origin = finding.place.origin, finding.other.origin if finding.other else None
        if origin is None or other_origin is None:
            return cls(id(finding), [finding], (), ())
        first, last = (other_origin.line, other_origin.col), (origin.line, origin.col)
        # In a loop, the missing point is before one place and after the other.
        around = last <= first
        location = origin.file if origin.file == other_origin.file else finding.place
        key = finding.rule.code, location, around, finding.agents_grids
        return cls(key, [finding], *((last, first) if around else (first, last)))

    def absorb(self, cause: _Cause) -> bool:
        """Add findings if the two parts overlap; tell whether they do."""
        first, last = max(self.first, cause.first), min(self.last, cause.last)
        if first > last:
            return False
        self.findings += cause.findings
        self.first, self.last = first, last
        return True


def _merge_findings(group: Sequence[Finding]) -> Finding:
    """Return the first finding of a cause, with a note that lists the others."""
    first = group[0]
    if len(group) == 1:
        return first
    pairs = [f"line {finding.place.line} after line {finding.other.line}" for finding in group[1:] if finding.other]
    suffix = f" and {len(pairs) - _MOST_LISTED} more" if len(pairs) > _MOST_LISTED else ""
    pairs_of = "pair" if len(pairs) == 1 else "pairs"
    note = f"also at {len(pairs)} more {pairs_of} of places: {', '.join(pairs[:_MOST_LISTED])}{suffix}"
    return replace(first, notes=(*first.notes, note), count=sum(finding.count for finding in group))


def show(findings: Iterable[Finding], source: str | None = None, *, colour: bool = False) -> str:
    """Render findings as text."""
    return render((finding.diagnostic() for finding in findings), source, colour=colour)
