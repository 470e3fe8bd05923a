"""Programmatic dependent launch: `griddepcontrol`."""

from __future__ import annotations

from pyptx.dsl.emit import emit, spell
from pyptx.dsl.registers import Pred

__all__ = ["launch_dependents", "wait"]


def launch_dependents(*, pred: Pred | None = None) -> None:
    """Emit `griddepcontrol.launch_dependents`: dependent grids may start; it makes no memory visible."""
    emit(spell("griddepcontrol", "launch_dependents"), (), pred)


def wait(*, pred: Pred | None = None) -> None:
    """Emit `griddepcontrol.wait`: waits until the grids that this one depends on have completed."""
    emit(spell("griddepcontrol", "wait"), (), pred)


def __dir__() -> list[str]:
    return __all__
