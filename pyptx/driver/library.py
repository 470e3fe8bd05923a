"""Where the driver library and the auditor are: in the package, if it was installed with them, or built once in the
user's cache."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pyptx.cache import make_private, read_private, write_private
from pyptx.driver.sources import AUDIT_NAME, NAME, VERSIONS, NoCompiler, compute_digest, name_runtime

PREBUILT = Path(__file__).parent / "prebuilt"
"""Libraries that a wheel brings, in folders named after the digest of their sources."""
_AUDIT = "-audit"
_DIGEST_SIZE = 32


@contextmanager
def _explain_cache() -> Generator[None]:
    """Name the remedy if the libraries cannot be built where they are kept."""
    try:
        yield
    except OSError as why:
        text = f"{why.strerror}; the driver is built there: set XDG_CACHE_HOME to a folder that can be written"
        raise OSError(why.errno, text, why.filename) from None


@_explain_cache()
def find_library() -> Path:
    """Return the driver library, which is always called `libcuda.so.1`, in a folder with the runtime libraries only;
    build them if needed."""
    folder = _find_folder("")
    runtimes = {version: folder / name_runtime(version) for version in VERSIONS}
    library = folder / NAME
    if not all(map(_is_intact, (library, *runtimes.values()))):
        build = _load_build()
        compiler = build.find_compiler()
        build.build(library, compiler)
        for version, runtime in runtimes.items():
            build.build_runtime(runtime, library, version, compiler)
        for path in (library, *runtimes.values()):
            _seal(path)
    return library


@_explain_cache()
def find_audit() -> Path | None:
    """Return the auditor of the dynamic linker, in a folder of its own; build it if needed. None where the C library
    has no auditors, or no compiler works."""
    library = _find_folder(_AUDIT) / AUDIT_NAME
    if not _is_intact(library):
        build = _load_build()
        try:
            build.build_audit(library, build.find_compiler())
        except (NoCompiler, RuntimeError):
            return None
        _seal(library)
    return library


def _is_intact(library: Path) -> bool:
    """Return whether a library is in the package, or in the user's cache as it was built there, and only the user can
    write it."""
    if PREBUILT in library.parents:
        return library.exists()
    data = read_private(library) or b""
    return data[-_DIGEST_SIZE:] == _compute_seal(library, data[:-_DIGEST_SIZE])


def _seal(library: Path) -> None:
    """Append a digest to a library that was built, which the dynamic linker does not read. Processes may build and seal
    at the same time: what one appends to is whole."""
    data = library.read_bytes()
    write_private(library, data + _compute_seal(library, data))


def _compute_seal(library: Path, data: bytes) -> bytes:
    """Return the digest of what a file of this name and folder holds."""
    return hashlib.sha256(f"{library.parent.name}/{library.name}\n".encode() + data).digest()


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
