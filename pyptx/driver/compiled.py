"""Code that earlier processes compiled from the Python texts of kernels' blocks, in the user's cache.

What is kept is the result of `compile`, under the digest of its whole input: it cannot change what a kernel does. It is
executed, so folders and files that another user could have written are not read, nor files that are damaged.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from types import CodeType

import pyptx
from pyptx.driver.private import Untrusted, find_cache, is_private, make_private

_VERSIONS = f"{pyptx.__version__} {sys.implementation.cache_tag} {MAGIC_NUMBER.hex()} {sys.flags.optimize}"
"""What the format of code depends on. Another version of this package would add other texts to the same files."""
_MOST_BYTES = 1 << 27
"""How large the cache becomes: then, files that were not used for the longest time go until half is left."""
_SUFFIX, _UNFINISHED = ".code", ".new"
_DIGEST_SIZE, _OLD_SECONDS = 32, 600


@dataclass(slots=True)
class Cache:
    """The files of a folder that only this user can write."""

    folder: Path
    limit: int = _MOST_BYTES
    _files: dict[str, CodeFile] = field(default_factory=dict[str, "CodeFile"])
    _written: int = 0
    """Bytes since the size of the folder was last measured."""
    _is_measured: bool = False

    @classmethod
    def open(cls) -> Cache | None:
        """Return the cache of this user, None where there can be none."""
        try:
            return cls(make_private(find_cache() / "code"))
        except (OSError, RuntimeError, Untrusted):
            return None

    def find(self, text: str) -> CodeFile:
        """Return the code of a PTX text."""
        name = hashlib.sha256(f"{_VERSIONS}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._files.setdefault(name, CodeFile(self, name))

    def read(self, name: str) -> dict[bytes, bytes]:
        """Return what a file holds, nothing if it is missing, damaged, or could be another user's."""
        path = self.folder / f"{name}{_SUFFIX}"
        with (
            suppress(OSError),
            open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file,
        ):
            data = file.read() if is_private(os.fstat(file.fileno())) else b""
            digest, body = data[:_DIGEST_SIZE], data[_DIGEST_SIZE:]
            if hashlib.sha256(body).digest() == digest:
                # The files that were used last stay.
                os.utime(path)
                return marshal.loads(body)
        return {}

    def write(self, name: str, entries: dict[bytes, bytes]) -> None:
        """Write a file at once. One that cannot be written is missing later, which only costs time."""
        body = marshal.dumps(entries)
        with suppress(OSError):
            descriptor, path = tempfile.mkstemp(_UNFINISHED, name, self.folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(hashlib.sha256(body).digest() + body)
                os.replace(path, self.folder / f"{name}{_SUFFIX}")
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


@dataclass(slots=True)
class CodeFile:
    """The code of the blocks of one PTX text."""

    cache: Cache
    name: str
    _entries: dict[bytes, bytes] | None = None
    """The code by the digest of its text."""
    _is_changed: bool = False

    def compile(self, text: str, name: str) -> CodeType:
        """Return the code of a text, compiled by this process or an earlier one."""
        if self._entries is None:
            self._entries = self.cache.read(self.name)
        digest = hashlib.sha256(f"{name}\n{text}".encode()).digest()
        data = self._entries.get(digest)
        if data is not None:
            return marshal.loads(data)
        code = compile(text, name, "exec")
        self._entries[digest] = marshal.dumps(code)
        self._is_changed = True
        return code

    def save(self) -> None:
        """Keep what this process has compiled for later ones."""
        if self._is_changed and self._entries is not None:
            self._is_changed = False
            self.cache.write(self.name, self._entries)
