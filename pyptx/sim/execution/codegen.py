"""Compile a block to a Python function over register views, once per machine; the function returns the next block's
number, or a negative code when the scheduler must decide.

The text contains only our own names and checked numbers. Two functions per block, each compiled when it is needed:
`bind` makes one for a range of lanes, whose registers are slices; `spread` runs any lanes on gathered registers and
scatters the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Protocol

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import (
    LabelOperand,
    PipeOperand,
    RegisterOperand,
    VectorOperand,
    opcode_span,
)
from pyptx.ir.operands import Operand as Actual
from pyptx.isa.model import Kind as OperandKind
from pyptx.isa.model import Operand
from pyptx.isa.special import COMPONENTS, find_special_register
from pyptx.sim.base.formats import CLASSES, dtype_of, suffix_of
from pyptx.sim.execution import calls
from pyptx.sim.execution.accumulators import find_product_number
from pyptx.sim.execution.operands import Unreadable, Valueless
from pyptx.sim.execution.text import BlockText
from pyptx.sim.execution.tracking import Tracker
from pyptx.sim.program.blocks import BRANCH, CALL, FALL, RET, Block, Program
from pyptx.sim.program.registers import CARRY, Row
from pyptx.sim.rules import faults
from pyptx.sim.semantics.registry import find_operation
from pyptx.sim.semantics.vocabulary import Kind, Operation, Selected
from pyptx.sim.state.accumulators import settle

DIVERGED, CONTROL = -1, -2
"""The result of a block's function if lanes leave it in two directions, or by a call, a barrier or exit."""


@dataclass(frozen=True, slots=True)
class Output:
    """The destination of a result: the view to write, and the type of the value; no view for `_`."""

    view: str | None
    type: str


Outputs = list[Output | list[Output]]
"""The results of an instruction; the elements of a vector are in a list."""


Compile = Callable[[str, str], CodeType]
"""Returns the code of a text with a name."""


def compile_text(text: str, name: str) -> CodeType:
    """Compile a text."""
    return compile(text, name, "exec")


@dataclass(slots=True)
class Sources:
    """The text of the blocks of a program by their numbers, and what compiles it."""

    compile: Compile = compile_text
    blocks: dict[int, Source] = field(default_factory=dict[int, "Source"])


@dataclass(slots=True)
class Source:
    """A block's text, its name, and the values that it names."""

    name: str
    bind: str
    spread: str
    constants: dict[str, Any]
    sites: dict[str, Step]
    approximate: set[str]
    numbers: dict[str, int]
    """The accumulators of sites that are products."""
    _makers: dict[bool, Callable[..., Any]] = field(default_factory=dict[bool, Callable[..., Any]])

    def find_maker(self, compile: Compile, *, spreads: bool) -> Callable[..., Any]:
        """Return the function that makes `bind` or `spread` for a machine."""
        maker = self._makers.get(spreads)
        if maker is None:
            namespace: dict[str, Any] = {
                "np": np, "putmask": np.putmask, "count": np.count_nonzero, "settle": settle,
            }  # fmt: skip
            exec(compile(self.spread if spreads else self.bind, self.name), namespace)
            maker = self._makers[spreads] = namespace["make"]
        return maker


class Instrument(Protocol):
    """What checked runs add to instructions: a replacement for a function that accesses memory, calls before any
    instruction, or a replacement for one that computes, which also takes the machine, the lanes and the guard."""

    numerics: bool
    """Whether it checks values, which changes the text of blocks."""

    def wrap_access(self, step: Step, operation: Operation, block: Block) -> Callable[..., Any] | None: ...

    def list_events(self, step: Step, block: Block) -> list[tuple[Callable[..., Any], bool]]: ...

    def watch_values(self, step: Step, operation: Operation) -> Callable[..., Any] | None: ...


