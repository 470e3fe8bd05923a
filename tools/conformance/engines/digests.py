"""A compact record: a digest of each answer, of the simulator or of a device, in a text file.

A line holds the cases whose names differ in the last part only. Addresses do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

from tools.conformance.engines.answers import Answer

RECORD = Path(__file__).parent / "h200.txt"
KNOWN = Path(__file__).parent / "h200_differences.txt"
"""The cases of the record in which the simulator differs on purpose, or for an unknown reason."""
_ADDRESS = 8
"""Bytes of a map that hold the address."""


def make_digest(answer: Answer) -> str:
    """Return a digest of the inputs, the map and the output, or of the fact that there is none."""
    digest = hashlib.sha256(answer.key.encode())
    parts = (b"failed",) if answer.error else (answer.map[_ADDRESS:], answer.data)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.hexdigest()[:8]


def write_digests(path: Path, about: str, answers: Iterable[Answer]) -> None:
    """Write a record of answers."""
    pairs = [(*answer.name.rsplit("/", 1), make_digest(answer)) for answer in answers]
    lines = [about]
    for group, members in groupby(pairs, key=lambda pair: pair[0]):
        lines.append(" ".join([group, *(f"{name}={digest}" for _, name, digest in members)]))
    path.write_text("\n".join(lines) + "\n")


def read_known_differences() -> dict[str, str]:
    """Return the reasons of known differences by the names of cases."""
    pairs = (line.partition(" ") for line in KNOWN.read_text().splitlines())
    return {name: reason for name, _, reason in pairs}


def read_digests(path: Path = RECORD) -> tuple[str, dict[str, str]]:
    """Return what was recorded where, and the digests by the names of cases."""
    about, *lines = path.read_text().splitlines()
    digests: dict[str, str] = {}
    for line in lines:
        group, *members = line.split(" ")
        digests |= {f"{group}/{name}": digest for name, digest in (member.rsplit("=", 1) for member in members)}
    return about, digests
