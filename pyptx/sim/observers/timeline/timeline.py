"""The public interface of a record: `result.timeline`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyptx.diagnostics import Diagnostic, PtxError, format_count
from pyptx.sim.hazards import Finding
from pyptx.sim.observers.timeline.records import UNIT, RunRecord
from pyptx.sim.reports.graph import Hang


@dataclass(slots=True)
class Timeline:
    """What every warp and engine of the first CTAs did, in logical time. `hazards` are the findings of the run."""

    recorded: RunRecord
    hazards: Sequence[Finding] = field(default_factory=list[Finding])
    marks: dict[int, dict[str, str]] = field(default_factory=dict[int, dict[str, str]])
    """Statistics beside the lines of the PTX: their names and values."""
    errors: Sequence[Diagnostic] = ()
    """The errors that ended the run, except hazards: a deadlock, an access out of bounds."""

    def __str__(self) -> str:
        record = self.recorded
        counts = {
            "CTA": len(record.ctas), "step": record.end, "run": len(record.runs), "wait": len(record.waits),
            "transfer": len(record.transfers),
        }  # fmt: skip
        return f"{record.kernel}: {', '.join(format_count(noun, count) for noun, count in counts.items())} ({UNIT})"

    def save(self, path: str | Path) -> None:
        """Write the page (`.html`) or the trace for Perfetto and Chrome (`.json`)."""
        target = Path(path)
        kinds = {".html": self.html, ".htm": self.html, ".json": self._dump_json}
        if target.suffix not in kinds:
            raise ValueError(f"{target}: expected a name that ends in .html or .json")
        target.write_text(kinds[target.suffix](), "utf-8")

    def perfetto(self) -> dict[str, Any]:
        """Return the trace in Chrome's trace event format, which Perfetto opens."""
        from pyptx.sim.observers.timeline.perfetto import make_trace

        return make_trace(self.recorded, self.hazards)

    def html(self) -> str:
        """Return one self-contained page."""
        from pyptx.sim.observers.timeline.page import write_page

        return write_page(self.recorded, self.hazards, self.marks, self.errors)

    def frame(self, height: int = 600) -> str:
        """Return the page in a frame, for another page or a notebook."""
        from html import escape

        style = f"width:100%;height:{height}px;border:1px solid #8884"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self.html())}"></iframe>'

    def _repr_html_(self) -> str:
        return self.frame()

    def _dump_json(self) -> str:
        import json

        return json.dumps(self.perfetto())


class Stopped(PtxError):
    """The error that ended a recorded run; `timeline` ends there."""

    def __init__(self, why: PtxError, timeline: Timeline) -> None:
        super().__init__(why.diagnostics, why.source)
        self.timeline = timeline


class StoppedHang(Stopped, Hang):
    """A hang of a recorded run."""

    def __init__(self, why: Hang, timeline: Timeline) -> None:
        super().__init__(why, timeline)
        self.report = why.report
