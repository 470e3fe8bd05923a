"""Start a program whose CUDA driver is the simulated one, and end it with this process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pyptx
from pyptx.driver.library import find_audit, find_library
from pyptx.driver.settings import LIBRARY, PREFIX, Settings

_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from pyptx.driver.program import run; del sys.path[0]; "
    "run(sys.argv[2:])"
)
"""Runs a Python file with this package, wherever it is."""
_ROOT = str(Path(pyptx.__file__).parent.parent)
_SET_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG, which chooses the signal that a process gets when its parent ends."""


def make_environment(settings: Settings, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a program that finds the simulated driver, in this Python or without one."""
    library = find_library()
    folders = [str(library.parent), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    audit = find_audit() if settings.audit else None
    auditors = [*filter(None, [audit and str(audit), environment.get("LD_AUDIT")])]
    return {
        **environment,
        **settings.to_environment(),
        LIBRARY: str(library),
        PREFIX + "PATH": os.pathsep.join([_ROOT, *filter(None, sys.path)]),
        PREFIX + "LIBPYTHON": str(find_python_library() or ""),
        **({"LD_AUDIT": os.pathsep.join(auditors)} if auditors else {}),
        "LD_LIBRARY_PATH": os.pathsep.join(folders),
        "TRITON_LIBCUDA_PATH": str(library.parent),
    }


def find_python_library() -> Path | None:
    """Return the shared library of this Python, which programs without Python load; None if there is none."""
    folder, name, version = sysconfig.get_config_vars("LIBDIR", "INSTSONAME", "LDVERSION")
    # A Python may have moved since it was built, or be linked statically and bring the library for others.
    folders, names = (str(folder), f"{sys.base_prefix}/lib"), (str(name), f"libpython{version}.so.1.0")
    paths = (Path(folder) / name for folder in folders for name in names if ".so" in name)
    return next((path for path in paths if path.exists()), None)


def run_program(words: Sequence[str], settings: Settings) -> int:
    """Run a program to its end and return its exit status, negative for a signal. A Python file runs in this Python;
    OSError if it cannot be read."""
    command = list(words)
    if words[0].endswith(".py"):
        Path(words[0]).open("rb").close()
        command = [sys.executable, "-c", _START, _ROOT, *words]
    environment, control = make_environment(settings), ctypes.CDLL(None).prctl
    # Only if something kills this process and not the program.
    end_with_parent = partial(control, _SET_DEATH_SIGNAL, signal.SIGKILL)
    with (
        subprocess.Popen(command, env=environment, preexec_fn=end_with_parent) as process,
        forward_signals(process),
    ):
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                # The program decides what to do. A terminal has sent it the signal, too.
                if not _has_terminal():
                    process.send_signal(signal.SIGINT)


@contextmanager
def forward_signals(process: subprocess.Popen[bytes]) -> Generator[None]:
    """End a program with this process, if the system asks this process to end; the program's status is then ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in previous.items():
        # `nohup` ignores the signal for this process and the program.
        if handler != signal.SIG_IGN:
            signal.signal(number, lambda number, frame: process.send_signal(number))
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    """Return whether Control-C in a terminal reaches this process and the program."""
    with suppress(OSError), open("/dev/tty") as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False
