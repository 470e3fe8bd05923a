"""Registers read before they were written (PTX0911): those that static assignment cannot prove are tracked as they run,
a flag per lane and byte; and the pattern that everything uninitialized starts with. `transfers` says who only hands
values on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyptx.check.body import Step
from pyptx.check.flow import Register, reads_and_writes
from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.sim import rules
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.transfers import WRITTEN, handed_on, register_of, transfer
from pyptx.sim.hazards import Agent, Finding, Place
from pyptx.sim.hazards.findings import Cta
from pyptx.sim.program.assignment import unproven
from pyptx.sim.program.blocks import Block, Program, names_in
from pyptx.sim.program.registers import Row
from pyptx.sim.program.vectors import names_of

if TYPE_CHECKING:
    from pyptx.sim.execution.codegen import Writer
    from pyptx.sim.execution.machine import Batch

POISON = 0x7FFDA5A5
"""What uninitialized words hold with `poison=True`: as f32 and bf16, and twice over as f64, a NaN."""
_FILL = {"p": True, "h": POISON >> 16, "r": POISON, "d": POISON << 32 | POISON}


def poison_registers(registers: dict[str, Array]) -> None:
    """Give every register the pattern, predicates are true; the carry flag stays clear."""
    for letter, matrix in registers.items():
        matrix.fill(_FILL[letter])
    registers["p"][0] = False


@dataclass(slots=True)
class Tracker:
    """The registers of a program that are tracked, each with its row of flags."""

    rows: dict[Register, int]
    handed: dict[Register, str] = field(default_factory=dict[Register, str])
    """The names of the flags that the step at hand hands on: made before its operands are overwritten."""

    @classmethod
    def of(cls, program: Program) -> Tracker:
        """Return a tracker of what is not proven, and of what `mov` makes of it."""
        found = {register for code in program.codes for register in unproven(program.blocks, code)}
        moves = [move for block in program.blocks for step in block.steps if (move := transfer(step)) is not None]
        grown = True
        while grown:
            more = {made for move in moves if not found.isdisjoint(move.sources) for made in move.targets} - found
            found |= more
            grown = bool(more)
        return cls({register: at for at, register in enumerate(sorted(found))})

    def begin(self, writer: Writer, block: Block) -> None:
        """Write what is known when a block begins: parameters in registers and results of calls are written."""
        params = block.code.function.params if block.pc == block.code.entry else ()
        names = {name for param in params for name in names_of(param)}
        given = [register for register in self.rows if register[0] in names and _owns(block, register)]
        if block.after_call is not None and block.after_call.instruction.operands:
            step = block.after_call
            given += [r for n in names_in(step.instruction.operands[0]) if (r := register_of(n, step)) in self.rows]
        for register in given:
            writer.lines.append(f"{self._flags(writer, register)}[...] = {WRITTEN}")
            writer.operands.wrote(f"w{self.rows[register]}", False)

    def reads(self, writer: Writer, step: Step) -> None:
        """Write the test of what a step uses, and whether what it hands on was written."""
        self.handed = {}
        if step.plan is None:
            return
        move, predicate = transfer(step), step.instruction.predicate
        used = reads_and_writes(step)[0]
        if move is not None:
            names = [name for operand in move.used for name in names_in(operand)]
            used = [register_of(name, step) for name in ([predicate.register] if predicate else []) + names]
        for register in (register for register in dict.fromkeys(used) if register in self.rows):
            guards = predicate is not None and register[0] == predicate.register
            mask = None if guards else writer.guard(step)
            flags = self._flags(writer, register)
            tell = writer.operands.constant(partial(_told, step, register[0]))
            writer.lines.append(f"if ({flags} != {WRITTEN}).any(): {tell}(M, L, {mask}, {flags})")
        if move is not None and any(one in self.rows for one in move.sources):
            known = [one if one in self.rows else None for one in move.sources]
            flags = [str(WRITTEN) if one is None else self._flags(writer, one) for one in known]
            for register, expression in zip(move.targets, handed_on(writer, step, move, flags), strict=True):
                self.handed[register] = writer.temporary()
                writer.lines.append(f"{self.handed[register]} = {expression}")

    def writes(self, writer: Writer, step: Step) -> None:
        """Write what a step has written."""
        if step.plan is None:
            return
        for register in dict.fromkeys(reads_and_writes(step)[1]):
            if register not in self.rows:
                continue
            flags, mask = self._flags(writer, register), writer.guard(step)
            value = self.handed.get(register, str(WRITTEN))
            line = f"{flags}[...] = {value}" if mask is None else f"putmask({flags}, {mask}, {value})"
            writer.lines.append(line)
            writer.operands.wrote(flags, mask is not None)

    def _flags(self, writer: Writer, register: Register) -> str:
        return writer.operands.view(Row("w", self.rows[register], 1, "pred"))


def _owns(block: Block, register: Register) -> bool:
    return register in block.code.rows.of


def _told(step: Step, name: str, machine: Batch, lanes: Lanes, mask: Array | None, flags: Array) -> None:
    """Report lanes that read a register which they have not written."""
    lacks = flags != WRITTEN
    some = lanes.subset(lacks if mask is None else mask & lacks)
    if some is None:
        return
    if machine.checks is not None:
        checks = machine.checks
        checks.engine.warps.uninitialised(checks.group(some), checks.place(step), [name])
        return
    cta, lane = int(some.cta[0]), int(machine.shape.lane[some.index[0]])
    agent = Agent(
        Cta.at(machine.ctaid[:, cta], machine.launch.grid), int(machine.shape.thread[some.index[0]]) // 32, lane
    )
    place = Place(opcode_span(step.instruction), step.instruction.full_opcode)
    what = f"{agent} reads {name}, which it has not written, as {some.n} threads do"
    raise PtxError([Finding(rules.UNINITIALISED_REGISTER, place, agent, what).diagnostic()])