class Writer(BlockText):
    """Writes one block."""

    def __init__(
        self, program: Program, block: Block, instrument: Instrument | None = None, tracker: Tracker | None = None,
        accumulators: dict[int, int] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(program, block)
        self.instrument, self.tracker = instrument, tracker
        self.approximate: set[str] = set()
        self.accumulators = accumulators or {}
        self.numbers: dict[str, int] = {}
        self.settled: set[int] = set()

    def write_block(self) -> Source:
        """Return the text of the block."""
        if self.block.after_call is not None:
            calls.take_results(self, self.block.after_call)
        if self.block.pc == self.block.code.entry:
            calls.take_parameters(self)
        if self.tracker is not None:
            self.tracker.write_entry(self, self.block)
        self._settle(0)
        for position, step in enumerate(self.block.body):
            first_line, self.operands.position = len(self.lines), position
            self._write_tracked(step, self.write_step)
            self._settle(first_line, find_product_number(self.accumulators, self.program, self.block, step))
        first_line = len(self.lines)
        if self.block.ending != FALL:
            self._write_tracked(self.block.steps[-1], lambda step: None)
        if self.block.ending == CALL:
            calls.pass_arguments(self, self.block.steps[-1])
        if self.block.ending == RET:
            calls.leave_results(self)
        self._settle(first_line)
        bind, spread = self._write_texts()
        name = f"<block {self.block.pc}>"
        return Source(name, bind, spread, self.operands.constants, self.sites, self.approximate, self.numbers)

    def _settle(self, first_line: int, product: int = -1) -> None:
        """Before the lines from `first_line`, write pending accumulators to the registers that these lines name, except
        those of the product itself."""
        registers = self.operands.named_registers
        pending: dict[int, bool] = {}
        for row, writes in registers.items():
            number = self.accumulators.get(row, -1)
            if number >= 0:
                pending[number] = pending.get(number, False) or writes
        registers.clear()
        if product >= 0:
            pending.pop(product, None)
            self.numbers[f"S{len(self.sites) - 1}"] = product
        for drops in (False, True):
            numbers = tuple(sorted(number for number, writes in pending.items() if writes is drops))
            if numbers:
                self.lines.insert(first_line, f"if H: settle(H, L, {numbers!r}, {drops})")
        self.settled.update(pending, (product,) if product >= 0 else ())

    def _write_tracked(self, step: Step, write: Callable[[Step], None]) -> None:
        """Write an instruction between the check of its operands and the record of its results."""
        if self.tracker is not None:
            self.tracker.write_reads(self, step)
        write(step)
        if self.tracker is not None:
            self.tracker.write_results(self, step)

    def write_step(self, step: Step) -> None:
        """Write one instruction."""
        plan = step.plan
        assert plan is not None
        op = find_operation(plan.match, plan.signature)
        if op is None:
            raise make_unsupported_error(step)
        if "approx" in plan.match.modifiers:
            self.approximate.add(step.instruction.full_opcode)
        tells = self.instrument.list_events(step, self.block) if self.instrument is not None else []
        if op.kind is Kind.NOTHING and not tells:
            return
        try:
            self._write_operation(step, op, plan.signature, tells)
        except Valueless as why:
            help = "run the kernel on hardware, or pass the value as an argument"
            raise faults.error(faults.VALUELESS, opcode_span(step.instruction), str(why), help=help) from None
        except Unreadable as why:
            raise make_unsupported_error(step, str(why)) from None

    def _write_operation(
        self, step: Step, op: Operation, signature: tuple[Operand, ...], tells: list[tuple[Callable[..., None], bool]]
    ) -> None:
        mask = self.read_guard(step)
        ins: list[str] = []
        outs: Outputs = []
        addresses: list[str] = []
        operands, selectors = step.instruction.operands, list[str]()
        if op.selects:
            selectors = [self._write_selection(o) for o in (operands[:3] if op.selects == "all" else operands[:1])]
            operands = tuple(
                _drop_selector(o) if index == 0 or op.selects == "all" else o for index, o in enumerate(operands)
            )
        for formal, operand in zip(signature, operands, strict=True):
            self._add_operand(formal, operand, step, ins, outs, addresses)
        ins += selectors
        for event, wants in tells:
            operand = [*addresses, *ins] if wants else []
            self.lines.append(f"{self.operands.add_constant(event)}({', '.join(['M', 'L', str(mask), *operand])})")
        if op.kind is Kind.NOTHING:
            return
        if op.carry and "r" in op.carry:
            ins.append(self.operands.name_view(CARRY))
        if op.carry and "w" in op.carry:
            outs.append(Output(self.operands.name_view(CARRY, reads=False), "pred"))
        if op.kind is Kind.MEMORY:
            self._write_access(step, op, mask, addresses, outs, ins)
            return
        flat = _flatten(outs)
        watcher = self.instrument.watch_values(step, op) if self.instrument is not None else None
        before = ["M", "L", str(mask)] if watcher is not None else ["M", "L"] if op.kind is Kind.LANES else []
        function = self.operands.add_constant(watcher or op.function) if op.function is not None else ""
        call = f"{function}({', '.join([*before, *ins])})"
        single = flat[0] if len(flat) == 1 else None
        direct = op.kind is Kind.INTO and watcher is None and mask is None
        if direct and single is not None and single.view and self._is_exact(single):
            self.lines.append(f"{function}({', '.join([*ins, single.view])})")
            self.operands.record_write(single.view, False)
        elif single is not None:
            self.assign(single, call, mask)
        elif not flat:
            self.lines.append(call)
        else:
            names = [self.add_temporary() for _ in flat]
            self.lines.append(f"{', '.join(names)} = {call}")
            for output, name in zip(flat, names, strict=True):
                self.assign(output, name, mask)

    def _write_selection(self, operand: Actual) -> str:
        """Return the parts that an operand selects, `.b3210` lowest first."""
        selector = operand.selector if isinstance(operand, RegisterOperand) else None
        if selector is None:
            return "None"
        return self.operands.add_constant(Selected(selector[1], tuple(int(digit) for digit in reversed(selector[2:]))))

    def _write_access(
        self, step: Step, op: Operation, mask: str | None, addresses: list[str], outs: Outputs, ins: list[str]
    ) -> None:
        flat = _flatten(outs)
        site = f"S{len(self.sites)}"
        self.sites[site] = step
        for output in flat:
            if output.view:
                self.operands.record_write(output.view, mask is not None)
        views = ", ".join(o.view or "None" for o in flat)
        results = f"({views}{',' if len(flat) == 1 else ''})"
        wrapper = self.instrument.wrap_access(step, op, self.block) if self.instrument is not None else None
        function = self.operands.add_constant(wrapper or op.function)
        self.lines.append(f"{function}({', '.join([site, 'L', str(mask), *addresses, results, *ins])})")

    def _add_operand(
        self, formal: Operand, operand: Actual, step: Step, ins: list[str], outs: Outputs, addresses: list[str]
    ) -> None:
        if formal.kind is OperandKind.ADDRESS:
            space, address = self.operands.read_address(operand, formal.space, step)
            addresses += [repr(space), address]
            for part, inner in zip(formal.parts[1:], getattr(operand, "rest", ()), strict=False):
                self._add_operand(part, inner, step, ins, outs, addresses)
            return
        if formal.kind is OperandKind.PIPE:
            pair = (operand.left, operand.right) if isinstance(operand, PipeOperand) else (operand,)
            for part, inner in zip(formal.parts, pair, strict=False):
                self._add_operand(part, inner, step, ins, outs, addresses)
            if len(pair) < len(formal.parts):
                outs.append(Output(None, "pred"))
            return
        if formal.access != "r":
            if isinstance(operand, VectorOperand):
                outs.append([self.make_output(formal, element, step) for element in operand.elements])
            else:
                outs += self._split_wide(self.make_output(formal, operand, step), operand, step)
        if formal.access != "w":
            ins.append(self.write_value(formal, operand, step))

    def _split_wide(self, output: Output, operand: Actual, step: Step) -> list[Output]:
        """Return the two halves of a 128-bit result."""
        if output.type != "b128" or not isinstance(operand, RegisterOperand | LabelOperand) or output.view is None:
            return [output]
        row = self.operands.find_row(operand.name, step.scope)
        assert row is not None
        return [Output(self.operands.name_view(row, "", half, reads=False), "b64") for half in (0, 1)]

    def write_value(self, formal: Operand, operand: Actual, step: Step) -> str:
        """Return the expression of an input, a tuple for a vector."""
        if isinstance(operand, VectorOperand) and (formal.count or len(operand.elements) > 1):
            items = [
                "None"
                if isinstance(e, RegisterOperand | LabelOperand) and e.name == "_"
                else self.read(e, formal.type, step)
                for e in operand.elements
            ]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if formal.kind is OperandKind.SPECIAL and isinstance(operand, RegisterOperand):
            return f"({', '.join(self._components(operand.name, step))})"
        if formal.type == "b128" and isinstance(operand, RegisterOperand | LabelOperand):
            row = self.operands.find_row(operand.name, step.scope)
            if row is not None:
                return f"({self.operands.name_view(row)}, {self.operands.name_view(row, '', 1)})"
        return self.read(operand, formal.type, step)

    def _components(self, name: str, step: Step) -> list[str]:
        """Return the expressions of all components of a special register."""
        register = find_special_register(name)
        if register is None or not register.vector:
            raise Unreadable(f"`{name}` has no components")
        return [self.read(RegisterOperand(f"{name}.{part}"), "u32", step) for part in COMPONENTS]

    def make_output(self, formal: Operand, operand: Actual, step: Step) -> Output:
        """Return the destination of a result."""
        if isinstance(operand, RegisterOperand | LabelOperand):
            if operand.name == "_":
                return Output(None, formal.type or "b32")
            row = self.operands.find_row(operand.name, step.scope)
            if row is not None:
                type_name = formal.type or row.type
                return Output(self._view_target(row, type_name), type_name)
        raise Unreadable("destination")

    def _view_target(self, row: Row, type_name: str) -> str:
        if type_name == "b128":
            return self.operands.name_view(row, reads=False)
        dtype = dtype_of(type_name)
        is_same_size = dtype.itemsize == np.dtype(CLASSES[row.letter]).itemsize
        return self.operands.name_view(row, suffix_of(dtype) if is_same_size else "", reads=False)

    def _is_exact(self, output: Output) -> bool:
        letter = self.operands.views[output.view or ""][0]
        return dtype_of(output.type).itemsize == np.dtype(CLASSES[letter]).itemsize

    def assign(self, output: Output, expression: str, mask: str | None) -> None:
        """Write a value to its destination, in the lanes of the mask."""
        if output.view is None:
            return
        if dtype_of(output.type).kind == "f" and not self._is_exact(output):
            expression = f"({expression}).view('u{dtype_of(output.type).itemsize}')"
        if mask is None:
            self.lines.append(f"{output.view}[...] = {expression}")
        else:
            if not self._is_exact(output):
                letter = self.operands.views[output.view][0]
                expression = f"np.asarray({expression}).astype({CLASSES[letter]!r})"
            self.lines.append(f"putmask({output.view}, {mask}, {expression})")
        self.operands.record_write(output.view, mask is not None)

    def _write_texts(self) -> tuple[str, str]:
        leave, o = self._write_exit(), self.operands
        views = {f"{letter}{index}": (letter, "", index) for letter, _, index in o.views.values()} | o.views
        slices = [f"{name} = R[{letter + suffix!r}][{index}, lo:hi]" for name, (letter, suffix, index) in views.items()]
        gather = ["n = L.n", "i = L.index"]
        if self.settled:
            gather.append(f"if H: settle(H, L, {tuple(sorted(self.settled))!r}, True)")
        for name, (letter, suffix, index) in views.items():
            if suffix:
                gather.append(f"{name} = {letter}{index}.view(R[{letter + suffix!r}].dtype)")
            elif name in o.gathers:
                gather.append(f"{name} = R[{letter!r}][{index}].take(i)")
            else:
                gather.append(f"{name} = np.empty(n, {CLASSES[letter]!r})")
        scatter = [f"R[{base[0]!r}][{base[1:]}][i] = {base}" for base in o.writes]
        fixed = [f"{name} = M.read_special({key!r}, L)" for key, name in o.specials.items()]
        fresh = ["sp = M.sp[L.sel]"] if o.uses_stack else []
        lines = [
            "def make(M, R, K):",
            " H = M.memory.accumulators",
            *(f" {name} = K[{name!r}]" for name in (*o.constants, *self.sites)),
        ]
        bind = [" def bind(L):", "  lo = L.lo; hi = L.hi; n = L.n", *(f"  {line}" for line in (*slices, *fixed))]
        bind += ["  def run():", *(f"   {line}" for line in (*fresh, *self.lines, *leave)), "  return run"]
        spread_lines = (*gather, *fixed, *fresh, *self.lines, *scatter, *leave)
        spread = [" def spread(L):", *(f"  {line}" for line in spread_lines)]
        return "\n".join([*lines, *bind, " return bind", ""]), "\n".join([*lines, *spread, " return spread", ""])

    def _write_exit(self) -> list[str]:
        block = self.block
        if block.ending == FALL:
            return [f"return {block.pc + 1}"]
        if block.ending != BRANCH:
            return [f"return {CONTROL}"]
        predicate = block.steps[-1].instruction.predicate
        if predicate is None:
            return [f"return {block.targets[0]}"]
        name = self.read(LabelOperand(predicate.register), "pred", block.steps[-1])
        none, every = block.pc + 1, block.targets[0]
        if predicate.negated:
            none, every = every, none
        return [f"c = count({name})", f"return {every} if c == n else {none} if c == 0 else {DIVERGED}"]


def _flatten(outs: Outputs) -> list[Output]:
    return [output for item in outs for output in (item if isinstance(item, list) else [item])]


def _drop_selector(operand: Actual) -> Actual:
    """Return the whole register of an operand that names a part."""
    return RegisterOperand(operand.base) if isinstance(operand, RegisterOperand) and operand.selector else operand


def make_unsupported_error(step: Step, why: str = "") -> PtxError:
    """Return the error for an instruction without semantics."""
    text = f"`{step.instruction.full_opcode}` is not simulated"
    return faults.error(faults.UNSUPPORTED, opcode_span(step.instruction), text, notes=(why,) if why else ())
