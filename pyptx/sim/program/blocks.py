"""Prepares a module for running: cuts reachable functions into blocks, gives registers rows and variables addresses.

Reads `ir` through the checker's walk; knows no lanes, memory contents or semantics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pyptx.check import checker
from pyptx.check.body import Body, Place, Step
from pyptx.check.symbols import Kind, Scope, Symbol
from pyptx.diagnostics import Diagnostic
from pyptx.ir import (
    AddressOperand,
    AliasDirective,
    Function,
    ImmediateOperand,
    IndexedOperand,
    Instruction,
    LabelOperand,
    Module,
    RegisterOperand,
    opcode_span,
)
from pyptx.ir.walk import parts_of
from pyptx.isa.limits import find_shared_start
from pyptx.isa.targets import Target
from pyptx.isa.traits import Trait
from pyptx.sim.program.frames import Frame
from pyptx.sim.program.registers import Rows
from pyptx.sim.program.variables import FUNCTION_BASE, FUNCTION_STEP, Globals, Variables
from pyptx.sim.program.vectors import Members
from pyptx.sim.rules import faults

Name = tuple[str, int]
"""A name and the identity of its declaration."""

FALL, BRANCH, TABLE, CALL, RET, EXIT, TRAP, WAIT = "fall", "branch", "table", "call", "ret", "exit", "trap", "wait"
_ENDINGS = {
    Trait.MEETS: WAIT, Trait.CALLS: CALL, Trait.RETURNS: RET, Trait.EXITS: EXIT, Trait.TRAPS: TRAP, Trait.JUMPS: BRANCH,
}  # fmt: skip
_BUILTIN_FRAME, _RECURSION = 64, 32 * 1024
_POLLED = frozenset((".volatile", ".acquire", ".relaxed", ".mmio"))
"""The modifiers of loads that poll memory."""


@dataclass(slots=True)
class Block:
    """Straight-line code.

    `ending`: how lanes leave it; unless they fall through, the last step is the instruction that does so.
    `converges`: the first step needs the lanes of its member mask, or whole units of `unit` threads.
    `suspends`: the only step may make its lanes wait.
    `polls`: it jumps back in a loop that polls memory or an mbarrier.
    `communicates`: the memory polled may be changed by other CTAs.
    `hands_on`: some lanes of a warp may release in it what others acquire in it.
    """

    pc: int
    code: Code
    steps: list[Step] = field(default_factory=list[Step])
    ending: str = FALL
    targets: tuple[int, ...] = ()
    converges: bool = False
    unit: int = 32
    suspends: bool = False
    polls: bool = False
    communicates: bool = False
    hands_on: bool = False
    after_call: Step | None = None
    labels: list[str] = field(default_factory=list[str])

    @property
    def body(self) -> list[Step]:
        """The steps without the instruction that ends the block."""
        return self.steps if self.ending == FALL else self.steps[:-1]


@dataclass(slots=True)
class Code:
    """A function ready to run: its first block, register rows and frame in local memory."""

    function: Function
    number: int
    rows: Rows
    frame: Frame
    entry: int = 0
    recursive: bool = False
    callees: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class Program:
    """All code and variables that an entry can reach."""

    module: Module
    entry: Code
    codes: list[Code]
    blocks: list[Block]
    variables: Variables
    by_name: dict[str, Code]
    communicates: bool
    cancels: bool
    pairs: bool
    """Whether it clears the lowest rank bit of shared addresses, which gives the address in a CTA pair's first CTA."""
    triggers: bool
    """Whether it executes `griddepcontrol.launch_dependents`."""
    dynamic: int | None
    """The offset of `alloca` memory in local memory, above all frames; None for a program without `alloca`."""
    target: Target

    def find_code(self, address: int) -> Code | None:
        """Return the function at an address, or None."""
        number, offset = divmod(address - FUNCTION_BASE, FUNCTION_STEP)
        return next((code for code in self.codes if code.number == number), None) if offset == 0 else None


