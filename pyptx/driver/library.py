"""Where the driver library and the auditor are: in the package, if it was installed with them, or built once in the
user's cache."""

from __future__ import annotations

from collections.abc import Sequence
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
from pyptx.driver.private import find_cache, make_private
from pyptx.driver.runtime import VERSIONS

PREBUILT = Path(__file__).parent / "prebuilt"
"""Libraries that a wheel brings, in folders named after the digest of their sources."""
_AUDIT = "-audit"


def find_library() -> Path:
    """Return the driver library, which is always called `libcuda.so.1`, in a folder with the runtime libraries only;
    build them if needed."""
    library = _find_folder("") / NAME
    if not library.exists():
        build(library, find_compiler())
    for version in VERSIONS:
        runtime = library.parent / name_runtime(version)
        if not runtime.exists():
            build_runtime(runtime, library, version, find_compiler())
    return library


def find_audit() -> Path | None:
    """Return the auditor of the dynamic linker, in a folder of its own; build it if needed. None where the C library
    has no auditors, or no compiler works."""
    library = _find_folder(_AUDIT) / AUDIT_NAME
    if not library.exists():
        try:
            build_audit(library, find_compiler())
        except (NoCompiler, RuntimeError):
            return None
    return library


def _find_folder(suffix: str) -> Path:
    """Return the folder of libraries of these sources: in the package, or in the user's cache."""
    name = compute_digest() + suffix
    prebuilt = PREBUILT / name
    return prebuilt if prebuilt.is_dir() else make_private(find_cache() / "driver" / name)


def build_all(folder: Path, compiler: Sequence[str]) -> None:
    """Build all libraries in a folder that becomes `PREBUILT` in a wheel."""
    digest = compute_digest()
    for suffix in ("", _AUDIT):
        (folder / f"{digest}{suffix}").mkdir(parents=True)
    library = folder / digest / NAME
    build(library, compiler)
    for version in VERSIONS:
        build_runtime(library.parent / name_runtime(version), library, version, compiler)
    build_audit(folder / f"{digest}{_AUDIT}" / AUDIT_NAME, compiler)
