"""Prepares a module for running: reachable functions as blocks of steps, registers as rows, variables as addresses.

Reads `ir` through the checker's walk; knows no lanes, no memory contents and no semantics.
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
from pyptx.isa.targets import Target
from pyptx.isa.traits import Trait
from pyptx.sim.program.frames import Frame
from pyptx.sim.program.registers import Rows
from pyptx.sim.program.variables import FUNCTION_BASE, FUNCTION_STEP, RESERVED_SHARED, Globals, Variables
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
"""How loads look at memory that others change."""


@dataclass(slots=True)
class Block:
    """Straight-line code. `ending` says how lanes leave it; the last step is that instruction unless it falls through.
    `converges`: the first step needs the lanes its member mask names, of `unit` threads at least. `suspends`: the only
    step may find that its lanes have to wait. `polls`, `communicates`: it jumps back in a loop that looks at memory
    which others change, of other CTAs too. `hands_on`: lanes of a warp may release in it what others acquire in it."""

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
        """The steps that are plain computation."""
        return self.steps if self.ending == FALL else self.steps[:-1]


@dataclass(slots=True)
class Code:
    """One function, ready to run: its first block, its registers and its frame in local memory."""

    function: Function
    number: int
    rows: Rows
    frame: Frame
    entry: int = 0
    recursive: bool = False
    callees: set[str] = field(default_factory=set[str])


@dataclass(slots=True)
class Program:
    """Everything that one entry can reach."""

    module: Module
    entry: Code
    codes: list[Code]
    blocks: list[Block]
    variables: Variables
    by_name: dict[str, Code]
    communicates: bool
    cancels: bool
    pairs: bool
    """Whether it masks the lowest bit of the rank in addresses of shared memory, which leads to a pair's first CTA."""
    triggers: bool
    """Whether it lets the grid behind it start early."""
    dynamic: int | None
    """Where memory of `alloca` starts in local memory, above the frames of all functions; None without any."""
    where: Target

    def code_at(self, address: int) -> Code | None:
        """Return the function that has this address."""
        number, rest = divmod(address - FUNCTION_BASE, FUNCTION_STEP)
        return self.codes[number] if rest == 0 and 0 <= number < len(self.codes) else None


def prepare(
    module: Module, entry: str | None, single: bool = False, variables: Globals | None = None
) -> Program:  # fmt: skip
    """Return the program of an entry, with `single` each instruction in a block of its own; PtxError when the entry is
    missing or one of its instructions is illegal. `variables` are those of other programs on the same memory."""
    bodies, names, findings = checker.collect_bodies(module)
    by_name = {body.function.name: body for body in bodies}
    chosen = _entry(module, by_name, entry)
    aliases = {s.name: s.aliasee for s in module.directives if isinstance(s, AliasDirective)}
    builder = _Builder(module, by_name, aliases, findings, names, single, variables or Globals())
    builder.add(chosen)
    builder.run()
    builder.variables.settle(builder.codes[0].function)
    _mark_recursion(builder.codes)
    communicates = _communicates(builder.blocks)
    cancels = any(".try_cancel" in step.instruction.modifiers for b in builder.blocks for step in b.steps)
    triggers = any(".launch_dependents" in step.instruction.modifiers for b in builder.blocks for step in b.steps)
    pairs = any(_masks_rank(step.instruction) for block in builder.blocks for step in block.steps)
    dynamic = _above_frames(builder.codes) if _allocates(builder.blocks) else None
    return Program(
        module,
        builder.codes[0],
        builder.codes,
        builder.blocks,
        builder.variables,
        builder.found,
        communicates,
        cancels,
        pairs,
        triggers,
        dynamic,
        builder.where,
    )


def _entry(module: Module, bodies: dict[str, Body], name: str | None) -> str:
    entries = [n for n, body in bodies.items() if body.function.is_entry]
    if name in entries:
        return str(name)
    if name is None and len(entries) == 1:
        return entries[0]
    shown = ", ".join(f"`{n}`" for n in entries) or "none"
    if not entries:
        raise faults.error(faults.MISSING_ENTRY, module.origin, "the module has no entry: nothing to run")
    wanted = f"no entry `{name!s:.80}`" if name is not None else "the module has several entries, name one"
    raise faults.error(faults.MISSING_ENTRY, module.origin, f"{wanted}; its entries are {shown}")