def prepare(
    module: Module, entry: str | None, single: bool = False, variables: Globals | None = None
) -> Program:  # fmt: skip
    """Return the program of an entry. Raise PtxError if the entry is missing or reaches an illegal instruction.

    With `single`, each instruction has its own block. `variables` are those of other programs on the same memory.
    """
    bodies, names, findings = checker.collect_bodies(module)
    by_name = {body.function.name: body for body in bodies}
    entry_name = _select_entry(module, by_name, entry)
    aliases = {s.name: s.aliasee for s in module.directives if isinstance(s, AliasDirective)}
    builder = _Builder(module, by_name, aliases, findings, names, single, variables or Globals())
    builder.add(entry_name)
    builder.run()
    builder.variables.place_shared(builder.codes[0].function)
    _mark_recursion(builder.codes)
    communicates = _communicates(builder.blocks)
    cancels = any(step.traits.get(Trait.ISSUES) == "launch" for b in builder.blocks for step in b.steps)
    triggers = any(_lets_dependents_start(step) for b in builder.blocks for step in b.steps)
    pairs = any(_masks_rank(step.instruction) for block in builder.blocks for step in block.steps)
    dynamic = _find_dynamic_base(builder.codes) if _allocates(builder.blocks) else None
    return Program(
        module,
        builder.codes[0],
        builder.codes,
        builder.blocks,
        builder.variables,
        builder.by_name,
        communicates,
        cancels,
        pairs,
        triggers,
        dynamic,
        builder.target,
    )


def _select_entry(module: Module, bodies: dict[str, Body], name: str | None) -> str:
    entry_names = [n for n, body in bodies.items() if body.function.is_entry]
    if name in entry_names:
        return str(name)
    if name is None and len(entry_names) == 1:
        return entry_names[0]
    entry_list = ", ".join(f"`{n}`" for n in entry_names) or "none"
    if not entry_names:
        raise faults.error(faults.MISSING_ENTRY, module.origin, "the module has no entry: nothing to run")
    problem = f"no entry `{name!s:.80}`" if name is not None else "the module has several entries; name one"
    raise faults.error(faults.MISSING_ENTRY, module.origin, f"{problem}. Entries: {entry_list}")


class _Builder:
    """Collects functions until no new one is reachable."""

    def __init__(
        self, module: Module, bodies: dict[str, Body], aliases: dict[str, str], findings: list[Diagnostic],
        names: Scope, single: bool, variables: Globals,
    ) -> None:  # fmt: skip
        self.bodies, self.aliases, self.findings, self.single = bodies, aliases, findings, single
        self.target = checker.choose_architecture(module)
        self.variables = Variables(module, names, self.add, find_shared_start(self.target.arch), variables)
        self.codes: list[Code] = []
        self.blocks: list[Block] = []
        self.by_name: dict[str, Code] = {}
        self.totals = Rows.create_totals()
        self.members = Members()
        self.numbers = {name: number for number, name in enumerate(bodies)}

    def add(self, name: str) -> int:
        """Make a function reachable and return its number, or -1 if it is undefined."""
        if name in self.aliases:
            aliasee = self.aliases[name]
            number = self.add(aliasee)
            if number >= 0:
                self.by_name[name] = self.by_name[aliasee]
            return number
        if name in self.by_name:
            return self.by_name[name].number
        body = self.bodies.get(name)
        if body is None:
            return -1
        frame = Frame.from_function(body.function)
        code = Code(body.function, self.numbers[name], Rows(self.totals), frame)
        self.by_name[name] = code
        self.codes.append(code)
        return code.number

    def run(self) -> None:
        position = 0
        while position < len(self.codes):
            code = self.codes[position]
            body = self.bodies[code.function.name]
            self.members.expand(body)
            self._collect_references(code, body)
            _cut_blocks(code, body, self.blocks, self.single)
            position += 1

    def _collect_references(self, code: Code, body: Body) -> None:
        """Allocate the registers and variables that a body names, and add the functions."""
        visited: set[Name] = set()
        for step in body.steps:
            self._check_legal(step)
            if step.instruction.predicate is not None:
                self._add_name(step.instruction.predicate.register, step, code, visited)
            for operand in step.instruction.operands:
                for name in find_names(operand):
                    self._add_name(name, step, code, visited)

    def _check_legal(self, step: Step) -> None:
        if step.plan is None:
            place, start = opcode_span(step.instruction), step.instruction.origin
            causes = [
                d for d in self.findings
                if place is not None and start is not None and d.line == place.line
                and (d.line, d.col) >= (start.line, start.col)
            ]  # fmt: skip
            # The first finding from here on is the instruction's own; others may follow on its line.
            notes = tuple(d.message for d in sorted(causes, key=lambda d: d.col)[:1])
            text = f"`{step.instruction.full_opcode}` is not legal here"
            raise faults.error(faults.ILLEGAL, place, text, notes=notes)

    def _add_name(self, name: str, step: Step, code: Code, visited: set[Name]) -> None:
        symbol, name = resolve_name(name, step.scope)
        if symbol is None or (name, id(symbol)) in visited:
            return
        visited.add((name, id(symbol)))
        if symbol.kind is Kind.REGISTER:
            code.rows.add((name, id(symbol)), symbol)
        elif symbol.kind is Kind.FUNCTION:
            code.callees.add(self.aliases.get(name, name))
            self.add(name)
        elif symbol.kind is Kind.VARIABLE:
            if symbol.space in ("local", "param"):
                if not code.frame.has(name, symbol):
                    code.frame.add(name, symbol)
            else:
                self.variables.add(name, symbol)


