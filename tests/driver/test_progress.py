"""Lines about launches that take long."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from pyptx.driver import progress


class Screen(io.StringIO):
    """A stream that tells when it has three lines."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal, self.is_full = is_terminal, threading.Event()

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        size = super().write(text)
        if self.getvalue().count("\n") >= 3:
            self.is_full.set()
        return size


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_long_launch_is_named_at_growing_intervals(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_FIRST", 0.01)
    monkeypatch.setattr(progress, "_STEP", 0.01)
    with progress.announce("`gemm`, grid (32, 4, 1)\x1b"):
        assert screen.is_full.wait(60)
        assert vars(progress)["_CLOCK"].due >= 0.01 * 2**3
    lines = screen.getvalue().splitlines()
    assert lines[0].startswith("pyptx: simulating `gemm`, grid (32, 4, 1)\\x1b: 0")
    assert len(lines) >= 3


def test_a_short_launch_is_not_named_and_its_thread_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, threads = Screen(is_terminal=False), set(threading.enumerate())
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "_STEP", 0.01)
    for _ in range(3):
        with progress.announce("`gemm`"):
            pass
    started = set(threading.enumerate()) - threads
    for thread in started:
        thread.join(60)
    assert not any(thread.is_alive() for thread in started)
    assert not screen.getvalue()
