"""The user's cache, and folders that only the user can write: what is in them is executed."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Untrusted(Exception):
    """A folder of programs that another user could have written."""


def find_cache() -> Path:
    """Return the user's cache folder for this package."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pyptx"


def make_private(folder: Path) -> Path:
    """Return a folder, created if needed, that only this user can write. Raise Untrusted for any other."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not is_private(folder.stat()):
        raise Untrusted(f"{folder} belongs to another user or is writable by others: remove it")
    return folder


def is_private(status: os.stat_result) -> bool:
    """Return whether nobody but this user and root can write a file or folder."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
