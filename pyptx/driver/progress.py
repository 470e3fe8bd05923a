"""A line now and then about work that takes long, so that nobody takes a simulation for a hang."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pyptx.diagnostics import escape_unprintable
from pyptx.driver.demangling import list_names, replace_names

_FIRST = 10.0
"""Seconds until the first line; each further one comes when twice the time has passed."""
_STEP = 1.0
"""How often the thread looks. It ends when nothing has run since, as processes without threads are easier to fork."""


@dataclass(slots=True)
class _Clock:
    """What runs, since when, when the next line is due, and how often work has begun."""

    text: str = ""
    begin: float = field(init=False)
    due: float = field(init=False)
    count: int = 0
    has_thread: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_CLOCK = _Clock()


@contextmanager
def announce(text: str) -> Generator[None]:
    """Say what runs, and for how long, while the block runs."""
    with _CLOCK.lock:
        _CLOCK.text, _CLOCK.begin, _CLOCK.due = text, time.monotonic(), _FIRST
        _CLOCK.count += 1
        if not _CLOCK.has_thread:
            # A Python that ends starts no more threads.
            with suppress(RuntimeError):
                threading.Thread(target=_watch, daemon=True).start()
                _CLOCK.has_thread = True
    try:
        yield
    finally:
        _CLOCK.text = ""


def _watch() -> None:
    count = 0
    while True:
        time.sleep(_STEP)
        with _CLOCK.lock:
            if not _CLOCK.text and count == _CLOCK.count:
                _CLOCK.has_thread = False
                return
            count, text, due = _CLOCK.count, _CLOCK.text, _CLOCK.due
            is_due = text and time.monotonic() - _CLOCK.begin >= due
            _CLOCK.due *= 2 if is_due else 1
        if is_due:
            _write(escape_unprintable(f"pyptx: simulating {replace_names(text, list_names([text]))}: {due:.0f} s"))


def _write(line: str) -> None:
    """Write a line, above the bar of progress on a terminal."""
    if not sys.stderr.isatty():
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
        return
    # Only on a terminal, where the simulator has loaded it, too.
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)
