"""Watched registers: every change, with its place and the values before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array, dtype_of, suffix_of
from pyptx.sim.execution.machine import Batch
from pyptx.sim.observers.observer import Observer
from pyptx.sim.program.blocks import Program
from pyptx.sim.program.python_names import find_python_names
from pyptx.sim.program.registers import Row
from pyptx.sim.reports.findings import Cta
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.awaited_events import make_place
from pyptx.sim.scheduling.places import number_ctas
from pyptx.sim.scheduling.state import State

_MOST_CHANGES = 100_000


@dataclass(frozen=True, slots=True)
class Change:
    """New values of a register, by CTA and thread of a block, and the instruction that wrote them."""

    register: str
    place: Place
    ctas: Array
    threads: Array
    before: Array
    after: Array
    grid: tuple[int, int, int] = (0, 1, 1)
    variable: str = ""
    """The variable that holds the register in a kernel in Python."""

    @property
    def line(self) -> int:
        """The line of the instruction, 0 if it has none."""
        return self.place.line

    def __str__(self) -> str:
        suffix = f" and {len(self.ctas) - 1} more" if len(self.ctas) > 1 else ""
        thread = f"CTA {Cta(int(self.ctas[0]), self.grid)} thread {self.threads[0]}"
        name = f"{self.variable} ({self.register})" if self.variable else self.register
        return f"{self.place}: {name} of {thread} from {self.before[0]} to {self.after[0]}{suffix}"


class Watch(Observer):
    """The watched registers of a launch and their changes."""

    def __init__(self, rows: list[tuple[str, Row]], names: dict[str, str]) -> None:
        self.rows, self.names = rows, names
        self.changes: list[Change] = []
        self._state: State | None = None
        self._before: list[Array] = []

    def follow(self, state: State) -> None:
        self._state = state
        self._before = [read_register(state.machine, row).copy() for _, row in self.rows]

    def record_changes(self) -> None:
        """Record what the last block changed."""
        batch = self._state
        if batch is None or batch.running is None or len(self.changes) >= _MOST_CHANGES:
            return
        numbers = np.array(number_ctas(batch))
        for index, (name, row) in enumerate(self.rows):
            now, before = read_register(batch.machine, row), self._before[index]
            bits = now.dtype if row.count > 1 else np.dtype(f"u{now.itemsize}")
            lanes = np.flatnonzero(now.view(bits) != before.view(bits))
            if len(lanes):
                block, shape = batch.running[0], batch.shape
                place = make_place(block, block.steps[-1] if block.steps else None)
                ctas, threads = numbers[shape.cta[lanes]], shape.thread[lanes]
                grid, variable = batch.machine.launch.grid, self.names.get(name, "")
                self.changes.append(Change(name, place, ctas, threads, before[lanes], now[lanes], grid, variable))
                before[lanes] = now[lanes]


def watch(program: Program, names: Sequence[str]) -> Watch:
    """Return a watch of registers, named in PTX or by the variables that hold them in a kernel in Python; PtxError if
    there is no such register."""
    if not isinstance(names, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise faults.error(faults.ARGUMENTS, None, f"watch is {names!r}: expected names of registers, such as ['%r1']")
    rows: list[tuple[str, Row]] = []
    rows_by_name = {name: row for code in program.codes for (name, _), row in code.rows.by_name.items()}
    variables = find_python_names(program)
    for name in [names] if isinstance(names, str) else names:
        registers = [name] if name in rows_by_name else [own for own, variable in variables.items() if variable == name]
        if not registers:
            names_shown = ", ".join([*dict.fromkeys(variables.values()), *sorted(rows_by_name)][:12])
            text = f"no register `{name}` is used; expected one of {names_shown}"
            raise faults.error(faults.ARGUMENTS, program.entry.function.origin, text)
        rows += [(register, rows_by_name[register]) for register in registers]
    return Watch(rows, variables)


def read_register(machine: Batch, row: Row) -> Array:
    """Return a register's value in every lane: in its declared type if NumPy has it, Python integers for 128 bits."""
    if row.count > 1:
        low, high = (machine.views[row.letter][row.index + half].astype(object) for half in (0, 1))
        return low | high << 64
    return machine.views[row.letter + suffix_of(dtype_of(row.type))][row.index]
