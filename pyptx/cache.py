"""Files in the user's cache that only the user can write, for what takes time to make.

Knows bytes and names, not what they mean. What is cached may be executed, so nothing is read that another user could
have written, or that is damaged. A cache that cannot be used or written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SWITCH = "PYPTX_CACHE"
"""The environment variable that switches caches off, with the value 0."""
_UNFINISHED = ".new"
_DIGEST_SIZE, _OLD_SECONDS = 32, 600


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


def explain_problem(folder: Path) -> str:
    """Return why nothing can be kept in the user's cache folder; empty if it can be."""
    if os.environ.get(SWITCH) == "0":
        return f"the environment variable {SWITCH} is 0"
    try:
        descriptor, path = tempfile.mkstemp(_UNFINISHED, dir=make_private(folder))
        try:
            with open(descriptor, "wb") as file:
                file.write(bytes(4096))
        finally:
            os.unlink(path)
    except OSError as why:
        return f"{why.filename or folder}: {why.strerror}"
    except Untrusted as why:
        return str(why)
    return ""


@dataclass(slots=True)
class Store:
    """The files of a folder: their names end with the suffix. If they exceed the limit, those that were not used for
    the longest time are removed until half of it is left."""

    folder: Path
    suffix: str
    limit: int
    _written: int = 0
    """Bytes since the size of the folder was last measured."""
    _is_measured: bool = False

    @classmethod
    def open(cls, name: str, suffix: str, limit: int) -> Store | None:
        """Return a store in the user's cache, None where there can be none."""
        if os.environ.get(SWITCH) == "0":
            return None
        try:
            return cls(make_private(find_cache() / name), suffix, limit)
        except (OSError, RuntimeError, Untrusted):
            return None

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None if it is missing, damaged, or could be another user's."""
        path = self.folder / f"{name}{self.suffix}"
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        with suppress(OSError), open(os.open(path, flags), "rb") as file:
            data = file.read() if is_private(os.fstat(file.fileno())) else b""
            digest, body = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
            if hashlib.sha256(body).digest() == digest:
                # The files that were used last stay.
                os.utime(path)
                return body
        return None

    def write(self, name: str, body: bytes) -> None:
        """Write a file at once. One that cannot be written is missing later."""
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(_UNFINISHED, name, self.folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                os.replace(path, self.folder / f"{name}{self.suffix}")
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(path)
            self._written += len(body)
            if not self._is_measured or self._written > self.limit // 8:
                self._shrink()

    def _shrink(self) -> None:
        """Remove the oldest files if the folder is too large, and what processes left that were killed."""
        self._is_measured, self._written = True, 0
        files: list[tuple[float, int, str]] = []
        for item in os.scandir(self.folder):
            with suppress(OSError):
                status = item.stat(follow_symlinks=False)
                if not item.name.endswith(_UNFINISHED):
                    files.append((status.st_mtime, status.st_size, item.path))
                elif status.st_mtime < time.time() - _OLD_SECONDS:
                    os.unlink(item.path)
        total = sum(size for _, size, _ in files)
        if total > self.limit:
            for _, size, path in sorted(files):
                if total > self.limit // 2:
                    with suppress(OSError):
                        os.unlink(path)
                    total -= size
