"""What the statistics and the timeline of each pattern's right version show, whole."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.messages import assert_message
from tests.sim.patterns.cases import CASES
from tests.sim.patterns.planted import patterns

_ORDER = ("ph", "pid", "tid", "ts", "dur", "name", "cat", "id", "bp", "s", "args")


@pytest.mark.parametrize("name", sorted(CASES))
def test_statistics_and_timeline(name: str) -> None:
    case = CASES[name]
    result = sim.run(
        parse(patterns()[name].text), grid=case.grid, block=case.block, cluster=case.cluster, statistics=True,
        timeline=True, args=case.make(np.random.default_rng(0)).args,
    )  # fmt: skip
    assert result.timeline is not None
    assert result.stats.statistics is not None
    assert_message("statistics", name, str(result.stats.statistics))
    events: list[dict[str, Any]] = result.timeline.perfetto()["traceEvents"]
    assert_message("timeline", name, "\n".join([str(result.timeline), *map(_format_event, events)]))


def _format_event(event: dict[str, Any]) -> str:
    assert event.keys() <= set(_ORDER)
    values = (event[key] for key in _ORDER if key in event)
    return " ".join(value if isinstance(value, str) else json.dumps(value) for value in values)