class _Builder:
    """Collects functions until no new one is reachable."""

    def __init__(
        self, module: Module, bodies: dict[str, Body], aliases: dict[str, str], findings: list[Diagnostic],
        names: Scope, single: bool, variables: Globals,
    ) -> None:  # fmt: skip
        self.bodies, self.aliases, self.findings, self.single = bodies, aliases, findings, single
        self.where = checker.choose_architecture(module)
        self.variables = Variables(module, names, self.add, RESERVED_SHARED if self.where.arch >= 90 else 0, variables)
        self.codes: list[Code] = []
        self.blocks: list[Block] = []
        self.found: dict[str, Code] = {}
        self.totals = Rows.totals()
        self.members = Members()

    def add(self, name: str) -> int:
        """Return the number of a function, which becomes reachable; -1 for an undefined one."""
        if name in self.aliases:
            number = self.add(self.aliases[name])
            if number >= 0:
                self.found[name] = self.codes[number]
            return number
        if name in self.found:
            return self.found[name].number
        body = self.bodies.get(name)
        if body is None:
            return -1
        frame = Frame.of(body.function)
        code = Code(body.function, len(self.codes), Rows(self.totals), frame)
        self.found[name] = code
        self.codes.append(code)
        return code.number

    def run(self) -> None:
        done = 0
        while done < len(self.codes):
            code = self.codes[done]
            body = self.bodies[code.function.name]
            self.members.expand(body)
            self._references(code, body)
            _cut(code, body, self.blocks, self.single)
            done += 1

    def _references(self, code: Code, body: Body) -> None:
        """Allocate the variables and find the functions that a body names."""
        seen: set[Name] = set()
        for param in (*(code.function.return_params or ()), *code.function.params):
            if param.state_space.ptx == ".reg":
                scope = body.items[0].scope if body.items else Scope()
                for name in self.members.of(param.name, scope) or (param.name,):
                    symbol = scope.find(name)
                    if symbol is not None:
                        code.rows.add((name, id(symbol)), symbol)
        for step in body.steps:
            self._legal(step)
            if step.instruction.predicate is not None:
                self._name(step.instruction.predicate.register, step, code, seen)
            for operand in step.instruction.operands:
                for name in names_in(operand):
                    self._name(name, step, code, seen)

    def _legal(self, step: Step) -> None:
        if step.plan is None:
            line = opcode_span(step.instruction)
            why = [d for d in self.findings if line is not None and d.line == line.line]
            notes = tuple(d.message for d in why[:2])
            text = f"`{step.instruction.full_opcode}` is not legal here"
            raise faults.error(faults.ILLEGAL, line, text, notes=notes)

    def _name(self, name: str, step: Step, code: Code, seen: set[Name]) -> None:
        symbol, name = resolved(name, step.scope)
        if symbol is None or (name, id(symbol)) in seen:
            return
        seen.add((name, id(symbol)))
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
                self.variables.use(name, symbol)


def names_in(operand: object) -> Iterator[str]:
    """Yield every name an operand mentions."""
    for part in parts_of(operand):  # pyright: ignore[reportArgumentType]
        if isinstance(part, RegisterOperand | LabelOperand | IndexedOperand):
            yield part.name
        elif isinstance(part, AddressOperand):
            yield part.base


def resolved(name: str, scope: Scope) -> tuple[Symbol | None, str]:
    """Return what a name means, and the name without the component that a vector register may have."""
    symbol = scope.find(name)
    if symbol is None and "." in name:
        base = name.partition(".")[0]
        return scope.find(base), base
    return symbol, name


def _cut(code: Code, body: Body, blocks: list[Block], single: bool) -> None:
    """Append a function's blocks; the last one is an implied `ret`."""
    first = len(blocks)
    code.entry = first
    places: dict[Name, int] = {}
    lists = {(p.label.name, id(p.scope)): p for p in body.items if isinstance(p, Place)}
    blocks.append(Block(first, code))
    met = False
    for item in body.items:
        if isinstance(item, Place):
            met = False
            if blocks[-1].steps or blocks[-1].after_call:
                blocks.append(Block(len(blocks), code))
            places[item.label.name, id(item.scope)] = len(blocks) - 1
            blocks[-1].labels.append(item.label.name)
            continue
        wide, suspends = _is_warp_wide(item, met), _may_suspend(item)
        alone = suspends or single or _lands_products(item)
        apart = (wide or alone) and not _behind(blocks[-1], item)
        if apart and (blocks[-1].steps or blocks[-1].after_call):
            blocks.append(Block(len(blocks), code))
        blocks[-1].steps.append(item)
        blocks[-1].converges = blocks[-1].converges or wide
        blocks[-1].suspends = suspends
        if is_product(item):
            blocks[-1].unit = 128
        ending = _ending(item)
        met = ending is None and not suspends and (_meet(item) if wide else met)
        if ending is not None:
            blocks[-1].ending = ending
            after = item if ending == CALL else None
            blocks.append(Block(len(blocks), code, after_call=after))
        elif alone or (wide and item.instruction.predicate is not None):
            blocks.append(Block(len(blocks), code))
    blocks[-1].ending = RET
    blocks[-1].steps.append(_RETURN)
    for block in blocks[first:]:
        if block.ending in (BRANCH, TABLE):
            block.targets = _targets(block.steps[-1], places, lists)
        block.hands_on = _hands_on(block)
    _mark_polling(blocks, first)


_RETURN = Step(Instruction("ret"), Scope(), None)


def _is_warp_wide(step: Step, met: bool) -> bool:
    """Say whether the lanes of a warp wait for one another at a step. `met`: they have done so before and nothing can
    have parted them since, so that only warpgroups need more."""
    threads = step.traits.get(Trait.GATHERS)
    if threads == "warpgroup":
        return not met or is_product(step)
    return threads is not None


