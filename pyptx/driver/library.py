"""Where the driver library and the auditor are: in the package, if it was installed with them, or built once in the
user's cache."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pyptx.cache import make_private
from pyptx.driver.sources import AUDIT_NAME, NAME, VERSIONS, NoCompiler, compute_digest, name_runtime

PREBUILT = Path(__file__).parent / "prebuilt"
"""Libraries that a wheel brings, in folders named after the digest of their sources."""
_AUDIT = "-audit"


def find_library() -> Path:
    """Return the driver library, which is always called `libcuda.so.1`, in a folder with the runtime libraries only;
    build them if needed."""
    folder = _find_folder("")
    if not all((folder / name).exists() for name in (NAME, *map(name_runtime, VERSIONS))):
        build = _load_build()
        build.build_libraries(folder, build.find_compiler())
    return folder / NAME


def find_audit() -> Path | None:
    """Return the auditor of the dynamic linker, in a folder of its own; build it if needed. None where the C library
    has no auditors, or no compiler works."""
    library = _find_folder(_AUDIT) / AUDIT_NAME
    if not library.exists():
        build = _load_build()
        try:
            build.build_audit(library, build.find_compiler())
        except (NoCompiler, RuntimeError):
            return None
    return library


def build_all(folder: Path, compiler: Sequence[str]) -> None:
    """Build all libraries in a folder that becomes `PREBUILT` in a wheel."""
    build, digest = _load_build(), compute_digest()
    for suffix in ("", _AUDIT):
        (folder / f"{digest}{suffix}").mkdir(parents=True)
    build.build_libraries(folder / digest, compiler)
    build.build_audit(folder / f"{digest}{_AUDIT}" / AUDIT_NAME, compiler)


def list_folders() -> list[tuple[str, ...]]:
    """Return the folders in the user's cache of the libraries of these sources that the package does not have."""
    names = [compute_digest() + suffix for suffix in ("", _AUDIT)]
    return [("driver", name) for name in names if not (PREBUILT / name).is_dir()]


def _find_folder(suffix: str) -> Path:
    """Return the folder of libraries of these sources: in the package, or in the user's cache."""
    name = compute_digest() + suffix
    prebuilt = PREBUILT / name
    return prebuilt if prebuilt.is_dir() else make_private("driver", name)


def _load_build() -> ModuleType:
    """Return the module that builds; it loads the whole simulator, which takes longer than all else here."""
    return import_module("pyptx.driver.build")
