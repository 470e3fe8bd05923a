"""What was found: two places, the agents, the bytes and the rule; equal findings are one, with a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pyptx.diagnostics import Diagnostic, PtxError, Rule, Severity, render
from pyptx.sim.hazards.events import Place
from pyptx.sim.hazards.rules import REMEDIES


class Cta(int):
    """A CTA's number in its grid. As text it is `(x, y, z)` where the grid has several dimensions."""

    grid: tuple[int, int, int]

    def __new__(cls, number: int, grid: tuple[int, int, int] = (0, 1, 1)) -> Cta:
        made = super().__new__(cls, number)
        made.grid = grid
        return made

    @classmethod
    def at(cls, ctaid: Iterable[int], grid: tuple[int, int, int]) -> Cta:
        """Return the CTA of some coordinates."""
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
    """A lane, or the asynchronous operation that it issued. A lane of -1 means the whole warp."""

    cta: int
    warp: int
    lane: int
    engine: str = ""
    grid: str = ""
    """What the grid is called where there are several."""

    def __str__(self) -> str:
        who = f"CTA {self.cta} warp {self.warp}" + (f" lane {self.lane}" if self.lane >= 0 else "")
        who += f" of `{self.grid}`" if self.grid else ""
        return f"{self.engine} of {who}" if self.engine else who

    def as_json(self) -> dict[str, object]:
        grid = {"grid": self.grid} if self.grid else {}
        return {"cta": self.cta, "warp": self.warp, "lane": self.lane, "engine": self.engine or None, **grid}


@dataclass(slots=True)
class Finding:
    """One hazard. `place` is where it came to light, `other` the earlier access or the barrier's last event."""

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
    """What to do here; what the rule says if empty."""

    @property
    def severity(self) -> Severity:
        return self.rule.severity

    def __str__(self) -> str:
        return str(self.diagnostic())

    def diagnostic(self) -> Diagnostic:
        """Return the finding in the currency of the package."""
        who = [f"by {self.agent}"] if self.agent else []
        if self.other is not None:
            by = f", by {self.other_agent}" if self.other_agent else ""
            who.append(f"the other place: {self.other}{by}")
        notes = [*(["; ".join(who)] if who else []), *self.notes, self.rule.why]
        message = f"{self.rule.title}: {self.what}"
        if self.count > 1:
            message += f" ({self.count} times)"
        return self.rule.found(self.place.origin, message, notes=notes, help=self.help or REMEDIES[self.rule.code])

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
                "line": first.line if first else 0,
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
    _found: dict[_Key, Finding] = field(default_factory=dict["_Key", Finding])

    def add(self, finding: Finding) -> None:
        """Keep a finding, or count it when its rule, both places and their grids are known already."""
        grids = (finding.agent.grid if finding.agent else "", finding.other_agent.grid if finding.other_agent else "")
        what = "" if finding.agent else finding.where
        key = finding.rule.code, finding.place, finding.other, *grids, what
        known = self._found.get(key)
        if known is not None:
            known.count += finding.count
        elif len(self._found) < self.limit:
            self._found[key] = finding

    def __iter__(self) -> Iterator[Finding]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self if finding.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self if finding.severity is Severity.WARNING]

    def raise_for(self, *, strict: bool = False, source: str | None = None) -> None:
        """Raise PtxError when there is an error or, if strict, any finding."""
        found = list(self) if strict else self.errors
        if found:
            raise PtxError((finding.diagnostic() for finding in found), source)


def show(findings: Iterable[Finding], source: str | None = None, *, colour: bool = False) -> str:
    """Render findings for people."""
    return render((finding.diagnostic() for finding in findings), source, colour=colour)
