"""The symbols of the CUDA driver's functions and the CUDA versions that introduced them, from `entries.txt`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SUFFIXES = {"z": "_ptsz", "d": "_ptds"}


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol of the driver library. `function` is its name without the suffix of its version."""

    name: str
    function: str
    version: int
    per_thread: bool = False
    """Whether stream 0 means the default stream of the calling thread."""
    plain: str = ""
    """The symbol with the same parameters and the legacy default stream."""


@cache
def list_symbols() -> list[Symbol]:
    """Return the symbols in the order of their functions and versions."""
    lines = (Path(__file__).parent / "entries.txt").read_text("ascii").splitlines()
    return [symbol for line in lines if not line.startswith("#") for symbol in _parse_line(line)]


def _parse_line(line: str) -> list[Symbol]:
    """Return the symbols of one function. Each version after the first has a suffix `_v2`, `_v3` …; a per-thread
    variant belongs to the latest version before it."""
    function, *words = line.split()
    versions = sorted(int(word) for word in words if word.isdecimal())
    names = {
        version: function if index == 1 else f"{function}_v{index}" for index, version in enumerate(versions, start=1)
    }
    symbols = [Symbol(names[version], function, version, plain=names[version]) for version in versions]
    for word in words:
        if not word.isdecimal():
            version = int(word[:-1])
            plain = names[max(known for known in versions if known <= version)]
            symbols.append(Symbol(plain + _SUFFIXES[word[-1]], function, version, True, plain))
    return sorted(symbols, key=lambda symbol: (symbol.version, symbol.per_thread))