def find_names(operand: object) -> Iterator[str]:
    """Yield every name in an operand."""
    for part in parts_of(operand):  # pyright: ignore[reportArgumentType]
        if isinstance(part, RegisterOperand | LabelOperand | IndexedOperand):
            yield part.name
        elif isinstance(part, AddressOperand):
            yield part.base


def resolve_name(name: str, scope: Scope) -> tuple[Symbol | None, str]:
    """Return the symbol of a name, and the name without a vector component."""
    symbol = scope.find(name)
    if symbol is None and "." in name:
        base = name.partition(".")[0]
        return scope.find(base), base
    return symbol, name


def _cut_blocks(code: Code, body: Body, blocks: list[Block], single: bool) -> None:
    """Append a function's blocks; the last one ends with an implicit `ret`."""
    first = len(blocks)
    code.entry = first
    places: dict[Name, int] = {}
    label_places = {(p.label.name, id(p.scope)): p for p in body.items if isinstance(p, Place)}
    blocks.append(Block(first, code))
    is_converged = False
    for item in body.items:
        if isinstance(item, Place):
            is_converged = False
            if blocks[-1].steps or blocks[-1].after_call:
                blocks.append(Block(len(blocks), code))
            places[item.label.name, id(item.scope)] = len(blocks) - 1
            blocks[-1].labels.append(item.label.name)
            continue
        is_wide, suspends = _is_warp_wide(item, is_converged), _may_suspend(item)
        is_alone = suspends or single or _lands_products(item)
        starts_block = (is_wide or is_alone) and not _follows_fence(blocks[-1], item)
        if starts_block and (blocks[-1].steps or blocks[-1].after_call):
            blocks.append(Block(len(blocks), code))
        blocks[-1].steps.append(item)
        blocks[-1].converges = blocks[-1].converges or is_wide
        blocks[-1].suspends = suspends
        if is_product(item):
            blocks[-1].unit = 128
        ending = _find_ending(item)
        is_converged = ending is None and not suspends and (_keeps_warp_converged(item) if is_wide else is_converged)
        if ending is not None:
            blocks[-1].ending = ending
            call_step = item if ending == CALL else None
            blocks.append(Block(len(blocks), code, after_call=call_step))
        elif is_alone or (is_wide and item.instruction.predicate is not None):
            blocks.append(Block(len(blocks), code))
    blocks[-1].ending = RET
    blocks[-1].steps.append(_RETURN)
    for block in blocks[first:]:
        if block.ending in (BRANCH, TABLE):
            block.targets = _find_targets(block.steps[-1], places, label_places)
        block.hands_on = _hands_on(block)
    _mark_polling(blocks, first)


_RETURN = Step(Instruction("ret"), Scope(), None)


def _is_warp_wide(step: Step, is_converged: bool) -> bool:
    """Return whether the lanes of a warp wait for one another at a step. If the warp `is_converged`, only the product
    of a warpgroup needs to wait."""
    threads = step.traits.get(Trait.GATHERS)
    if threads == "warpgroup":
        return not is_converged or is_product(step)
    return threads is not None


def is_product(step: Step) -> bool:
    """Return whether a step is `wgmma.mma_async`."""
    return step.traits.get(Trait.ISSUES) == "wgmma"


def _follows_fence(block: Block, step: Step) -> bool:
    """Return whether a step is a product right after the block's only step, the fence at which its warpgroup
    converges."""
    if not block.converges or len(block.steps) != 1 or not is_product(step) or step.instruction.predicate is not None:
        return False
    return block.steps[0].traits.get(Trait.ORDERS) == "registers"


def _keeps_warp_converged(step: Step) -> bool:
    """Return whether all lanes of a warp that execute a warp-wide step stay together after it."""
    return Trait.ALIGNED in step.traits and step.instruction.predicate is None


def _hands_on(block: Block) -> bool:
    """Return whether lanes of a warp may release what others acquire, ordered only by running in lockstep."""
    is_warp_wide = block.converges or any(".aligned" in step.instruction.modifiers for step in block.steps)
    return not is_warp_wide and sum(_synchronizes(step) for step in block.steps) > 1


