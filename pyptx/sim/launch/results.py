"""The result of a launch, shown as a line, as text, or as a notebook cell."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pyptx.sim.base.formats import Array
from pyptx.sim.execution.machine import Counts
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.checks.choice import CLASSES, Selection
from pyptx.sim.observers.statistics.report import Statistics
from pyptx.sim.observers.timeline import Timeline
from pyptx.sim.observers.watching import Change
from pyptx.sim.reports.findings import group_by_cause
from pyptx.sim.scheduling.schedules import SEEDED

_MOST_PRINTED = 2000
_MOST_NAMED = 3


@dataclass(slots=True)
class Stats(Counts):
    """The counts of a run, and its statistics if requested."""

    statistics: Statistics | None = None
    """The additional counts of `sim.run(statistics=True)`."""

    def __str__(self) -> str:
        counts = f"{self.lanes} threads, {self.instructions} group instructions, {self.lane_instructions} of threads"
        about = f"approximate: {', '.join(sorted(self.approximate))}" if self.approximate else ""
        return "\n".join(part for part in (counts, about, str(self.statistics or "")) if part)

    def as_json(self) -> dict[str, Any]:
        """Return values for JSON."""
        return {
            "instructions": self.instructions, "lane_instructions": self.lane_instructions, "lanes": self.lanes,
            "approximate": sorted(self.approximate),
            **(self.statistics.as_json() if self.statistics is not None else {}),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a run covers: one input, one order of threads, and the checked classes of hazards. `inexact` names the
    instructions whose results may differ from the hardware's in the last bits."""

    schedule: str
    seed: int
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]
    inexact: tuple[str, ...] = ()

    @classmethod
    def from_run(
        cls,
        schedule: str,
        seed: int,
        selection: Selection | None,
        stats: Stats,
        outputs: Sequence[Array] | None = None,
        fresh: Sequence[Array] = (),
    ) -> Coverage:
        """Return the coverage of a run; `selection` is None for an unchecked run. Arrays of `outputs` that are `fresh`
        are always checked for unwritten elements."""
        checks_fresh = bool(fresh) and selection is not None and selection.codes is None
        covers_outputs = (
            checks_fresh and outputs is not None and all(any(output is array for array in fresh) for output in outputs)
        )
        classes = {name for name in CLASSES if selection is not None and selection.covers(name)}
        classes |= {"outputs"} if covers_outputs else set()
        classes_checked = tuple(name for name in CLASSES if name in classes)
        labels = {"outputs": "other outputs"} if checks_fresh else {}
        classes_unchecked = tuple(labels.get(name, name) for name in CLASSES if name not in classes)
        return cls(schedule, seed, classes_checked, classes_unchecked, tuple(sorted(stats.approximate)))

    def describe(self, orders: str = "") -> str:
        """Return the coverage in a line; `orders` describes the orders of several runs."""
        seed = f", seed {self.seed}" if self.schedule in SEEDED else ""
        inexact = ", ".join(self.inexact[:_MOST_NAMED])
        inexact += f" and {len(self.inexact) - _MOST_NAMED} more" if len(self.inexact) > _MOST_NAMED else ""
        parts = [
            f"covers one input in {orders or f'one order (schedule {self.schedule}{seed})'}", self.hazards(),
            "not modeled: timing" + (f", the last bits of {inexact}" if inexact else ""),
        ]  # fmt: skip
        return "; ".join(parts)

    def hazards(self) -> str:
        """Return which hazards were not checked, as text."""
        if not self.checked:
            return "hazards not checked"
        return f"hazards not checked: {', '.join(self.unchecked)}" if self.unchecked else "all hazards checked"

    def __str__(self) -> str:
        return self.describe()


@dataclass(slots=True, repr=False)
class Result:
    """The result of a launch: its array arguments (updated in place), its printed text, findings and counts."""

    outputs: dict[str, Array]
    stats: Stats
    printed: str = ""
    hazards: list[Finding] = field(default_factory=list[Finding])
    timeline: Timeline | None = None
    watched: list[Change] = field(default_factory=list[Change])
    coverage: Coverage | None = None

    def __repr__(self) -> str:
        return f"<{', '.join(self._parts())}>"

    def __str__(self) -> str:
        """Return a line of counts and arrays, the findings as the command line prints them, and the coverage."""
        coverage = [] if self.coverage is None else [str(self.coverage)]
        return "\n".join([", ".join(self._parts()), *map(str, group_by_cause(self.hazards)), *coverage])

    def _repr_html_(self) -> str:
        """Return a notebook cell: the findings, the printed text, and the timeline if one was recorded."""
        parts = [f"<p>{html.escape(', '.join(self._parts()))}</p>"]
        parts += [f"<pre>{html.escape(str(finding))}</pre>" for finding in group_by_cause(self.hazards)]
        if self.coverage is not None:
            parts.append(f"<p>{html.escape(str(self.coverage))}</p>")
        if self.printed:
            suffix = (
                f"\n… {len(self.printed) - _MOST_PRINTED} more characters" if len(self.printed) > _MOST_PRINTED else ""
            )
            parts.append(f"<pre>{html.escape(self.printed[:_MOST_PRINTED] + suffix)}</pre>")
        if self.timeline is not None:
            parts.append(self.timeline.frame())
        return "".join(parts)

    def _parts(self) -> list[str]:
        arrays = [f"{name} {array.dtype}{list(array.shape)}" for name, array in self.outputs.items()]
        counts = f"{self.stats.lanes} threads, {self.stats.lane_instructions} instructions"
        count = len(group_by_cause(self.hazards))
        hazards = f"{count} hazard{'' if count == 1 else 's'}"
        if self.coverage is not None and not self.coverage.checked:
            hazards = self.coverage.hazards()
        codes = ", ".join(dict.fromkeys(finding.rule.code for finding in self.hazards))
        return [f"result: {counts}", f"{hazards} ({codes})" if codes else hazards, *arrays]
