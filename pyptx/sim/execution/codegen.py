"""Compile a block to a Python function over register views, once per machine; the function returns the next block's
number, or a negative code when the scheduler must decide.

The text contains only our own names and checked numbers. Two functions per block: `bind` makes one for a range of
lanes, whose registers are slices; `spread` runs any lanes on gathered registers and scatters the results.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from pyptx.sim.execution.accumulators import product_number
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


@dataclass(slots=True)
class Source:
    """A block's compiled text and the values that it names."""

    make: Callable[..., Any]
    constants: dict[str, Any]
    sites: dict[str, Step]
    approximate: set[str]
    numbers: dict[str, int]
    """The accumulators of sites that are products."""


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

    def source(self) -> Source:
        """Return the compiled block."""
        if self.block.after_call is not None:
            calls.take_results(self, self.block.after_call)
        if self.block.pc == self.block.code.entry:
            calls.take_parameters(self)
        if self.tracker is not None:
            self.tracker.begin(self, self.block)
        self._settle(0)
        for position, step in enumerate(self.block.body):
            at, self.operands.position = len(self.lines), position
            self._tracked(step, self.step)
            self._settle(at, product_number(self.accumulators, self.program, self.block, step))
        at = len(self.lines)
        if self.block.ending != FALL:
            self._tracked(self.block.steps[-1], lambda step: None)
        if self.block.ending == CALL:
            calls.pass_arguments(self, self.block.steps[-1])
        if self.block.ending == RET:
            calls.leave_results(self)
        self._settle(at)
        text = self._text()
        namespace: dict[str, Any] = {
            "np": np, "putmask": np.putmask, "count": np.count_nonzero, "settle": settle,
        }  # fmt: skip
        exec(compile(text, f"<block {self.block.pc}>", "exec"), namespace)
        return Source(namespace["make"], self.operands.constants, self.sites, self.approximate, self.numbers)

    def _settle(self, at: int, product: int = -1) -> None:
        """Before the lines from `at`, write pending accumulators to the registers that these lines name, except those
        of the product itself."""
        touched = self.operands.touched
        found: dict[int, bool] = {}
        for row, writes in touched.items():
            number = self.accumulators.get(row, -1)
            if number >= 0:
                found[number] = found.get(number, False) or writes
        touched.clear()
        if product >= 0:
            found.pop(product, None)
            self.numbers[f"S{len(self.sites) - 1}"] = product
        for drops in (False, True):
            numbers = tuple(sorted(number for number, writes in found.items() if writes is drops))
            if numbers:
                self.lines.insert(at, f"if H: settle(H, L, {numbers!r}, {drops})")
        self.settled.update(found, (product,) if product >= 0 else ())

    def _tracked(self, step: Step, write: Callable[[Step], None]) -> None:
        """Write an instruction between the check of its operands and the record of its results."""
        if self.tracker is not None:
            self.tracker.reads(self, step)
        write(step)
        if self.tracker is not None:
            self.tracker.writes(self, step)

    def step(self, step: Step) -> None:
        """Write one instruction."""
        plan = step.plan
        assert plan is not None
        op = find_operation(plan.match, plan.signature)
        if op is None:
            raise unsupported(step)
        if "approx" in plan.match.modifiers:
            self.approximate.add(step.instruction.full_opcode)
        tells = self.instrument.list_events(step, self.block) if self.instrument is not None else []
        if op.kind is Kind.NOTHING and not tells:
            return
        try:
            self._operation(step, op, plan.signature, tells)
        except Valueless as why:
            help = "run the kernel on hardware, or pass the value as an argument"
            raise faults.error(faults.VALUELESS, opcode_span(step.instruction), str(why), help=help) from None
        except Unreadable as why:
            raise unsupported(step, str(why)) from None

    def _operation(
        self, step: Step, op: Operation, signature: tuple[Operand, ...], tells: list[tuple[Callable[..., None], bool]]
    ) -> None:
        mask = self.guard(step)
        ins: list[str] = []
        outs: Outputs = []
        addresses: list[str] = []
        operands, selected = step.instruction.operands, list[str]()
        if op.selects:
            selected = [self._selection(o) for o in (operands[:3] if op.selects == "all" else operands[:1])]
            operands = tuple(_whole(o) if at == 0 or op.selects == "all" else o for at, o in enumerate(operands))
        for wanted, given in zip(signature, operands, strict=True):
            self._operand(wanted, given, step, ins, outs, addresses)
        ins += selected
        for told, wants in tells:
            given = [*addresses, *ins] if wants else []
            self.lines.append(f"{self.operands.constant(told)}({', '.join(['M', 'L', str(mask), *given])})")
        if op.kind is Kind.NOTHING:
            return
        if op.carry and "r" in op.carry:
            ins.append(self.operands.view(CARRY))
        if op.carry and "w" in op.carry:
            outs.append(Output(self.operands.view(CARRY, reads=False), "pred"))
        if op.kind is Kind.MEMORY:
            self._memory(step, op, mask, addresses, outs, ins)
            return
        flat = _flat(outs)
        looked = self.instrument.watch_values(step, op) if self.instrument is not None else None
        before = ["M", "L", str(mask)] if looked is not None else ["M", "L"] if op.kind is Kind.LANES else []
        function = self.operands.constant(looked or op.function) if op.function is not None else ""
        call = f"{function}({', '.join([*before, *ins])})"
        one = flat[0] if len(flat) == 1 else None
        direct = op.kind is Kind.INTO and looked is None and mask is None
        if direct and one is not None and one.view and self._exact(one):
            self.lines.append(f"{function}({', '.join([*ins, one.view])})")
            self.operands.wrote(one.view, False)
        elif one is not None:
            self.assign(one, call, mask)
        elif not flat:
            self.lines.append(call)
        else:
            names = [self.temporary() for _ in flat]
            self.lines.append(f"{', '.join(names)} = {call}")
            for output, name in zip(flat, names, strict=True):
                self.assign(output, name, mask)

    def _selection(self, given: Actual) -> str:
        """Return the parts that an operand selects, `.b3210` lowest first."""
        selector = given.selector if isinstance(given, RegisterOperand) else None
        if selector is None:
            return "None"
        return self.operands.constant(Selected(selector[1], tuple(int(digit) for digit in reversed(selector[2:]))))

    def _memory(
        self, step: Step, op: Operation, mask: str | None, addresses: list[str], outs: Outputs, ins: list[str]
    ) -> None:
        flat = _flat(outs)
        site = f"S{len(self.sites)}"
        self.sites[site] = step
        for output in flat:
            if output.view:
                self.operands.wrote(output.view, mask is not None)
        views = ", ".join(o.view or "None" for o in flat)
        results = f"({views}{',' if len(flat) == 1 else ''})"
        told = self.instrument.wrap_access(step, op, self.block) if self.instrument is not None else None
        function = self.operands.constant(told or op.function)
        self.lines.append(f"{function}({', '.join([site, 'L', str(mask), *addresses, results, *ins])})")

    def _operand(
        self, wanted: Operand, given: Actual, step: Step, ins: list[str], outs: Outputs, addresses: list[str]
    ) -> None:
        if wanted.kind is OperandKind.ADDRESS:
            space, address = self.operands.address(given, wanted.space, step)
            addresses += [repr(space), address]
            for part, inner in zip(wanted.parts[1:], getattr(given, "rest", ()), strict=False):
                self._operand(part, inner, step, ins, outs, addresses)
            return
        if wanted.kind is OperandKind.PIPE:
            pair = (given.left, given.right) if isinstance(given, PipeOperand) else (given,)
            for part, inner in zip(wanted.parts, pair, strict=False):
                self._operand(part, inner, step, ins, outs, addresses)
            if len(pair) < len(wanted.parts):
                outs.append(Output(None, "pred"))
            return
        if wanted.access != "r":
            if isinstance(given, VectorOperand):
                outs.append([self.output(wanted, element, step) for element in given.elements])
            else:
                outs += self._wide(self.output(wanted, given, step), given, step)
        if wanted.access != "w":
            ins.append(self.value(wanted, given, step))

    def _wide(self, output: Output, given: Actual, step: Step) -> list[Output]:
        """Return the two halves of a 128-bit result."""
        if output.type != "b128" or not isinstance(given, RegisterOperand | LabelOperand) or output.view is None:
            return [output]
        found = self.operands.row(given.name, step.scope)
        assert found is not None
        return [Output(self.operands.view(found, "", half, reads=False), "b64") for half in (0, 1)]

    def value(self, wanted: Operand, given: Actual, step: Step) -> str:
        """Return the expression of an input, a tuple for a vector."""
        if isinstance(given, VectorOperand) and (wanted.count or len(given.elements) > 1):
            items = [
                "None"
                if isinstance(e, RegisterOperand | LabelOperand) and e.name == "_"
                else self.read(e, wanted.type, step)
                for e in given.elements
            ]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        if wanted.kind is OperandKind.SPECIAL and isinstance(given, RegisterOperand):
            return f"({', '.join(self._components(given.name, step))})"
        if wanted.type == "b128" and isinstance(given, RegisterOperand | LabelOperand):
            found = self.operands.row(given.name, step.scope)
            if found is not None:
                return f"({self.operands.view(found)}, {self.operands.view(found, '', 1)})"
        return self.read(given, wanted.type, step)

    def _components(self, name: str, step: Step) -> list[str]:
        """Return the expressions of all components of a special register."""
        register = find_special_register(name)
        if register is None or not register.vector:
            raise Unreadable(f"`{name}` has no components")
        return [self.read(RegisterOperand(f"{name}.{part}"), "u32", step) for part in COMPONENTS]

    def output(self, wanted: Operand, given: Actual, step: Step) -> Output:
        """Return the destination of a result."""
        if isinstance(given, RegisterOperand | LabelOperand):
            if given.name == "_":
                return Output(None, wanted.type or "b32")
            found = self.operands.row(given.name, step.scope)
            if found is not None:
                type_name = wanted.type or found.type
                return Output(self._target(found, type_name), type_name)
        raise Unreadable("destination")

    def _target(self, row: Row, type_name: str) -> str:
        if type_name == "b128":
            return self.operands.view(row, reads=False)
        dtype = dtype_of(type_name)
        same = dtype.itemsize == np.dtype(CLASSES[row.letter]).itemsize
        return self.operands.view(row, suffix_of(dtype) if same else "", reads=False)

    def _exact(self, output: Output) -> bool:
        letter = self.operands.views[output.view or ""][0]
        return dtype_of(output.type).itemsize == np.dtype(CLASSES[letter]).itemsize

    def assign(self, output: Output, expression: str, mask: str | None) -> None:
        """Write a value to its destination, in the lanes of the mask."""
        if output.view is None:
            return
        if dtype_of(output.type).kind == "f" and not self._exact(output):
            expression = f"({expression}).view('u{dtype_of(output.type).itemsize}')"
        if mask is None:
            self.lines.append(f"{output.view}[...] = {expression}")
        else:
            if not self._exact(output):
                letter = self.operands.views[output.view][0]
                expression = f"np.asarray({expression}).astype({CLASSES[letter]!r})"
            self.lines.append(f"putmask({output.view}, {mask}, {expression})")
        self.operands.wrote(output.view, mask is not None)

    def _text(self) -> str:
        leave, o = self._leave(), self.operands
        views = {f"{letter}{index}": (letter, "", index) for letter, _, index in o.views.values()} | o.views
        slices = [f"{name} = R[{letter + suffix!r}][{index}, lo:hi]" for name, (letter, suffix, index) in views.items()]
        gather = ["n = L.n", "i = L.index"]
        if self.settled:
            gather.append(f"if H: settle(H, L, {tuple(sorted(self.settled))!r}, True)")
        for name, (letter, suffix, index) in views.items():
            if suffix:
                gather.append(f"{name} = {letter}{index}.view(R[{letter + suffix!r}].dtype)")
            elif name in o.gathered:
                gather.append(f"{name} = R[{letter!r}][{index}].take(i)")
            else:
                gather.append(f"{name} = np.empty(n, {CLASSES[letter]!r})")
        scatter = [f"R[{base[0]!r}][{base[1:]}][i] = {base}" for base in o.written]
        fixed = [f"{name} = M.special({key!r}, L)" for key, name in o.specials.items()]
        fresh = ["sp = M.sp[L.sel]"] if o.uses_stack else []
        lines = [
            "def make(M, R, K):",
            " H = M.memory.accumulators",
            *(f" {name} = K[{name!r}]" for name in (*o.constants, *self.sites)),
        ]
        lines += [" def bind(L):", "  lo = L.lo; hi = L.hi; n = L.n", *(f"  {line}" for line in (*slices, *fixed))]
        lines += ["  def run():", *(f"   {line}" for line in (*fresh, *self.lines, *leave)), "  return run"]
        spread = (*gather, *fixed, *fresh, *self.lines, *scatter, *leave)
        return "\n".join([*lines, " def spread(L):", *(f"  {line}" for line in spread), " return bind, spread", ""])

    def _leave(self) -> list[str]:
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


def _flat(outs: Outputs) -> list[Output]:
    return [output for item in outs for output in (item if isinstance(item, list) else [item])]


def _whole(given: Actual) -> Actual:
    """Return the whole register of an operand that names a part."""
    return RegisterOperand(given.base) if isinstance(given, RegisterOperand) and given.selector else given


def unsupported(step: Step, why: str = "") -> PtxError:
    """Return the error for an instruction without semantics."""
    text = f"`{step.instruction.full_opcode}` is not simulated"
    return faults.error(faults.UNSUPPORTED, opcode_span(step.instruction), text, notes=(why,) if why else ())
