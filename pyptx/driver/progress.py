"""A line now and then about work that takes long, so that nobody takes a simulation for a hang."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from pyptx.diagnostics import escape_unprintable
from pyptx.driver.demangling import list_names, replace_names

_FIRST = 10.0
"""Seconds until the first line; each further one comes when twice the time has passed."""


@contextmanager
def announce(text: str) -> Generator[None]:
    """Say what runs, and for how long, while the block runs."""
    has_ended = threading.Event()
    thread = threading.Thread(target=_repeat, args=(text, has_ended), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # A Python that ends starts no more threads.
        has_ended.set()
    try:
        yield
    finally:
        has_ended.set()


def _repeat(text: str, has_ended: threading.Event) -> None:
    begin, wait = time.monotonic(), _FIRST
    while not has_ended.wait(begin + wait - time.monotonic()):
        line = f"pyptx: simulating {replace_names(text, list_names([text]))}: {wait:.0f} s"
        _write(escape_unprintable(line))
        wait *= 2


def _write(line: str) -> None:
    """Write a line, above the bar of progress on a terminal."""
    if not sys.stderr.isatty():
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
        return
    # Only on a terminal, where the simulator has loaded it, too.
    from tqdm import tqdm

    tqdm.write(line, file=sys.stderr)