def _synchronizes(step: Step) -> bool:
    modifiers = step.instruction.modifiers
    if step.traits.get(Trait.ORDERS) == "":
        return not any("proxy" in modifier or "mbarrier_init" in modifier for modifier in modifiers)
    return any(modifier in (".acquire", ".release", ".acq_rel") for modifier in modifiers)


def _lets_dependents_start(step: Step) -> bool:
    return step.traits.get(Trait.MEETS) == "grid" and Trait.ARRIVES in step.traits


def _may_suspend(step: Step) -> bool:
    return Trait.SUSPENDS in step.traits


def _lands_products(step: Step) -> bool:
    """Return whether a step may write registers of any pending product; it needs its own block, as blocks gather
    registers when they start."""
    return step.traits.get(Trait.LANDS) == "wgmma"


def _find_ending(step: Step) -> str | None:
    traits = step.traits
    if traits.get(Trait.JUMPS) == "table":
        return TABLE
    return next((ending for trait, ending in _ENDINGS.items() if trait in traits), None)


def _find_targets(step: Step, places: dict[Name, int], lists: dict[Name, Place]) -> tuple[int, ...]:
    label = step.instruction.operands[-1]
    assert isinstance(label, LabelOperand)
    place = lists.get(_find_declaration(label.name, step.scope, lists))
    if place is not None and place.targets is not None:
        return tuple(places[_find_declaration(name, place.scope, lists)] for name in place.targets.labels)
    return (places[_find_declaration(label.name, step.scope, lists)],)


def _find_declaration(name: str, scope: Scope, places: dict[Name, Place]) -> Name:
    inner: Scope | None = scope
    while inner is not None:
        if (name, id(inner)) in places:
            return name, id(inner)
        inner = inner.parent
    raise KeyError(name)


def _mark_polling(blocks: list[Block], first: int) -> None:
    """Mark the blocks that jump back in a loop that polls."""
    polls = [any(_polls(step) for step in block.steps) for block in blocks[first:]]
    tests = [any(tests_mbarrier(step) for step in block.steps) for block in blocks[first:]]
    for block in blocks[first:]:
        for target in block.targets if block.ending in (BRANCH, TABLE) else ():
            if target <= block.pc:
                loop = slice(target - first, block.pc - first + 1)
                block.communicates = block.communicates or any(polls[loop])
                block.polls = block.communicates or any(tests[loop])


def _polls(step: Step) -> bool:
    if Trait.LOADS in step.traits:
        return Trait.UPDATES in step.traits or not _POLLED.isdisjoint(step.instruction.modifiers)
    return Trait.PAUSES in step.traits


def tests_mbarrier(step: Step) -> bool:
    """Return whether a step tests an mbarrier without suspending lanes; a wait that suspends needs no parking."""
    return Trait.TESTS in step.traits and Trait.SUSPENDS not in step.traits


def _allocates(blocks: list[Block]) -> bool:
    return any(step.traits.get(Trait.ALLOCATES) == "stack" for block in blocks for step in block.steps)


def _find_dynamic_base(codes: list[Code]) -> int:
    """Return an offset above all frames; recursive functions get room for some depth."""
    size = _BUILTIN_FRAME + sum(code.frame.size for code in codes)
    return -(-(size + (_RECURSION if any(code.recursive for code in codes) else 0)) // 64) * 64


def _communicates(blocks: list[Block]) -> bool:
    """Return whether CTAs of different clusters may wait for one another: a loop polls memory."""
    return any(block.communicates for block in blocks)


def _masks_rank(instruction: Instruction) -> bool:
    """Return whether an instruction clears bit 24 and no other bit of the uppermost eight."""
    if instruction.opcode != "and" or not isinstance(instruction.operands[-1], ImmediateOperand):
        return False
    number = instruction.operands[-1].value
    return isinstance(number, int) and number >> 24 & 0xFF == 0xFE


def _mark_recursion(codes: list[Code]) -> None:
    """Mark functions that can reach themselves. `callees` also holds functions whose address is taken, which indirect
    calls may reach."""
    by_name = {code.function.name: code for code in codes}
    for code in codes:
        worklist, visited = list(code.callees), set[str]()
        while worklist:
            name = worklist.pop()
            if name in by_name and name not in visited:
                visited.add(name)
                worklist += by_name[name].callees
        code.recursive = code.function.name in visited
