"""Decides which lanes run next. Every lane has its own place; lanes at one place and depth of calls run as a group.

Deepest call first, then lowest block first: groups that part meet again behind the branch. A group runs until it passes
another runnable one. A group that jumps back in a loop that polls memory is parked until the others have run.
"""

from __future__ import annotations

from pyptx.diagnostics import PtxError
from pyptx.ir import opcode_span
from pyptx.sim import rules
from pyptx.sim.barriers import Waiting
from pyptx.sim.lanes import Lanes
from pyptx.sim.program import WAIT, Block
from pyptx.sim.scheduling.convergence import converge
from pyptx.sim.scheduling.leaving import leave
from pyptx.sim.scheduling.mbarrier_waits import resume, suspend, time_out
from pyptx.sim.scheduling.state import State
from pyptx.sim.scheduling.waiting import passes, retry

_LONGEST_LOOP = 512
"""How often a group may jump back while others could run."""


class Scheduler(State):
    """The run of one batch."""

    def run(self) -> None:
        """Run until every lane has left."""
        self.push(0, self.program.entry.entry, self.shape.all())
        while True:
            if not self.ready:
                if self.converging or self.warps_waiting:
                    retry(self)
                landed = self.machine.effects.land_oldest()
                resume(self)
                if self.parked:
                    for key, lanes in self.parked:
                        self.ready.setdefault(key, []).append(lanes)
                    self.parked = []
                elif not self.live:
                    self.machine.effects.land_all()
                    return
                elif not retry(self) and not landed and not time_out(self):
                    raise self._deadlock()
                continue
            key = min(self.ready)
            self._group(-key[0], key[1], self.shape.merged(self.ready.pop(key)))

    def _group(self, depth: int, pc: int, lanes: Lanes) -> None:
        machine, stats, blocks = self.machine, self.machine.stats, self.blocks
        barriers = machine.memory.mbarriers
        jumps = 0
        while True:
            block = blocks[pc]
            if block.converges:
                found = converge(self, block, depth, lanes)
                if found is None:
                    return
                lanes = found
            run = lanes.bound.get(pc) or machine.runner(pc, lanes)
            after = run()
            if machine.recorder is not None:
                machine.recorder.ran(block, lanes)
            if barriers.turned:
                resume(self)
            if block.suspends and barriers.refused is not None:
                passed = suspend(self, block, depth, lanes)
                if passed is None:
                    return
                lanes = passed
            stats.instructions += len(block.steps)
            stats.lane_instructions += len(block.steps) * lanes.n
            if stats.instructions > machine.launch.max_steps:
                raise self._too_long(block)
            if after < 0:
                if block.ending != WAIT or not passes(self, block, lanes):
                    leave(self, block, depth, lanes, after)
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
        text = f"more than {self.machine.launch.max_steps} instructions were issued; the kernel may never end"
        origin = opcode_span(block.steps[0].instruction) if block.steps else None
        return rules.error(rules.STEP_LIMIT, origin, text, help="pass a higher `max_steps` if it is meant to run longer")
