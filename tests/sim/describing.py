"""Everything that a run shows, as text: findings or the error, statistics, timeline and outputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from pyptx.diagnostics import PtxError
from pyptx.sim import Hang, Result
from pyptx.sim.observers.timeline import Stopped, Timeline
from pyptx.sim.observers.timeline.page import make_payload


def describe_result(result: Result, outputs: Iterable[NDArray[Any]]) -> str:
    """Return the findings, statistics and timeline of a run, and digests of its outputs."""
    statistics, timeline = result.stats.statistics, result.timeline
    assert statistics is not None
    assert timeline is not None
    findings = sorted(
        "\n".join([str(item), *item.notes, json.dumps(finding.as_json())])
        for finding in result.hazards
        for item in [finding.diagnostic()]
    )
    digests = [hashlib.sha256(output.tobytes()).hexdigest() for output in outputs]
    data = json.dumps(statistics.as_json())
    return "\n".join([*findings, str(statistics), data, describe_timeline(timeline), *digests])


def describe_error(error: PtxError) -> str:
    """Return an error, and what a hang or a stopped run reports."""
    parts = [str(error)]
    if isinstance(error, Hang):
        parts.append(json.dumps(error.report.as_json()))
    if isinstance(error, Stopped):
        parts.append(describe_timeline(error.timeline))
    return "\n".join(parts)


def describe_timeline(timeline: Timeline) -> str:
    """Return everything that a timeline, its trace and its page show."""
    page = make_payload(timeline.recorded, timeline.hazards, timeline.marks, timeline.errors)
    return f"{timeline}\n{json.dumps([timeline.perfetto(), page])}"
