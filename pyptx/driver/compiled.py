"""Code that earlier processes compiled from the Python texts of kernels' blocks, in the user's cache.

What is kept is the result of `compile`, under the digest of its whole input: it cannot change what a kernel does. It is
executed, so it is kept where no other user can write.
"""

from __future__ import annotations

import hashlib
import marshal
import sys
from dataclasses import dataclass, field
from importlib.util import MAGIC_NUMBER
from types import CodeType

import pyptx
from pyptx.cache import Store

_VERSIONS = f"{pyptx.__version__} {sys.implementation.cache_tag} {MAGIC_NUMBER.hex()} {sys.flags.optimize}"
"""What the format of code depends on. Another version of this package would add other texts to the same files."""
MOST_BYTES = 1 << 27
SUFFIX = ".code"


@dataclass(slots=True)
class Cache:
    """The code of PTX texts, in files of a store."""

    store: Store
    _files: dict[str, CodeFile] = field(default_factory=dict[str, "CodeFile"])

    @classmethod
    def open(cls) -> Cache | None:
        """Return the cache of this user, None where there can be none."""
        store = Store.open("code", SUFFIX, MOST_BYTES)
        return store and cls(store)

    def find(self, text: str) -> CodeFile:
        """Return the code of a PTX text."""
        name = hashlib.sha256(f"{_VERSIONS}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._files.setdefault(name, CodeFile(self, name))

    def read(self, name: str) -> dict[bytes, bytes]:
        """Return what a file holds: code by the digest of its text."""
        body = self.store.read(name)
        return {} if body is None else marshal.loads(body)

    def write(self, name: str, entries: dict[bytes, bytes]) -> None:
        """Write a file."""
        self.store.write(name, marshal.dumps(entries))


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
