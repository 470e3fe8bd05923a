"""The outcomes of mutants, stored until the package or a test changes: an interrupted draw continues, and a new entry
of the list of equivalent mutants costs no second run."""

from __future__ import annotations

import hashlib
import pickle
import threading
from dataclasses import dataclass
from pathlib import Path

from tools.mutation.mutants import Mutant


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant, and the test that killed it, or the number of tests run; a survivor survived `budget`
    seconds of tests."""

    mutant: Mutant
    outcome: str
    detail: str = ""
    budget: float = 0.0


class Store:
    """The verdicts about one state of the package and its tests, in a file."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path, self._digest, self._lock = path, digest, threading.Lock()
        content: tuple[str, dict[Mutant, Verdict]] = pickle.loads(path.read_bytes()) if path.exists() else ("", {})
        self._verdicts = content[1] if content[0] == digest else {}

    def find(self, mutant: Mutant, budget: float) -> Verdict | None:
        """Return the verdict about a mutant, unless it survived fewer seconds of tests than these."""
        verdict = self._verdicts.get(mutant)
        return None if verdict is None or (verdict.outcome == "survived" and verdict.budget < budget) else verdict

    def add(self, verdict: Verdict) -> None:
        """Store a verdict."""
        with self._lock:
            self._verdicts[verdict.mutant] = verdict
            self._path.parent.mkdir(parents=True, exist_ok=True)
            beside = self._path.with_suffix(".new")
            beside.write_bytes(pickle.dumps((self._digest, self._verdicts)))
            beside.replace(self._path)


def digest_sources(root: Path, package: str) -> str:
    """Return a digest of the package and its tests."""
    digest = hashlib.sha256()
    for folder in (package, "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so":
                content = path.read_bytes()
                digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return digest.hexdigest()
