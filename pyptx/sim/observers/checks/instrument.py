"""Which instructions of a checked program report more to the engine than the bytes that their lanes access.

`wrap_access` returns the function that replaces an instruction's own; `list_events` those that are called before it,
with its guard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from pyptx.check.body import Step
from pyptx.ir import VectorOperand
from pyptx.isa.traits import Trait
from pyptx.sim.execution.operands import Operands
from pyptx.sim.observers.checks import (
    convergence,
    copies,
    fences,
    matrix_rows,
    mbarriers,
    numerics,
    products,
    tensor,
    tensormaps,
    wgmma,
)
from pyptx.sim.observers.checks.integers import Integers
from pyptx.sim.observers.checks.session import make_place
from pyptx.sim.observers.checks.subscripts import Subscripts
from pyptx.sim.program.blocks import Block, Code, Program, find_names, is_product
from pyptx.sim.semantics.vocabulary import Operation

Function = Callable[..., Any]


class Instrument:
    """The hooks of one program's instructions."""

    def __init__(self, program: Program, numerics: bool) -> None:
        self.program, self.numerics = program, numerics
        self._integers = Integers(program)
        self._products: dict[int, frozenset[int]] = {}
        self._reads: dict[int, frozenset[int]] = {}
        self._subscripts = Subscripts()

    def wrap_access(self, step: Step, operation: Operation, block: Block) -> Function | None:
        """Return the function of an instruction that accesses memory, which reports it and, if selected, checks for NaN
        and infinity."""
        if not self.numerics:
            return self._hook(step, operation, block)
        operation = numerics.watch_sums(products.watch_issue(operation))
        hook = self._hook(step, operation, block) or operation.function
        return None if hook is None else products.watch_warpgroup_product(operation, hook) or hook

    def _hook(self, step: Step, operation: Operation, block: Block) -> Function | None:
        inner = operation.function
        assert inner is not None
        match step.traits:
            case {Trait.ISSUES: "store"} if _is_signal(step):
                return copies.hook(step, inner)
            case {Trait.ISSUES: "cp.async"} | {Trait.SIGNALS: _, Trait.COMMITS: "cp.async"}:
                return copies.hook(step, inner)
            case {Trait.ISSUES: "launch"}:
                return copies.hook_request(step, inner)
            case {Trait.OPAQUE: "mbarrier"}:
                return mbarriers.hook(step, inner)
            case {Trait.OPAQUE: "tensormap"}:
                return tensormaps.hook(step, inner)
            case {Trait.GATHERS: "warpgroup"}:
                return wgmma.hook(
                    step, inner, lambda name: self._number_register(name, step, block), self._find_reads(block.code)
                )
            case {Trait.TENSOR: _}:
                return tensor.hook(step, inner)
            case _:
                return None

    def list_events(self, step: Step, block: Block) -> list[tuple[Function, bool]]:
        """Return the functions to call before an instruction, and whether each takes the operands."""
        hooks: list[tuple[Function, bool]] = []
        event = _make_event(step, self.program)
        if event is not None:
            hooks.append((event, True))
        subscript_check = self._subscripts.make_event(step, block.code)
        if subscript_check is not None:
            hooks.append((subscript_check, True))
        integer_check = self._integers.make_event(step, block) if self.numerics else None
        if integer_check is not None:
            hooks.append((integer_check, True))
        product_registers = self._find_touched(step, block)
        if product_registers:
            hooks.append((partial(wgmma.record_touch, make_place(step.instruction), product_registers), False))
        return hooks

    def watch_values(self, step: Step, operation: Operation) -> Function | None:
        """Return the function of an instruction that computes and checks for NaN and infinity; None if not selected."""
        if not self.numerics or operation.function is None:
            return None
        return numerics.watch_operation(step, operation) or products.watch_warp_product(step, operation.function)

    def _find_touched(self, step: Step, block: Block) -> frozenset[int]:
        """Return the registers of products that another instruction names."""
        products = self._find_product_registers(block.code)
        if not products or step.traits.get(Trait.GATHERS) == "warpgroup":
            return frozenset()
        names = {name for operand in step.instruction.operands for name in find_names(operand)}
        numbers = {self._number_register(name, step, block) for name in names}
        return products & {number for number in numbers if number is not None}

    def _find_product_registers(self, code: Code) -> frozenset[int]:
        """Return the registers that the products of a function use."""
        registers = self._products.get(code.number)
        if registers is None:
            numbers: set[int | None] = set()
            for block in self.program.blocks:
                for step in block.steps if block.code is code else ():
                    if is_product(step):
                        for operand in step.instruction.operands:
                            if isinstance(operand, VectorOperand):
                                numbers |= {self._number_register(name, step, block) for name in find_names(operand)}
            registers = self._products[code.number] = frozenset(n for n in numbers if n is not None)
        return registers

    def _find_reads(self, code: Code) -> frozenset[int]:
        """Return the registers of a function that instructions read, except accumulators of products."""
        registers = self._reads.get(code.number)
        if registers is None:
            numbers: set[int | None] = set()
            for block in self.program.blocks:
                for step in block.steps if block.code is code else ():
                    numbers |= {self._number_register(name, step, block) for name in _iterate_sources(step)}
            registers = self._reads[code.number] = frozenset(n for n in numbers if n is not None)
        return registers

    def _number_register(self, name: str, step: Step, block: Block) -> int | None:
        """Return the number of a 32-bit register."""
        row = Operands(self.program, block).find_row(name, step.scope)
        return row.index if row is not None and row.letter == "r" else None


def _iterate_sources(step: Step) -> Iterator[str]:
    """Yield the names of the registers that an instruction reads, except accumulators."""
    signature = step.plan.signature if step.plan is not None else ()
    for signature_operand, operand in zip(signature, step.instruction.operands, strict=False):
        if signature_operand.access == "r" or (signature_operand.access != "w" and not is_product(step)):
            yield from find_names(operand)


def _make_event(step: Step, program: Program) -> Function | None:
    match step.traits:
        case {Trait.ORDERS: ""}:
            return fences.hook(step)
        case {Trait.GATHERS: "warpgroup"}:
            return wgmma.make_event(step)
        case {Trait.TENSOR: _}:
            return tensor.make_event(step)
        case {Trait.COMMITS: _} | {Trait.LANDS: _}:
            return copies.make_group_event(step)
        case {Trait.REARRANGES: "rows"}:
            return matrix_rows.make_event(step)
        case {Trait.REARRANGES: "fragment"}:
            return convergence.make_matrix_event(step)
        case {Trait.GATHERS: "warp", Trait.YIELDS: _} | {Trait.GATHERS: "warp", Trait.CARRIES: _}:
            return convergence.make_event(step, program)
        case {Trait.SUSPENDS: "registers"}:
            return convergence.make_event(step, program)
        case _:
            return None


def _is_signal(step: Step) -> bool:
    return any("mbarrier::complete_tx" in modifier for modifier in step.instruction.modifiers)