def is_product(step: Step) -> bool:
    """Say whether a step is the product of a warpgroup."""
    return step.traits.get(Trait.ISSUES) == "wgmma"


def _behind(block: Block, step: Step) -> bool:
    """Say whether a step is the product behind a block's only step, the fence at which its warpgroup can meet."""
    if not block.converges or len(block.steps) != 1 or not is_product(step) or step.instruction.predicate is not None:
        return False
    return block.steps[0].traits.get(Trait.ORDERS) == "registers"


def _meet(step: Step) -> bool:
    """Say whether all lanes of the warps that execute a warp-wide step go on together behind it."""
    return Trait.ALIGNED in step.traits and step.instruction.predicate is None


def _hands_on(block: Block) -> bool:
    """Say whether lanes of a warp may release what others acquire, with nothing that orders them but their lockstep."""
    whole = block.converges or any(".aligned" in step.instruction.modifiers for step in block.steps)
    return not whole and sum(_synchronizes(step) for step in block.steps) > 1


def _synchronizes(step: Step) -> bool:
    modifiers = step.instruction.modifiers
    if step.traits.get(Trait.ORDERS) == "":
        return not any("proxy" in modifier or "mbarrier_init" in modifier for modifier in modifiers)
    return any(modifier in (".acquire", ".release", ".acq_rel") for modifier in modifiers)


def _may_suspend(step: Step) -> bool:
    return Trait.SUSPENDS in step.traits


def _lands_products(step: Step) -> bool:
    """Say whether a step may change registers of any product: blocks gather registers before they begin."""
    return step.traits.get(Trait.LANDS) == "wgmma"


def _ending(step: Step) -> str | None:
    found = step.traits
    if found.get(Trait.JUMPS) == "table":
        return TABLE
    return next((ending for trait, ending in _ENDINGS.items() if trait in found), None)


def _targets(step: Step, places: dict[Name, int], lists: dict[Name, Place]) -> tuple[int, ...]:
    label = step.instruction.operands[-1]
    assert isinstance(label, LabelOperand)
    place = lists.get(_declared(label.name, step.scope, lists))
    if place is not None and place.targets is not None:
        return tuple(places[_declared(name, place.scope, lists)] for name in place.targets.labels)
    return (places[_declared(label.name, step.scope, lists)],)


def _declared(name: str, scope: Scope, places: dict[Name, Place]) -> Name:
    inner: Scope | None = scope
    while inner is not None:
        if (name, id(inner)) in places:
            return name, id(inner)
        inner = inner.parent
    raise KeyError(name)


def _mark_polling(blocks: list[Block], first: int) -> None:
    """Mark the blocks that jump back over code which looks at memory others change."""
    looks = [any(_looks(step) for step in block.steps) for block in blocks[first:]]
    tests = [any(_tests(step) for step in block.steps) for block in blocks[first:]]
    for block in blocks[first:]:
        for target in block.targets if block.ending in (BRANCH, TABLE) else ():
            if target <= block.pc:
                loop = slice(target - first, block.pc - first + 1)
                block.communicates = block.communicates or any(looks[loop])
                block.polls = block.communicates or any(tests[loop])


def _looks(step: Step) -> bool:
    if Trait.LOADS in step.traits:
        return Trait.UPDATES in step.traits or not _POLLED.isdisjoint(step.instruction.modifiers)
    return Trait.PAUSES in step.traits


def _tests(step: Step) -> bool:
    """Say whether a step looks at an mbarrier and goes on: a wait that suspends its lanes needs no parking."""
    return Trait.TESTS in step.traits and Trait.SUSPENDS not in step.traits


def _allocates(blocks: list[Block]) -> bool:
    return any(step.traits.get(Trait.ALLOCATES) == "stack" for block in blocks for step in block.steps)


def _above_frames(codes: list[Code]) -> int:
    """Return an offset that no frame reaches; functions that enter themselves get room for some depth."""
    size = _BUILTIN_FRAME + sum(code.frame.size for code in codes)
    return -(-(size + (_RECURSION if any(code.recursive for code in codes) else 0)) // 64) * 64


def _communicates(blocks: list[Block]) -> bool:
    """Say whether CTAs of different clusters may wait for one another: a loop polls memory."""
    return any(block.communicates for block in blocks)


def _masks_rank(instruction: Instruction) -> bool:
    """Tell whether an instruction clears bit 24 alone of the uppermost bits."""
    if instruction.opcode != "and" or not isinstance(instruction.operands[-1], ImmediateOperand):
        return False
    number = instruction.operands[-1].value
    return isinstance(number, int) and number >> 24 & 0xFF == 0xFE


def _mark_recursion(codes: list[Code]) -> None:
    """Mark functions that can reach themselves; with an indirect call, every function whose address is taken may be
    reached from it, which `callees` already holds."""
    by_name = {code.function.name: code for code in codes}
    for code in codes:
        todo, seen = list(code.callees), set[str]()
        while todo:
            name = todo.pop()
            if name in by_name and name not in seen:
                seen.add(name)
                todo += by_name[name].callees
        code.recursive = code.function.name in seen
