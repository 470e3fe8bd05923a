"""Digests of results too long to store: a file of `tests/digests` per kind of result, with a line for each name.

A digest that differs says that the result changed, not how: print the result at both commits. `PYPTX_UPDATE_GOLDENS=1`
with `-n 0` writes the digests anew.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "digests"


@cache
def read_digests(kind: str) -> dict[str, str]:
    """Return the digests of a kind by name."""
    path = FOLDER / f"{kind}.txt"
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return {name: digest for digest, _, name in (line.partition(" ") for line in lines)}


def assert_digest(kind: str, name: str, text: str) -> None:
    """Fail unless a text has the stored digest."""
    digests = read_digests(kind)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    if os.environ.get("PYPTX_UPDATE_GOLDENS"):
        digests[name] = digest
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{kind}.txt").write_text("".join(f"{digests[key]} {key}\n" for key in sorted(digests)), "utf-8")
    assert digest == digests.get(name), f"the result of {name} changed"
