"""Registers read before they were written (PTX0911): those that static assignment cannot prove are tracked at run time,
with a flag per lane and byte; and the initial pattern of uninitialized memory. `transfers` knows which instructions
only move values."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyptx.check.body import Step
from pyptx.check.flow import Register, collect_accesses
from pyptx.sim.base.formats import Array
from pyptx.sim.execution.text import BlockText
from pyptx.sim.execution.transfers import WRITTEN, find_register, find_transfer, write_flags
from pyptx.sim.program.assignment import find_unproven_registers
from pyptx.sim.program.blocks import Block, Program, find_names
from pyptx.sim.program.registers import Row
from pyptx.sim.program.vectors import list_register_names

POISON = 0x7FFDA5A5
"""The contents of uninitialized words with `poison=True`: NaN as f32 and bf16, and twice as f64."""
_FILL = {"p": True, "h": POISON >> 16, "r": POISON, "d": POISON << 32 | POISON}


def poison_registers(registers: dict[str, Array]) -> None:
    """Fill every register with the pattern and set predicates; the carry flag stays clear."""
    for letter, matrix in registers.items():
        matrix.fill(_FILL[letter])
    registers["p"][0] = False


@dataclass(slots=True)
class Tracker:
    """The tracked registers of a program, each with its row of flags."""

    rows: dict[Register, int]
    flag_names: dict[Register, str] = field(default_factory=dict[Register, str])
    """The names of the flags that the current step passes on, computed before its operands are overwritten."""

    @classmethod
    def from_program(cls, program: Program) -> Tracker:
        """Return a tracker of the registers that are not proven, and of copies that `mov` makes of them."""
        registers = {register for code in program.codes for register in find_unproven_registers(program.blocks, code)}
        moves = [move for block in program.blocks for step in block.steps if (move := find_transfer(step)) is not None]
        has_grown = True
        while has_grown:
            additions = {
                target for move in moves if not registers.isdisjoint(move.sources) for target in move.targets
            } - registers
            registers |= additions
            has_grown = bool(additions)
        return cls({register: index for index, register in enumerate(sorted(registers))})

    def write_entry(self, writer: BlockText, block: Block) -> None:
        """Write the flags at the start of a function: its parameters in registers are written."""
        params = block.code.function.params if block.pc == block.code.entry else ()
        names = {name for param in params for name in list_register_names(param)}
        for register in self.rows:
            if register[0] in names and _owns(block, register):
                self._write_flags(writer, register, str(WRITTEN), None)

    def write_reads(self, writer: BlockText, step: Step) -> None:
        """Write the check of the registers that a step uses, and the flags of those that it passes on."""
        self.flag_names = {}
        if step.plan is None:
            return
        move, predicate = find_transfer(step), step.instruction.predicate
        uses = collect_accesses(step)[0]
        if move is not None:
            names = [name for operand in move.used for name in find_names(operand)]
            uses = [find_register(name, step) for name in ([predicate.register] if predicate else []) + names]
        for register in (register for register in dict.fromkeys(uses) if register in self.rows):
            guards = predicate is not None and register[0] == predicate.register
            mask = None if guards else writer.read_guard(step)
            flags = self._view_flags(writer, register)
            about, name = writer.operands.add_constant(step), writer.operands.add_constant(register[0])
            report = f"M.report_unwritten({about}, {name}, L, {mask}, {flags} != {WRITTEN})"
            writer.lines.append(f"if ({flags} != {WRITTEN}).any(): {report}")
        if move is not None and any(source in self.rows for source in move.sources):
            sources = [source if source in self.rows else None for source in move.sources]
            flags = [str(WRITTEN) if source is None else self._view_flags(writer, source) for source in sources]
            for register, expression in zip(move.targets, write_flags(writer, step, move, flags), strict=True):
                self.flag_names[register] = writer.add_temporary()
                writer.lines.append(f"{self.flag_names[register]} = {expression}")

    def write_results(self, writer: BlockText, step: Step) -> None:
        """Write the flags of a step's results."""
        if step.plan is None:
            return
        for register in dict.fromkeys(collect_accesses(step)[1]):
            if register not in self.rows:
                continue
            self._write_flags(writer, register, self.flag_names.get(register, str(WRITTEN)), writer.read_guard(step))

    def _write_flags(self, writer: BlockText, register: Register, value: str, mask: str | None) -> None:
        flags = self._view_flags(writer, register)
        writer.lines.append(f"{flags}[...] = {value}" if mask is None else f"putmask({flags}, {mask}, {value})")
        writer.operands.record_write(flags, mask is not None)

    def _view_flags(self, writer: BlockText, register: Register) -> str:
        return writer.operands.name_view(Row("w", self.rows[register], 1, "pred"))


def _owns(block: Block, register: Register) -> bool:
    return register in block.code.rows.by_name
