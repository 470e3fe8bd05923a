"""What is wrong with work of a program: printed when it is new, and recorded for the reports."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyptx.diagnostics import Diagnostic, PtxError, escape_unprintable
from pyptx.driver.demangling import list_names, replace_names
from pyptx.driver.reports import Record, make_key

if TYPE_CHECKING:
    from pyptx.driver.process import Driver


def report(driver: Driver, title: str, record: Record, diagnostics: Sequence[Diagnostic], source: str | None) -> None:
    """Print what is new, after a line with the title, and keep the record, which already has the diagnostics, with the
    names of C++ in them."""
    names = record["names"] = {**record.get("names", {}), **list_names([title, *map(str, diagnostics)])}
    news: list[Diagnostic] = []
    for item, entry in zip(diagnostics, record["diagnostics"], strict=True):
        key = make_key(record, entry)
        if key not in driver.reported and not (driver.baseline is not None and driver.baseline.knows(record, entry)):
            news.append(item)
        driver.reported.add(key)
    if news:
        sys.stdout.flush()
        text = replace_names(f"pyptx: {title}\n{PtxError(news, source)}\n", names)
        sys.stderr.write(escape_unprintable(text))
        sys.stderr.flush()
    _keep(driver, record)


def begin(driver: Driver, records: Sequence[Record]) -> None:
    """Record launches that run now: the program may end before they do."""
    _keep(driver, {"begins": records})


def _keep(driver: Driver, line: Record) -> None:
    """Write a line of the records."""
    if driver.settings.records:
        if driver.records is None:
            driver.records = (Path(driver.settings.records) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8")
        driver.records.write(json.dumps(line) + "\n")
        driver.records.flush()
