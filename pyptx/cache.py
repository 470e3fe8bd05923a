"""Files in the user's cache that only the user can write, for what takes time to make.

Knows bytes and names, not what they mean. What is cached may be executed, so nothing is read that another user could
have written, or that is damaged. A cache that cannot be used or written costs time and nothing else.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Sequence
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
    if os.path.isabs(base):
        return Path(base, "pyptx")
    try:
        return Path.home() / ".cache" / "pyptx"
    except RuntimeError:
        reason = "no home folder is known: set XDG_CACHE_HOME"
        raise FileNotFoundError(errno.ENOENT, reason, "~/.cache/pyptx") from None


def make_private(*names: str) -> Path:
    """Return a folder in the user's cache: it and those above it, up to the cache, are the user's, and only the user
    can write them. They are created if needed. Raise Untrusted for any other."""
    *above, folder = _list_folders(names)
    for path in above:
        _make(path, repair=True)
    return _make(folder, repair=False)


def _list_folders(names: Sequence[str]) -> list[Path]:
    cache = find_cache()
    return [cache.joinpath(*names[:count]) for count in range(len(names) + 1)]


def _make(folder: Path, *, repair: bool) -> Path:
    """Return a private folder, created with the mode 0700 whatever the umask. `repair`: take the group's right to
    write, which earlier versions gave it. That does for folders that hold only folders: nobody else can have written
    into those."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(0o700)
        folder.chmod(0o700)
    status = folder.stat()
    if repair and status.st_uid == os.getuid() and status.st_mode & stat.S_IWGRP:
        folder.chmod(stat.S_IMODE(status.st_mode) & ~stat.S_IWGRP)
        status = folder.stat()
    if not is_private(status):
        raise Untrusted(f"{folder} belongs to another user or is writable by others: remove it, or set XDG_CACHE_HOME")
    return folder


def is_private(status: os.stat_result) -> bool:
    """Return whether nobody but this user and root can write a file or folder."""
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def explain_problem(name: str) -> str:
    """Return why a store keeps nothing; empty if it can keep files."""
    return f"the environment variable {SWITCH} is 0" if os.environ.get(SWITCH) == "0" else probe(name)


def probe(*names: str) -> str:
    """Return why no file can be written in a folder of the user's cache; empty if one can. A missing folder stays
    missing: the one that it would be created in is tried."""
    try:
        folders = _list_folders(names)
        present = [folders[0], *(folder for folder in folders[1:] if os.path.lexists(folder))]
        for folder in present:
            _make(folder, repair=folder != folders[-1])
    except OSError as why:
        return f"{why.filename}: {why.strerror}"
    except Untrusted as why:
        return str(why)
    try:
        with tempfile.NamedTemporaryFile(suffix=_UNFINISHED, dir=present[-1]) as file:
            file.write(bytes(4096))
    except OSError as why:
        # A full or read-only disk is so for all folders.
        place = folders[0] if why.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) else present[-1]
        return f"{place}: {why.strerror}"
    return ""


def read_private(path: Path) -> bytes | None:
    """Return what a file holds; None if it is missing, a link, or could be another user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with suppress(OSError), open(os.open(path, flags), "rb") as file:
        if is_private(os.fstat(file.fileno())):
            return file.read()
    return None


def write_private(path: Path, data: bytes) -> None:
    """Write a file at once. Only this user can read it."""
    descriptor, new = tempfile.mkstemp(_UNFINISHED, path.name, path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(new, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(new)


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
            return cls(make_private(name), suffix, limit)
        except (OSError, Untrusted):
            return None

    def read(self, name: str) -> bytes | None:
        """Return what a file holds; None if it is missing, damaged, or could be another user's."""
        path = self.folder / f"{name}{self.suffix}"
        data = read_private(path) or b""
        digest, body = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
        if hashlib.sha256(body).digest() != digest:
            return None
        # The files that were used last stay.
        with suppress(OSError):
            os.utime(path)
        return body

    def write(self, name: str, body: bytes) -> None:
        """Write a file at once. One that cannot be written is missing later."""
        with suppress(OSError):
            write_private(self.folder / f"{name}{self.suffix}", hashlib.sha256(body).digest() + body)
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
