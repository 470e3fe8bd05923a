"""Where the driver library and the auditor are: built once, in the user's cache."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pyptx.driver.build import (
    AUDIT_NAME,
    NAME,
    NoCompiler,
    build,
    build_audit,
    build_runtime,
    compute_digest,
    find_compiler,
    name_runtime,
)
from pyptx.driver.runtime import VERSIONS


class Untrusted(Exception):
    """A folder of programs that another user could have written."""


def find_library() -> Path:
    """Return the driver library, which is always called `libcuda.so.1`, in a folder with the runtime libraries only;
    build them if needed."""
    folder = make_private(find_cache() / "driver" / compute_digest())
    library = folder / NAME
    if not library.exists():
        build(library, find_compiler())
    for version in VERSIONS:
        runtime = folder / name_runtime(version)
        if not runtime.exists():
            build_runtime(runtime, library, version, find_compiler())
    return library


def find_audit() -> Path | None:
    """Return the auditor of the dynamic linker, in a folder of its own; build it if needed. None where the C library
    has no auditors, or no compiler works."""
    folder = make_private(find_cache() / "driver" / f"{compute_digest()}-audit")
    library = folder / AUDIT_NAME
    if not library.exists():
        try:
            build_audit(library, find_compiler())
        except (NoCompiler, RuntimeError):
            return None
    return library


def find_cache() -> Path:
    """Return the user's cache folder for this package."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "pyptx"


def make_private(folder: Path) -> Path:
    """Return a folder, created if needed, that only this user can write. Raise Untrusted for any other."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Untrusted(f"{folder} belongs to another user or is writable by others: remove it")
    return folder
