"""Which instructions can cause the events that lanes wait for, and from where they are reachable: static facts for
reports of hangs. Knows no lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyptx.check.body import Step
from pyptx.check.flow import Register, collect_accesses
from pyptx.check.symbols import Kind, Scope
from pyptx.ir import AddressOperand, BinaryOperand, ImmediateOperand, LabelOperand, displacement
from pyptx.ir.operands import Operand
from pyptx.isa.model import Kind as OperandKind
from pyptx.isa.traits import Trait
from pyptx.sim.program.assignment import find_successors
from pyptx.sim.program.blocks import BRANCH, CALL, EXIT, RET, Block, Program, find_names, resolve_name

_DEEP = 64
"""How many definitions of an address to follow."""


@dataclass(frozen=True, slots=True)
class Source:
    """An instruction that can cause an event, and where its address may start: symbols with byte offsets; none if
    unknown."""

    pc: int
    step: Step
    origins: frozenset[tuple[str, int]]


@dataclass(slots=True)
class Reach:
    """Reachability in a program, computed on demand."""

    program: Program
    _after: dict[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])
    _writers: dict[Register, list[Step]] | None = None
    _before: dict[tuple[int, int, bool], bool] = field(default_factory=dict[tuple[int, int, bool], bool])
    _dominators: dict[int, dict[int, int]] = field(default_factory=dict[int, dict[int, int]])

    def find_sources(self, matcher: Callable[[Step], Operand | None], name: str = "") -> list[Source]:
        """Return the instructions for which `matcher` returns the operand that names their target, if it may be a
        symbol of this name; an operand without an address may be any."""
        matches: list[Source] = []
        for block in self.program.blocks:
            for step in block.steps:
                target = matcher(step) if step.plan is not None else None
                if target is not None:
                    origins = self.find_origins(target, step.scope)
                    if not name or not origins or any(symbol == name for symbol, _ in origins):
                        matches.append(Source(block.pc, step, origins))
        return matches

    def find_reachable(self, pc: int) -> frozenset[int]:
        """Return the blocks that lanes at a block can reach, including itself."""
        reachable = self._after.get(pc)
        if reachable is None:
            blocks, todo = {pc}, [pc]
            while todo:
                for successor in self._list_successors(self.program.blocks[todo.pop()]):
                    if successor not in blocks:
                        blocks.add(successor)
                        todo.append(successor)
            reachable = self._after[pc] = frozenset(blocks)
        return reachable

    def _list_successors(self, block: Block) -> tuple[int, ...]:
        """Return the blocks that lanes may enter next, including those of other functions."""
        after = find_successors(block)
        if block.ending == CALL:
            entries = {c.function.name: c.entry for c in self.program.codes}
            return (*after, *(entries[n] for n in block.code.callees if n in entries))
        if block.ending == RET and not block.code.function.is_entry:
            return (*after, *(b.pc for b in self.program.blocks if b.after_call is not None))
        return after

    def precedes(self, start: int, pc: int, is_runnable: bool) -> bool:
        """Tell whether lanes at a block can reach another block of the function in the same loop iteration as the other
        lanes: lanes of one warp run lowest block first, so no lane that jumped back from a higher block has overtaken
        lanes that can run."""
        is_before = self._before.get((start, pc, is_runnable))
        if is_before is None:
            blocks, todo = {start}, [start]
            while todo and pc not in blocks:
                current = todo.pop()
                for successor in self._follow_within(current):
                    repeats = is_runnable and current >= start and self._closes_loop(current, successor, pc)
                    if successor not in blocks and not repeats:
                        blocks.add(successor)
                        todo.append(successor)
            is_before = self._before[start, pc, is_runnable] = pc in blocks
        return is_before

    def only_exits(self, pc: int) -> bool:
        """Tell whether lanes at a block of the entry only exit."""
        for _ in range(_DEEP):
            block = self.program.blocks[pc]
            if len(block.steps) > 1 or (block.steps and block.steps[0].instruction.predicate is not None):
                return False
            if block.ending in (RET, EXIT):
                return True
            if block.ending != BRANCH:
                return False
            pc = block.targets[0]
        return False

    def _follow_within(self, pc: int) -> tuple[int, ...]:
        """Return the successors of a block in its function; calls return."""
        return find_successors(self.program.blocks[pc])

    def _closes_loop(self, source: int, head: int, pc: int) -> bool:
        """Tell whether a jump from one block to another closes a loop that contains a third."""
        above = self._compute_dominators(source)
        if head not in self._collect_dominators(above, source):
            return False
        blocks, todo = {pc}, [pc]
        while todo:
            current = todo.pop()
            if current == source:
                return True
            successors = [block for block in self._follow_within(current) if block not in blocks and block != head]
            blocks.update(successors)
            todo += successors
        return False

    @staticmethod
    def _collect_dominators(above: dict[int, int], pc: int) -> set[int]:
        """Return the dominators of a block, including itself."""
        blocks = {pc}
        while pc in above and above[pc] != pc:
            pc = above[pc]
            blocks.add(pc)
        return blocks

    def _compute_dominators(self, pc: int) -> dict[int, int]:
        """Return the immediate dominator of each block of a function (the algorithm of Cooper, Harvey and Kennedy)."""
        entry = self.program.blocks[pc].code.entry
        if entry not in self._dominators:
            order = self._order_blocks(entry)
            rank = {block: position for position, block in enumerate(order)}
            sources: dict[int, list[int]] = {block: [] for block in order}
            for block in order:
                for successor in self._follow_within(block):
                    sources[successor].append(block)
            above, has_changed = {entry: entry}, True
            while has_changed:
                has_changed = False
                for block in order[1:]:
                    candidates = [source for source in sources[block] if source in above]
                    dominator = candidates[0]
                    for source in candidates[1:]:
                        while dominator != source:
                            if rank[dominator] > rank[source]:
                                dominator = above[dominator]
                            else:
                                source = above[source]
                    has_changed = has_changed or above.get(block) != dominator
                    above[block] = dominator
            self._dominators[entry] = above
        return self._dominators[entry]

    def _order_blocks(self, entry: int) -> list[int]:
        """Return the blocks of a function in reverse postorder: each before its successors, except in loops."""
        postorder, blocks_found = list[int](), {entry}
        stack = [(entry, iter(self._follow_within(entry)))]
        while stack:
            block, successors = stack[-1]
            successor = next((after for after in successors if after not in blocks_found), None)
            if successor is None:
                stack.pop()
                postorder.append(block)
            else:
                blocks_found.add(successor)
                stack.append((successor, iter(self._follow_within(successor))))
        return postorder[::-1]

    def find_symbols(self, operand: Operand, scope: Scope) -> frozenset[str]:
        """Return the variables and parameters that an address may come from, through the registers that compute it."""
        return frozenset(symbol for symbol, _ in self.find_origins(operand, scope))

    def find_origins(self, operand: Operand, scope: Scope) -> frozenset[tuple[str, int]]:
        """Return the variables and parameters that an address may come from, each with the constant number of bytes
        next to it, through the registers that compute it."""
        bases, registers = set[tuple[str, int]](), set[Register]()
        todo = [(name, offset, scope) for name, offset in _find_bases(operand)]
        while todo and len(registers) < _DEEP:
            name, offset, inside = todo.pop()
            symbol, base = resolve_name(name, inside)
            if symbol is None:
                continue
            if symbol.kind is not Kind.REGISTER:
                bases.add((base, offset))
                continue
            key = (base, id(symbol))
            if key in registers:
                continue
            registers.add(key)
            for step in self._index_definitions().get(key, ()):
                todo += [(*start, step.scope) for source in step.instruction.operands for start in _find_bases(source)]
        return frozenset(bases)

    def _index_definitions(self) -> dict[Register, list[Step]]:
        if self._writers is None:
            self._writers = {}
            for block in self.program.blocks:
                for step in block.steps:
                    if step.plan is not None:
                        for register in collect_accesses(step)[1]:
                            self._writers.setdefault(register, []).append(step)
        return self._writers


def _find_bases(operand: Operand) -> list[tuple[str, int]]:
    """Return the names in an operand, with the constant that is added to each."""
    if isinstance(operand, AddressOperand) and not operand.rest:
        return [(operand.base, displacement(operand) or 0)]
    if isinstance(operand, BinaryOperand) and operand.operator == "+":
        left, right = operand.left, operand.right
        if isinstance(left, LabelOperand) and isinstance(right, ImmediateOperand) and isinstance(right.value, int):
            return [(left.name, right.value)]
    return [(name, 0) for name in find_names(operand)]


def match_arrival(step: Step) -> Operand | None:
    """Return the mbarrier of an instruction that may complete a phase."""
    plan, instruction = step.plan, step.instruction
    assert plan is not None
    if Trait.SIGNALS in step.traits:
        return find_address(step)
    for signature_operand, operand in zip(plan.signature, instruction.operands, strict=True):
        if signature_operand.name == "mbar":
            return operand
    return None


def make_bar_matcher(number: int) -> Callable[[Step], Operand | None]:
    """Return a matcher of CTA barriers with this number or one that is not constant."""

    def match_bar(step: Step) -> Operand | None:
        instruction = step.instruction
        if step.traits.get(Trait.MEETS) != "cta":
            return None
        index = 1 if Trait.REDUCES in step.traits else 0
        operand = instruction.operands[index]
        return None if isinstance(operand, ImmediateOperand) and int(operand.value) != number else operand

    return match_bar


def match_cluster_arrival(step: Step) -> Operand | None:
    """Return an operand if the instruction arrives at the barrier of its cluster."""
    arrives = step.traits.get(Trait.MEETS) == "cluster" and Trait.ARRIVES in step.traits
    return LabelOperand("") if arrives else None


def match_decrease(step: Step) -> Operand | None:
    """Return an operand if the instruction releases registers."""
    gives = step.traits.get(Trait.SUSPENDS) == "registers" and ".dec" in step.instruction.modifiers
    return LabelOperand("") if gives else None


def match_deallocation(step: Step) -> Operand | None:
    """Return an operand if the instruction frees columns of tensor memory."""
    return LabelOperand("") if step.traits.get(Trait.FREES) == "columns" else None


def match_write(step: Step) -> Operand | None:
    """Return the address that an instruction writes, None for mbarriers in shared memory."""
    plan = step.plan
    assert plan is not None
    if Trait.OPAQUE in step.traits:
        return None
    for signature_operand, operand in zip(plan.signature, step.instruction.operands, strict=True):
        if signature_operand.kind is OperandKind.ADDRESS and "w" in signature_operand.access:
            return operand
    return None


def find_address(step: Step) -> Operand | None:
    """Return the first address of an instruction."""
    if step.plan is None:
        return None
    for signature_operand, operand in zip(step.plan.signature, step.instruction.operands, strict=True):
        if signature_operand.kind is OperandKind.ADDRESS:
            return operand
    return None
