"""The names of the libraries, and a digest of what they are built from. Loads none of it: programs are started often,
and libraries built once."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

NAME, AUDIT_NAME = "libcuda.so.1", "libpyptx_audit.so"
VERSIONS = {12: 12090, 13: 13050}
"""The versions that the runtime libraries report, by the number in their file name."""
FOLDER = Path(__file__).parent
ENTRY = re.compile(r"^@entry\((.*?)\)$", re.MULTILINE | re.DOTALL)
"""The part of an answer's source that the libraries depend on."""


class NoCompiler(Exception):
    """No C compiler was found."""


def name_runtime(version: int) -> str:
    """Return the file name of the runtime library of a major version."""
    return f"libcudart.so.{version}"


def compute_digest() -> str:
    """Return a digest of everything that the libraries are built from."""
    modules = [FOLDER / f"{name}.py" for name in ("build", "codes", "lookup", "runtime", "signatures", "sources")]
    digest = hashlib.sha256()
    for path in sorted([*modules, *FOLDER.glob("*.txt"), *(FOLDER / "csrc").rglob("*.[ch]")]):
        digest.update(path.read_bytes())
    for path in sorted((FOLDER / "calls").glob("*.py")):
        digest.update("\n".join(ENTRY.findall(path.read_text("utf-8"))).encode())
    return digest.hexdigest()[:16]
