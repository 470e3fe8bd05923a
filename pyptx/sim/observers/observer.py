"""The interface of an observer, beyond the machine's events."""

from __future__ import annotations

from pyptx.sim.execution.codegen import Instrument
from pyptx.sim.execution.machine import Batch
from pyptx.sim.program.blocks import Program
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.memory import Site
from pyptx.sim.state.sink import Sink


class Observer(Sink[Site]):
    """A sink that may also inspect the machine and its schedule."""

    def instrument(self, program: Program) -> Instrument | None:
        """Return the instrument that adds calls to a program's generated code, None to add none."""
        return None

    def attach(self, machine: Batch, slots: int) -> None:
        """Prepare for a machine that will run the next batches, of at most `slots` CTAs."""

    def follow(self, state: State) -> None:
        """Follow the scheduling state of the batch that begins."""
