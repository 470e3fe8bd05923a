"""What a launch left, and how it is shown: in a line, in words, and as a cell of a notebook."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from pyptx.sim.formats import Array
from pyptx.sim.hazards import Finding
from pyptx.sim.hazards.findings import by_cause
from pyptx.sim.machine import Stats
from pyptx.sim.timeline import Timeline
from pyptx.sim.watching import Change

_MOST_PRINTED = 2000


@dataclass(slots=True, repr=False)
class Result:
    """What a launch left: the arrays it was given (updated in place), what it printed, and counts."""

    outputs: dict[str, Array]
    stats: Stats
    printed: str = ""
    hazards: list[Finding] = field(default_factory=list[Finding])
    timeline: Timeline | None = None
    watched: list[Change] = field(default_factory=list[Change])

    def __repr__(self) -> str:
        return f"<{', '.join(self._parts())}>"

    def __str__(self) -> str:
        """Return counts and arrays in a line, then the findings as the command line prints them."""
        return "\n".join([", ".join(self._parts()), *map(str, by_cause(self.hazards))])

    def _repr_html_(self) -> str:
        """Return the cell of a notebook: the findings, what was printed, and the timeline if one was recorded."""
        shown = [f"<p>{html.escape(', '.join(self._parts()))}</p>"]
        shown += [f"<pre>{html.escape(str(finding))}</pre>" for finding in by_cause(self.hazards)]
        if self.printed:
            more = (
                f"\n… {len(self.printed) - _MOST_PRINTED} more characters" if len(self.printed) > _MOST_PRINTED else ""
            )
            shown.append(f"<pre>{html.escape(self.printed[:_MOST_PRINTED] + more)}</pre>")
        if self.timeline is not None:
            shown.append(self.timeline.frame())
        return "".join(shown)

    def _parts(self) -> list[str]:
        arrays = [f"{name} {array.dtype}{list(array.shape)}" for name, array in self.outputs.items()]
        counted = f"{self.stats.lanes} threads, {self.stats.lane_instructions} instructions"
        count = len(by_cause(self.hazards))
        found = f"{count} hazard{'' if count == 1 else 's'}"
        codes = ", ".join(dict.fromkeys(finding.rule.code for finding in self.hazards))
        return [f"result: {counted}", f"{found} ({codes})" if codes else found, *arrays]
