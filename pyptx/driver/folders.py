"""Temporary folders that outlive no process for long: the next one removes those of processes that were killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_NEW_SECONDS = 60
"""How long folders may take to be locked."""


@contextmanager
def open_folder(prefix: str, parent: Path) -> Generator[Path]:
    """Make a folder, and remove those with the same prefix of processes that were killed: a process locks its folder,
    and the system unlocks it when the process ends."""
    for path in parent.glob(f"{prefix}*"):
        # A process may be about to lock a new folder.
        with suppress(OSError):
            status = path.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > _NEW_SECONDS:
                _remove_unlocked(path)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=parent) as name, ExitStack() as stack:
        # Where folders cannot be locked, none is removed either.
        with suppress(OSError):
            stack.enter_context(_open_locked(Path(name)))
        yield Path(name)


def _remove_unlocked(path: Path) -> None:
    with _open_locked(path):
        shutil.rmtree(path)


@contextmanager
def _open_locked(path: Path) -> Generator[None]:
    """Lock a folder. Raise OSError if another process has locked it, or locks do not exist there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
