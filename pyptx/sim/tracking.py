"""Registers read before they were written (PTX0911): those that static assignment cannot prove are tracked as they run,
a flag per lane; and the pattern that everything uninitialised starts with. `mov` and `shfl` hand on what they do not
use: of the values that a warp shuffles, often only one is taken.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from pyptx.check.body import Step
from pyptx.check.flow import Register, reads_and_writes
from pyptx.diagnostics import PtxError
from pyptx.ir import PipeOperand, RegisterOperand, opcode_span
from pyptx.sim.assignment import unproven
from pyptx.sim.formats import Array
from pyptx.sim.hazards import Agent, Finding, Place, rules
from pyptx.sim.lanes import Lanes
from pyptx.sim.program import Block, Program, names_in, resolved
from pyptx.sim.registers import Row
from pyptx.sim.semantics.data_movement import shuffle

if TYPE_CHECKING:
    from pyptx.sim.codegen import Writer
    from pyptx.sim.machine import Batch

POISON = 0x7FFDA5A5
"""What uninitialised words hold with `poison=True`: as f32 and bf16, and twice over as f64, a NaN."""
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
    shuffled: dict[int, str] = field(default_factory=dict[int, str])
    """The name of the flags that a shuffle's result gets, by its step: made before its operands are overwritten."""

    @classmethod
    def of(cls, program: Program) -> Tracker:
        """Return a tracker of what is not proven, and of what `mov` makes of it."""
        found = {register for code in program.codes for register in unproven(program.blocks, code)}
        moves = [_handed(step) for block in program.blocks for step in block.steps]
        grown = True
        while grown:
            more = {made for move in moves if move is not None for made in [move[0]] if move[1] in found} - found
            found |= more
            grown = bool(more)
        return cls({register: at for at, register in enumerate(sorted(found))})

    def begin(self, writer: Writer, block: Block) -> None:
        """Write what is known when a block begins: parameters in registers and results of calls are written."""
        names = {p.name for p in block.code.function.params} if block.pc == block.code.entry else set[str]()
        given = [register for register in self.rows if register[0] in names and _owns(block, register)]
        if block.after_call is not None and block.after_call.instruction.operands:
            step = block.after_call
            given += [r for n in names_in(step.instruction.operands[0]) if (r := _register(n, step)) in self.rows]
        for register in given:
            writer.lines.append(f"{self._flags(writer, register)}[...] = True")
            writer.operands.wrote(f"w{self.rows[register]}", False)

    def reads(self, writer: Writer, step: Step) -> None:
        """Write the test of what a step reads."""
        if step.plan is None:
            return
        handed = _handed(step)
        found = [register for register in dict.fromkeys(reads_and_writes(step)[0]) if register in self.rows]
        if handed is not None:
            found = [register for register in found if register != handed[1]]
            self._shuffle(writer, step, handed[1])
        predicate = step.instruction.predicate
        for register in found:
            guards = predicate is not None and register[0] == predicate.register
            mask = None if guards else writer.guard(step)
            flags = self._flags(writer, register)
            tell = writer.operands.constant(partial(_told, step, register[0]))
            writer.lines.append(f"if not {flags}.all(): {tell}(M, L, {mask}, {flags})")

    def writes(self, writer: Writer, step: Step) -> None:
        """Write what a step has written."""
        if step.plan is None:
            return
        handed = _handed(step)
        for register in dict.fromkeys(reads_and_writes(step)[1]):
            if register not in self.rows:
                continue
            flags, mask = self._flags(writer, register), writer.guard(step)
            value = "True"
            if handed is not None and register == handed[0] and handed[1] in self.rows:
                value = self.shuffled.get(id(step)) or self._flags(writer, handed[1])
            line = f"{flags}[...] = {value}" if mask is None else f"putmask({flags}, {mask}, {value})"
            writer.lines.append(line)
            writer.operands.wrote(flags, mask is not None)

    def _shuffle(self, writer: Writer, step: Step, source: Register) -> None:
        """Write the flags that a shuffle takes from other lanes."""
        if step.plan is None or step.instruction.opcode != "shfl" or source not in self.rows:
            return
        name, (by, limit) = writer.temporary(), step.instruction.operands[2:4]
        function = writer.operands.constant(partial(shuffle, step.plan.match.chosen["mode"]))
        operands = f"{writer.read(by, 'b32', step)}, {writer.read(limit, 'b32', step)}"
        writer.lines.append(f"{name} = {function}(M, L, {self._flags(writer, source)}, {operands})[0]")
        self.shuffled[id(step)] = name

    def _flags(self, writer: Writer, register: Register) -> str:
        return writer.operands.view(Row("w", self.rows[register], 1, "pred"))


def _handed(step: Step) -> tuple[Register, Register] | None:
    """Return where the value goes and where it comes from, of a `mov` of one register to another and of a `shfl`."""
    if step.plan is None or step.instruction.opcode not in ("mov", "shfl"):
        return None
    if step.instruction.opcode == "shfl":
        made, given = step.instruction.operands[:2]
        made = made.left if isinstance(made, PipeOperand) else made
        if isinstance(made, RegisterOperand) and isinstance(given, RegisterOperand):
            return _register(made.name, step), _register(given.name, step)
        return None
    reads, writes = reads_and_writes(step)
    predicate = step.instruction.predicate
    reads = [r for r in reads if predicate is None or r[0] != predicate.register]
    return (writes[0], reads[0]) if len(reads) == len(writes) == 1 else None


def _register(name: str, step: Step) -> Register:
    symbol, base = resolved(name, step.scope)
    return base, id(symbol)


def _owns(block: Block, register: Register) -> bool:
    return register in block.code.rows.of


def _told(step: Step, name: str, machine: Batch, lanes: Lanes, mask: Array | None, flags: Array) -> None:
    """Report lanes that read a register which they have not written."""
    some = lanes.subset(~flags if mask is None else mask & ~flags)
    if some is None:
        return
    if machine.checks is not None:
        checks = machine.checks
        checks.engine.warps.uninitialised(checks.group(some), checks.place(step), [name])
        return
    cta, lane = int(some.cta[0]), int(machine.shape.lane[some.index[0]])
    agent = Agent(int(machine.ctaid[0, cta]), int(machine.shape.thread[some.index[0]]) // 32, lane)
    place = Place(opcode_span(step.instruction), step.instruction.full_opcode)
    what = f"{agent} reads {name}, which it has not written, as {some.n} threads do"
    raise PtxError([Finding(rules.UNINITIALISED_REGISTER, place, agent, what).diagnostic()])
