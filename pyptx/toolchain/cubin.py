"""The result of an assembler: the cubin, which tool made it, and its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyptx.diagnostics import Diagnostic, PtxError

Engine = Literal["ptxas", "nvjitlink"]


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code for one target (an ELF file), with the assembler's log and diagnostics. `log` holds ptxas'
    statistics (`-v`), including timings, so it is excluded from equality."""

    data: bytes = field(repr=False)
    target: str
    producer: str
    log: str = field(default="", repr=False, compare=False)
    diagnostics: tuple[Diagnostic, ...] = ()

    def __bytes__(self) -> bytes:
        return self.data


class AssemblyError(PtxError):
    """Raised when PTX does not assemble; carries every message as a diagnostic, and the assembler's own log."""

    def __init__(self, diagnostics: Sequence[Diagnostic], source: str | None = None, log: str = "") -> None:
        super().__init__(diagnostics, source)
        self.log = log
