"""A plugin of pytest, loaded wherever this package is installed: `--pyptx-timelines` keeps the timelines of simulated
runs that fail. The findings themselves are the text of the error, which pytest shows with their source lines."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyptx.sim.observers.timeline import Timeline

_UNSAFE = re.compile(r"[^\w.=-]+")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.getgroup("pyptx").addoption(
        "--pyptx-timelines", metavar="DIR", help="write timelines of simulated runs that fail into this directory"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test, with a place for timelines."""
    option: str | None = item.config.getoption("--pyptx-timelines")
    if option is None:
        return (yield)
    from pyptx.testing.matching import keep_timelines

    folder = Path(option)
    folder.mkdir(parents=True, exist_ok=True)
    with keep_timelines(folder):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Save the timeline that the error of a test carries, and name the file in the report."""
    report = yield
    option: str | None = item.config.getoption("--pyptx-timelines")
    timeline: Timeline | None = getattr(call.excinfo.value, "timeline", None) if call.excinfo is not None else None
    if timeline is not None and option is not None:
        file = Path(option) / f"{_UNSAFE.sub('-', item.nodeid)}.html"
        timeline.save(file)
        report.sections.append(("pyptx timeline", str(file)))
    return report
