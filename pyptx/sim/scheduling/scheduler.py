"""Decide which lanes run next. Each lane has its own position; lanes at one block and call depth run as a group.

Deepest call first, then lowest block first: groups that diverge reconverge after the branch. A group runs until it
passes another runnable one. A group that jumps back in a loop that polls memory is parked until the others have run.
"""

from __future__ import annotations

from collections.abc import Callable

from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.execution.machine import Batch
from pyptx.sim.program.blocks import WAIT, Block
from pyptx.sim.rules import faults
from pyptx.sim.scheduling.convergence import converge
from pyptx.sim.scheduling.hang import make_deadlock, make_livelock
from pyptx.sim.scheduling.leaving import leave
from pyptx.sim.scheduling.mbarrier_waits import land_late, resume, suspend, time_out
from pyptx.sim.scheduling.orders import Key, Order
from pyptx.sim.scheduling.places import describe_places
from pyptx.sim.scheduling.stalls import Stalls
from pyptx.sim.scheduling.state import State
from pyptx.sim.scheduling.waiting import may_pass, retry

_LONGEST_LOOP = 512
"""How often a group may jump back."""
_LONGEST_POLL = 8
"""How often a group may read memory again when no other could run."""


class Scheduler(State):
    """The run of one batch."""

    def __init__(self, machine: Batch, order: Order | None) -> None:
        super().__init__(machine, order)
        self.stalls = Stalls()
        self.next_group: Key | None = None
        self.jumps: dict[tuple[int, int, int], int] = {}
        """How often each group had jumped back when its turn ended."""
        self.push(0, self.program.entry.entry, self.shape.select_all())

    def run(self, observe: Callable[[State], None] | None = None) -> None:
        """Run until every lane has exited; call `observe` after each group."""
        while self.step():
            if observe is not None:
                observe(self)

    def step(self, once: bool = False) -> bool:
        """Run one group until another one runs, or with `once`, one block of it; tell whether there was any."""
        key = self.choose_next()
        if key is None:
            return False
        self.next_group = None
        self._run_group(key, self.shape.merge(self.ready.pop(key)), once)
        return True

    def choose_next(self) -> Key | None:
        """Return the key of the group that runs next, None when every lane has exited."""
        if self.next_group is not None:
            return self.next_group
        while not self.ready:
            if not self._stir():
                return None
        order = self.order
        if order is not None and order.should_land() and self.machine.effects.land_some(order.chance, self.shape.ctas):
            resume(self)
        self.next_group = min(self.ready) if order is None else order.pick(self.ready)
        return self.next_group

    def _stir(self) -> bool:
        """Make lanes runnable when none is; return False when every lane has exited."""
        has_landed = self.rouse()
        if self.polling:
            if has_landed or self.ready:
                self.stalls.reset()
            elif self.stalls.count_round(self):
                if not time_out(self):
                    polling = [(abs(key[2]), lanes) for key, lanes in self.polling]
                    raise make_livelock(self, polling)
                self.stalls.reset()
            self.unpark()
        elif not self.live:
            self.machine.effects.land_all()
            return False
        elif not retry(self) and not has_landed and not time_out(self):
            raise make_deadlock(self)
        return True

    def rouse(self) -> bool:
        """Let lanes test again what they wait for, and engines work; tell whether anything changed."""
        if self.converging or self.warps_waiting:
            retry(self)
        has_landed = land_late(self)
        resume(self)
        return has_landed

    def unpark(self) -> None:
        """Let lanes that poll read again."""
        for key, lanes in self.polling:
            self.ready.setdefault(key, []).append(lanes)
        self.polling = []

    def _run_group(self, key: Key, lanes: Lanes, once: bool) -> None:
        machine, stats, blocks, order = self.machine, self.machine.stats, self.blocks, self.order
        barriers, sink = machine.memory.mbarriers, machine.sink
        rank, depth, pc = key[0], -key[1], abs(key[2])
        sign = -1 if order is not None and order.down else 1
        turn = 1 if once else 0 if order is None else order.draw_turn()
        group_key, self.depth = (lanes.lo, lanes.hi, lanes.n), depth
        jumps = self.jumps.pop(group_key, 0)
        while True:
            block = blocks[pc]
            self.running = block, lanes
            if block.converges:
                members = converge(self, block, depth, lanes)
                if members is None:
                    return
                lanes = members
            if block.hands_on and order is not None:
                next_pc = self._run_in_parts(block, depth, lanes, order)
                if next_pc is None:
                    return
                after = next_pc
            else:
                run = lanes.closures.get(pc) or machine.find_runner(pc, lanes)
                after = run()
            if sink is not None:
                sink.on_block(block, lanes)
            if barriers.completions:
                resume(self)
            if block.suspends:
                continuing = suspend(self, block, depth, lanes)
                if continuing is None:
                    return
                lanes = continuing
            stats.instructions += len(block.steps)
            stats.lane_instructions += len(block.steps) * lanes.n
            if stats.instructions > machine.launch.max_steps:
                raise self._make_limit_error(block)
            if after < 0:
                waits = block.ending != WAIT or not may_pass(self, block, lanes)
                if waits and leave(self, block, depth, lanes, after):
                    return
                after = pc + 1
            if after <= pc:
                jumps += 1
                if jumps > _LONGEST_LOOP or (block.polls and (self.ready or self.polling or jumps > _LONGEST_POLL)):
                    self.park(depth, after, lanes)
                    return
            if self.ready:
                next_key = (rank, -depth, sign * after)
                if next_key >= min(self.ready) if order is None else order.should_yield(next_key, self.ready):
                    self.push(depth, after, lanes)
                    return
            if turn:
                turn -= 1
                if not turn:
                    self.jumps[group_key] = jumps
                    self.push(depth, after, lanes)
                    return
            pc = after

    def _run_in_parts(self, block: Block, depth: int, lanes: Lanes, order: Order) -> int | None:
        """Run a block in parts of warps. Return where all of them continue; None, after moving them, if that
        differs."""
        parts = order.split_warps(lanes)
        afters = [self.machine.find_runner(block.pc, part)() for part in parts]
        if len(set(afters)) == 1:
            return afters[0]
        for part, after in zip(parts, afters, strict=True):
            if after < 0:  # The outcomes of parts differ only at a branch: lanes of this part take both ways.
                leave(self, block, depth, part, after)
            elif after <= block.pc and block.polls:
                self.park(depth, after, part)
            else:
                self.push(depth, after, part)
        return None

    def _make_limit_error(self, block: Block) -> PtxError:
        text = f"more than {self.machine.launch.max_steps} instructions were executed; the kernel may never end"
        origin = opcode_span(block.steps[0].instruction) if block.steps else None
        return faults.error(
            faults.STEP_LIMIT, origin, text, help="pass a higher `max_steps` if it should run longer",
            notes=tuple(describe_places(self)),
        )  # fmt: skip
