"""Decides which lanes run next. Every lane has its own place; lanes at one place and depth of calls run as a group.

Deepest call first, then lowest block first: groups that part meet again behind the branch. A group runs until it passes
another runnable one. A group that jumps back in a loop that polls memory is parked until the others have run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import PtxError
from pyptx.ir import ImmediateOperand, LabelOperand, RegisterOperand, opcode_span
from pyptx.ir.operands import Operand
from pyptx.sim import builtins, rules
from pyptx.sim.barriers import ClusterBarriers, CtaBarriers, Waiting
from pyptx.sim.calls import callee_name, parts_of_call
from pyptx.sim.codegen import DIVERGED
from pyptx.sim.formats import CLASSES, Array
from pyptx.sim.lanes import Lanes
from pyptx.sim.machine import Machine
from pyptx.sim.operands import Operands
from pyptx.sim.program import CALL, EXIT, RET, TABLE, TRAP, WAIT, Block, Code
from pyptx.sim.variables import FUNCTION_BASE

Key = tuple[int, int]
"""Minus the depth of calls, and the block: the order in which groups run."""

_WARP = 99
_LONGEST_LOOP = 512
"""How often a group may jump back while others could run."""
_TIMEOUTS = 64
"""How often waits for mbarriers may time out, none of which changes, before that is a deadlock."""


@dataclass(frozen=True, slots=True)
class Suspended:
    """Lanes that wait for an mbarrier each, by its row."""

    waiting: Waiting
    rows: Array


class Scheduler:
    """The run of one batch."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.program, self.shape = machine, machine.program, machine.shape
        self.blocks = machine.program.blocks
        self.ready: dict[Key, list[Lanes]] = {}
        self.parked: list[tuple[Key, Lanes]] = []
        self.converging: dict[int, list[Waiting]] = {}
        self.alive = np.ones(self.shape.lanes, np.bool_)
        self.live = self.shape.lanes
        self.barriers = CtaBarriers(self.shape)
        self.clusters = ClusterBarriers(self.shape, machine.launch.cluster_size)
        self.warps_waiting: list[Waiting] = []
        self.leaving = {
            CALL: self._call, RET: self._return, EXIT: self._exit, TRAP: self._trap, TABLE: self._table,
            WAIT: self._wait,
        }  # fmt: skip
        self.plain: dict[int, int] = {}
        self.returns: list[Array] = []
        self.suspended: list[Suspended] = []
        self.timeouts = (0, 0)
        self.saved: dict[tuple[int, int], dict[str, Array]] = {}

    def run(self) -> None:
        """Run until every lane has left."""
        self.push(0, self.program.entry.entry, self.shape.all())
        while True:
            if not self.ready:
                if self.converging or self.warps_waiting:
                    self._retry()
                landed = self.machine.effects.land_oldest()
                self._resume()
                if self.parked:
                    for key, lanes in self.parked:
                        self.ready.setdefault(key, []).append(lanes)
                    self.parked = []
                elif not self.live:
                    self.machine.effects.land_all()
                    return
                elif not self._retry() and not landed and not self._time_out():
                    raise self._deadlock()
                continue
            key = min(self.ready)
            self._group(-key[0], key[1], self.shape.merged(self.ready.pop(key)))

    def push(self, depth: int, pc: int, lanes: Lanes) -> None:
        """Make lanes runnable at a block."""
        self.ready.setdefault((-depth, pc), []).append(lanes)

    def _group(self, depth: int, pc: int, lanes: Lanes) -> None:
        machine, stats, blocks = self.machine, self.machine.stats, self.blocks
        barriers = machine.memory.mbarriers
        jumps = 0
        while True:
            block = blocks[pc]
            if block.converges:
                found = self._converge(block, depth, lanes)
                if found is None:
                    return
                lanes = found
            run = lanes.bound.get(pc) or machine.runner(pc, lanes)
            after = run()
            if barriers.turned:
                self._resume()
            if block.suspends and barriers.refused is not None:
                passed = self._suspend(block, depth, lanes)
                if passed is None:
                    return
                lanes = passed
            stats.instructions += len(block.steps)
            stats.lane_instructions += len(block.steps) * lanes.n
            if stats.instructions > machine.launch.limit:
                raise self._too_long(block)
            if after < 0:
                if block.ending != WAIT or not self._passes(block, lanes):
                    self._leave(block, depth, lanes, after)
                    return
                after = pc + 1
            if after <= pc and (self.ready or self.parked):
                jumps += 1
                if block.polls or jumps > _LONGEST_LOOP:
                    self.parked.append(((-depth, after), lanes))
                    return
            if self.ready and (-depth, after) >= min(self.ready):
                self.push(depth, after, lanes)
                return
            pc = after

    def _suspend(self, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
        """Make the lanes that an mbarrier refused wait, and return the others."""
        barriers = self.machine.memory.mbarriers
        refused = barriers.refused
        assert refused is not None
        barriers.refused = None
        waiting = self.shape.of(refused.lanes)
        self.suspended.append(Suspended(Waiting(waiting, block.pc, depth, block.pc), refused.rows))
        return lanes.subset(~np.isin(lanes.index, refused.lanes)) if waiting.n < lanes.n else None

    def _resume(self) -> None:
        """Let lanes look again at mbarriers whose phase has ended."""
        barriers = self.machine.memory.mbarriers
        if not barriers.turned:
            return
        turned, barriers.turned = np.concatenate(barriers.turned), []
        kept: list[Suspended] = []
        for item in self.suspended:
            waiting = item.waiting
            wakes = np.isin(item.rows, turned)
            if not wakes.any():
                kept.append(item)
                continue
            woken, rest = waiting.lanes.split(wakes)
            if woken is not None:
                self.push(waiting.depth, waiting.pc, woken)
            if rest is not None:
                kept.append(Suspended(Waiting(rest, waiting.pc, waiting.depth, waiting.at), item.rows[~wakes]))
        self.suspended = kept

    def _time_out(self) -> bool:
        """Let lanes that wait for mbarriers go on with a refusal, as hardware does after a while; False when that has
        changed nothing so often that it never will."""
        changes = self.machine.memory.mbarriers.changes
        count = self.timeouts[1] + 1 if self.timeouts[0] == changes else 1
        self.timeouts = (changes, count)
        if not self.suspended or count > _TIMEOUTS:
            return False
        for item in self.suspended:
            self.push(item.waiting.depth, item.waiting.pc + 1, item.waiting.lanes)
        self.suspended = []
        return True

    def _passes(self, block: Block, lanes: Lanes) -> bool:
        """Say whether all living lanes meet here at a plain `bar.sync`, so that none has to wait."""
        if self.machine.memory.watch is not None:
            return False
        number = self.plain.get(block.pc)
        if number is None:
            number = self.plain[block.pc] = _plain_barrier(block.steps[-1])
        if number == _WARP:
            return not self.warps_waiting and self._whole_warps(lanes)
        return number >= 0 and lanes.n == self.live and number not in self.barriers.pending

    def _leave(self, block: Block, depth: int, lanes: Lanes, how: int) -> None:
        """Move lanes that leave a block two ways, or by a call, a barrier, the end."""
        step = block.steps[-1]
        if how == DIVERGED:
            taken, others = lanes.split(self._guard(step, block, lanes))
            if taken is not None:
                self._jump(block, depth, block.targets[0], taken)
            if others is not None:
                self.push(depth, block.pc + 1, others)
            return
        if step.instruction.predicate is not None:
            chosen, others = lanes.split(self._guard(step, block, lanes))
            if others is not None:
                self.push(depth, block.pc + 1, others)
            if chosen is None:
                return
            lanes = chosen
        self.leaving[block.ending](block, depth, lanes)

    def _jump(self, block: Block, depth: int, target: int, lanes: Lanes) -> None:
        if target <= block.pc and block.polls:
            self.parked.append(((-depth, target), lanes))
        else:
            self.push(depth, target, lanes)

    def _guard(self, step: Step, block: Block, lanes: Lanes) -> Array:
        predicate = step.instruction.predicate
        assert predicate is not None
        values = self.value(LabelOperand(predicate.register), step, block, lanes)
        return ~values if predicate.negated else values

    def value(self, given: Operand, step: Step, block: Block, lanes: Lanes) -> Array:
        """Return an operand's value in every lane: a register's bits or a number."""
        operands = Operands(self.program, block)
        if isinstance(given, ImmediateOperand):
            return np.full(lanes.n, int(given.value))
        if isinstance(given, RegisterOperand | LabelOperand):
            found = operands.row(given.name, step.scope)
            if found is not None:
                return self.machine.registers[found[0].letter][found[0].index + found[1]][lanes.sel]
        expression = operands.read(given, None if not isinstance(given, LabelOperand) else "pred", step.scope)
        scope: dict[str, Any] = dict(operands.constants)
        for name, (letter, suffix, index) in operands.views.items():
            scope[name] = self.machine.views[letter + suffix][index][lanes.sel]
        return np.broadcast_to(eval(expression, scope), lanes.n)

    def _exit(self, block: Block, depth: int, lanes: Lanes) -> None:
        self.alive[lanes.sel] = False
        self.live -= lanes.n
        self.barriers.live -= np.bincount(lanes.cta, minlength=self.shape.ctas)
        self.clusters.live -= np.bincount(self.clusters.cluster(lanes), minlength=len(self.clusters.live))
        self.clusters.turn()
        if self.live:
            self._release()

    def _trap(self, block: Block, depth: int, lanes: Lanes) -> None:
        where = self.machine.memory.place(lanes, 0, block.code.function.name)
        raise rules.error(
            rules.TRAP, opcode_span(block.steps[-1].instruction), "the kernel executed `trap`", notes=(where,)
        )

    def _table(self, block: Block, depth: int, lanes: Lanes) -> None:
        step = block.steps[-1]
        index = self.value(step.instruction.operands[0], step, block, lanes)
        for at in np.unique(index):
            some = lanes.subset(index == at)
            if int(at) >= len(block.targets):
                text = f"index {int(at)} of {len(block.targets)} labels"
                raise rules.error(rules.BAD_BRANCH, opcode_span(step.instruction), text)
            if some is not None:
                self._jump(block, depth, block.targets[int(at)], some)

    def _call(self, block: Block, depth: int, lanes: Lanes) -> None:
        step = block.steps[-1]
        name = callee_name(step)
        if name is not None:
            code = self.program.by_name.get(name)
            self._enter(code, name, block, depth, lanes)
            return
        address = self.value(parts_of_call(step)[1], step, block, lanes)
        for at in np.unique(address):
            some = lanes.subset(address == at)
            code = self.program.code_at(int(at))
            if code is None:
                text = f"{int(at):#x} is the address of no function (they start at {FUNCTION_BASE:#x})"
                raise rules.error(rules.BAD_CALL, opcode_span(step.instruction), text)
            if some is not None:
                self._enter(code, code.function.name, block, depth, some)

    def _enter(self, code: Code | None, name: str, block: Block, depth: int, lanes: Lanes) -> None:
        origin = opcode_span(block.steps[-1].instruction)
        if code is None:
            builtins.call(self.machine, name, block.code.frame.size, lanes, origin)
            self.push(depth, block.pc + 1, lanes)
            return
        if depth >= len(self.returns):
            self.returns.append(np.zeros(self.shape.lanes, np.int64))
        self.returns[depth][lanes.sel] = block.pc + 1
        if block.code.recursive:
            self._save(block.code, depth, lanes)
        self.machine.sp[lanes.sel] += block.code.frame.size
        self.machine.memory.ensure_local(int(self.machine.sp[lanes.sel].max()) + code.frame.size, origin)
        self.push(depth + 1, code.entry, lanes)

    def _save(self, code: Code, depth: int, lanes: Lanes, back: bool = False) -> None:
        """Keep the registers of a function that may be entered again, or bring them back."""
        kept = self.saved.get((depth, code.number))
        rows = {
            letter: [r.index + n for r in code.rows.of.values() if r.letter == letter for n in range(r.count)]
            for letter in CLASSES
        }
        if kept is None:
            kept = self.saved[depth, code.number] = {
                letter: np.zeros((len(rows[letter]), self.shape.lanes), dtype) for letter, dtype in CLASSES.items()
            }
        for letter, indices in rows.items():
            matrix = self.machine.registers[letter]
            for at, row in enumerate(indices):
                if back:
                    matrix[row, lanes.sel] = kept[letter][at, lanes.sel]
                else:
                    kept[letter][at, lanes.sel] = matrix[row, lanes.sel]

    def _return(self, block: Block, depth: int, lanes: Lanes) -> None:
        if depth == 0:
            self._exit(block, depth, lanes)
            return
        places = self.returns[depth - 1][lanes.sel]
        for pc in np.unique(places):
            some = lanes.subset(places == pc)
            code = self.blocks[int(pc)].code
            if some is not None:
                self.machine.sp[some.sel] -= code.frame.size
                if code.recursive:
                    self._save(code, depth - 1, some, back=True)
                self.push(depth - 1, int(pc), some)

    def _converge(self, block: Block, depth: int, lanes: Lanes) -> Lanes | None:
        """Return the lanes that may run a warp-wide instruction now; the others wait."""
        step = block.steps[0]
        if step.instruction.predicate is not None:
            chosen, others = lanes.split(self._guard(step, block, lanes))
            if others is not None:
                self.push(depth, block.pc + 1, others)
            if chosen is None:
                return None
            lanes = chosen
        waiting = self.converging.pop(block.pc, None)
        if waiting is not None:
            lanes = self.shape.merged([lanes, *(item.lanes for item in waiting)])
        if self._whole_warps(lanes, block.unit):
            return lanes
        mask = self._members(step, block, lanes)
        if mask is None:
            return lanes
        here = self._together(lanes, mask)
        chosen, others = lanes.split(here if block.unit == 32 else here & self._warpgroups(lanes))
        if others is not None:
            self.converging[block.pc] = [Waiting(others, block.pc, depth, block.pc)]
        return chosen

    def _warpgroups(self, lanes: Lanes) -> Array:
        """Tell which lanes are here with all of their warpgroup."""
        group = self.shape.thread[lanes.sel] // 128 * self.shape.ctas + self.shape.cta[lanes.sel]
        return np.bincount(group)[group] == 128

    def _whole_warps(self, lanes: Lanes, threads: int = 32) -> bool:
        if lanes.n == self.live:
            return True
        unit = threads * self.shape.ctas
        return lanes.positions is None and not lanes.lo % unit and (not lanes.hi % unit or lanes.hi == self.shape.lanes)

    def _members(self, step: Step, block: Block, lanes: Lanes) -> Array | None:
        """Return the member mask of a warp-wide instruction, None for one without."""
        plan = step.plan
        assert plan is not None
        for wanted, given in zip(plan.signature, step.instruction.operands, strict=True):
            if wanted.name == "membermask":
                return self.value(given, step, block, lanes).astype(np.uint32)
        if any(m in (".aligned", ".sync") for m in step.instruction.modifiers):
            return np.full(lanes.n, 0xFFFFFFFF, np.uint32)
        return None

    def _together(self, lanes: Lanes, mask: Array, among: Lanes | None = None) -> Array:
        """Return the lanes whose members are all here (among these or others) or have left."""
        warps = self.shape.warps * self.shape.ctas
        others = lanes if among is None else among
        here = _bits(self.shape.warp[others.sel], self.shape.lane[others.sel], warps)
        living = np.flatnonzero(self.alive)
        alive = _bits(self.shape.warp[living], self.shape.lane[living], warps)
        warp = self.shape.warp[lanes.sel]
        return (mask & alive[warp] & ~here[warp]) == 0

    def _wait(self, block: Block, depth: int, lanes: Lanes) -> None:
        step = block.steps[-1]
        modifiers = [m[1:] for m in step.instruction.modifiers if m not in (".cta", ".aligned")]
        if modifiers[0] == "warp":
            self.warps_waiting.append(Waiting(lanes, block.pc + 1, depth, block.pc))
            self._release_warps()
        elif modifiers[0] == "cluster":
            self._cluster(block, depth, lanes, modifiers[1])
        else:
            self._cta_barrier(block, depth, lanes, modifiers)

    def _release_warps(self) -> None:
        """Let lanes go on whose members all wait in a bar.warp.sync, whichever one it is."""
        items = self.warps_waiting
        here = self.shape.merged([item.lanes for item in items])
        kept: list[Waiting] = []
        for item in items:
            block = self.blocks[item.at]
            mask = self._members(block.steps[-1], block, item.lanes)
            assert mask is not None
            free, stay = item.lanes.split(self._together(item.lanes, mask, here))
            if free is not None:
                self.push(item.depth, item.pc, free)
            if stay is not None:
                kept.append(Waiting(stay, item.pc, item.depth, item.at))
        self.warps_waiting = kept

    def _cluster(self, block: Block, depth: int, lanes: Lanes, what: str) -> None:
        if what == "arrive":
            self.clusters.arrive(lanes)
            self.push(depth, block.pc + 1, lanes)
        else:
            self.clusters.waiting.append(Waiting(lanes, block.pc + 1, depth, block.pc))
        self._release()

    def _cta_barrier(self, block: Block, depth: int, lanes: Lanes, modifiers: list[str]) -> None:
        step = block.steps[-1]
        operands = list(step.instruction.operands)
        reduces = modifiers[0] == "red"
        predicate = None
        if reduces:
            predicate = self._predicate(operands.pop(), step, block, lanes)
            operands.pop(0)
        numbers = self.value(operands[0], step, block, lanes)
        counts = self.value(operands[1], step, block, lanes) if len(operands) > 1 else None
        for number in np.unique(numbers):
            chosen = numbers == number
            some = lanes.subset(chosen)
            assert some is not None
            count = None if counts is None else int(counts[chosen][0])
            self.barriers.arrive(some, int(number), count, None if predicate is None else predicate[chosen])
            if modifiers[0] == "arrive":
                self.push(depth, block.pc + 1, some)
            else:
                self.barriers.waiting.setdefault(int(number), []).append(Waiting(some, block.pc + 1, depth, block.pc))
            self._release_barrier(int(number))

    def _predicate(self, given: Operand, step: Step, block: Block, lanes: Lanes) -> Array:
        inner = getattr(given, "operand", None)
        values = self.value(given if inner is None else inner, step, block, lanes).astype(np.bool_)
        return values if inner is None else ~values

    def _release(self) -> None:
        for number in list(self.barriers.waiting):
            self._release_barrier(number)
        for item, lanes in self.clusters.release():
            self.push(item.depth, item.pc, lanes)

    def _release_barrier(self, number: int) -> None:
        gone, arrived, true = self.barriers.release(number)
        for item, lanes in gone:
            self._reduce(self.blocks[item.at], lanes, arrived, true)
            self.push(item.depth, item.pc, lanes)

    def _reduce(self, block: Block, lanes: Lanes, arrived: Array, true: Array) -> None:
        """Write the result of a reducing barrier."""
        instruction = block.steps[-1].instruction
        if ".red" not in instruction.modifiers:
            return
        target = instruction.operands[0]
        assert isinstance(target, RegisterOperand | LabelOperand)
        found = Operands(self.program, block).row(target.name, block.steps[-1].scope)
        if found is None:
            return
        count = true[lanes.cta]
        if ".and" in instruction.modifiers:
            result = count == arrived[lanes.cta]
        else:
            result = count > 0 if ".or" in instruction.modifiers else count
        self.machine.registers[found[0].letter][found[0].index][lanes.sel] = result

    def _retry(self) -> bool:
        """Look again at lanes that wait for others of their warp, some of which may have left."""
        for pc, items in list(self.converging.items()):
            for item in items:
                block = self.blocks[pc]
                mask = self._members(block.steps[0], block, item.lanes)
                if mask is None or self._together(item.lanes, mask).any():
                    del self.converging[pc]
                    for again in items:
                        self.push(again.depth, pc, again.lanes)
                    return True
        if self.warps_waiting:
            self._release_warps()
        self._release()
        return bool(self.ready)

    def _deadlock(self) -> PtxError:
        items = [w for group in self.converging.values() for w in group] + [s.waiting for s in self.suspended]
        items += (
            [w for group in self.barriers.waiting.values() for w in group] + self.clusters.waiting + self.warps_waiting
        )
        rows = {id(s.waiting): int(s.rows[0]) for s in self.suspended}
        told = self.machine.memory.mbarriers.describe
        notes = tuple(
            self._waits(item) + (f"; {told(rows[id(item)])}" if id(item) in rows else "") for item in items[:8]
        )
        first = self.blocks[items[0].at].steps[-1].instruction if items else None
        origin = opcode_span(first) if first is not None else None
        return rules.error(rules.DEADLOCK, origin, "no thread can run: every one waits", notes=notes)

    def _waits(self, item: Waiting) -> str:
        block = self.blocks[item.at]
        step = block.steps[0] if block.converges else block.steps[-1]
        place = self.machine.memory.place(item.lanes, 0, block.code.function.name)
        line = opcode_span(step.instruction)
        at = f" at line {line.line}" if line is not None else ""
        return f"{item.lanes.n} threads wait in `{step.instruction.full_opcode}`{at}: {place}"

    def _too_long(self, block: Block) -> PtxError:
        text = f"more than {self.machine.launch.limit} instructions were issued; the kernel may never end"
        origin = opcode_span(block.steps[0].instruction) if block.steps else None
        return rules.error(rules.STEP_LIMIT, origin, text, help="pass a higher `limit` if it is meant to run longer")


def _plain_barrier(step: Step) -> int:
    """Return the number of a barrier that waits for the whole CTA without guard or reduction, `_WARP` for one of the
    warp, else -1."""
    instruction = step.instruction
    if instruction.modifiers[:1] == (".warp",):
        return _WARP if instruction.predicate is None else -1
    first = instruction.operands[0] if instruction.operands else None
    plain = (
        instruction.predicate is None and ".sync" in instruction.modifiers and ".cluster" not in instruction.modifiers
    )
    if not plain or len(instruction.operands) != 1 or not isinstance(first, ImmediateOperand):
        return -1
    return int(first.value)


def _bits(warp: Array, lane: Array, warps: int) -> Array:
    """Return which lanes of each warp are named, as a mask."""
    return np.bincount(warp, weights=(1 << lane.astype(np.int64)).astype(np.float64), minlength=warps).astype(np.uint32)
