"""The events that the lanes of a batch wait for: what is missing, and which threads can still cause them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pyptx.check.body import Step
from pyptx.diagnostics import format_count
from pyptx.ir import opcode_span
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import Trait
from pyptx.sim.base.events import Place
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.program.blocks import Block
from pyptx.sim.reports.findings import Cta
from pyptx.sim.reports.graph import Exited, Subject, Waiting
from pyptx.sim.rules import advice
from pyptx.sim.scheduling.polling import Poll
from pyptx.sim.scheduling.reach import (
    Reach,
    Source,
    make_bar_matcher,
    match_arrival,
    match_cluster_arrival,
    match_deallocation,
    match_decrease,
    match_write,
)
from pyptx.sim.scheduling.register_pool import read_count
from pyptx.sim.scheduling.state import State
from pyptx.sim.state.barriers import Waiter as LaneWait
from pyptx.sim.state.tensor_memory import Holding


def find_step(block: Block) -> Step:
    """Return the instruction of a block at which lanes wait."""
    return block.steps[0] if block.converges else block.steps[-1]


def find_next_step(state: State, pc: int) -> Step:
    """Return the instruction that lanes at a block execute next. A block after a call may be empty."""
    return (state.blocks[pc].steps or state.blocks[pc + 1].steps)[0]


def make_place(block: Block, step: Step | None = None) -> Place:
    """Return the place of the instruction at which lanes of a block wait or exited."""
    target = step or find_step(block)
    origin = opcode_span(target.instruction)
    if origin is None:
        return Place(block.code.function.origin, f"the end of {block.code.function.name}")
    return Place(origin, target.instruction.full_opcode)


def list_threads(state: State, lanes: Lanes, mask: Array | None = None) -> tuple[int, ...]:
    index = lanes.index if mask is None else lanes.index[mask]
    shape = state.shape
    return tuple((shape.cta[index] * shape.warps * 32 + shape.thread[index]).tolist())


def locate_wait(state: State, kind: str, lane_wait: LaneWait) -> Place:
    """Return the place where lanes wait: at a barrier, the last instruction of its block."""
    block = state.blocks[lane_wait.block]
    at_end = kind in ("bar", "cluster", "grid") or any(lane_wait is item for item in state.warps_waiting)
    return make_place(block, block.steps[-1] if at_end else None)


@dataclass(slots=True)
class BatchKnowledge:
    """What is known of the events that the CTAs of one cluster wait for."""

    state: State
    ctas: list[int]
    resumes: dict[Waiting, tuple[int, LaneWait | Poll]] = field(
        default_factory=dict[Waiting, "tuple[int, LaneWait | Poll]"]
    )
    reach: Reach = field(init=False)

    def __post_init__(self) -> None:
        self.reach = Reach(self.state.program)

    @property
    def stride(self) -> int:
        return self.state.shape.warps * 32

    def list_waits(self, kind: str, keys: Array, lanes: Lanes, lane_wait: LaneWait | Poll) -> list[Waiting]:
        """Return the waits of lanes of these CTAs: one per CTA and key, and per warp if each warp waits for its own
        event."""
        waits_of_lanes: list[Waiting] = []
        inside = np.isin(lanes.cta, self.ctas)
        warp = self.state.shape.warp[lanes.sel] if kind == "warp" else np.zeros(lanes.n, np.int64)
        groups = np.stack([lanes.cta, keys.astype(np.int64), warp])[:, inside]
        for cta, key, own in np.unique(groups, axis=1).T.tolist():
            mask = inside & (lanes.cta == cta) & (keys == key) & (warp == own)
            place = lane_wait.place if isinstance(lane_wait, Poll) else locate_wait(self.state, kind, lane_wait)
            wait = Waiting(list_threads(self.state, lanes, mask), place, kind, key)
            self.resumes[wait] = (lane_wait.pc, lane_wait)
            waits_of_lanes.append(wait)
        return waits_of_lanes

    def list_exited(self) -> list[Exited]:
        """Return the exited threads, by the place of their exit."""
        state = self.state
        dead = np.flatnonzero(~state.alive & np.isin(state.shape.cta, self.ctas))
        exits: list[Exited] = []
        for pc in sorted({int(pc) for pc in state.exit_blocks[dead]}):
            lanes = state.shape.select_index(dead[state.exit_blocks[dead] == pc])
            exits.append(Exited(list_threads(state, lanes), make_place(state.blocks[pc], state.blocks[pc].steps[-1])))
        return exits

    def name_threads(self, threads: Sequence[int]) -> str:
        """Name threads by CTA, warp and lane."""
        warps: dict[int, list[int]] = {}
        for thread in threads:
            warps.setdefault(thread // 32, []).append(thread % 32)
        size, parts = min(32, self.state.shape.threads), dict[str, list[str]]()
        for warp, lanes in list(warps.items())[:4]:
            cta, own = divmod(warp * 32, self.stride)
            lane_text = f" lane {lanes[0]}" if len(lanes) == 1 and size > 1 else ""
            lane_text = lane_text or ("" if len(lanes) == size else f" ({format_count('lane', len(lanes))})")
            parts.setdefault(f"CTA {self.name_cta(cta)}", []).append(f"warp {own // 32}{lane_text}")
        text = ", ".join(f"{cta} {', '.join(own)}" for cta, own in parts.items())
        text += f" and {format_count('more warp', len(warps) - 4)}" if len(warps) > 4 else ""
        grid = self.state.machine.launch.label
        return f"{text} of `{grid}`" if grid else text

    def name_cta(self, cta: int) -> Cta:
        """Name a CTA of the batch."""
        return Cta.from_ctaid(self.state.machine.ctaid[:, cta], self.state.machine.launch.grid)

    def describe(self, wait: Waiting) -> Subject:
        """Describe the event that these threads wait for."""
        if wait.kind == "mbarrier":
            return self._describe_mbarrier(wait)
        if wait.kind == "bar":
            return self._describe_bar(wait)
        if wait.kind == "cluster":
            return self._describe_cluster(wait)
        if wait.kind == "memory":
            return self._describe_memory(wait)
        if wait.kind == "registers":
            return self._describe_registers(wait)
        if wait.kind == "columns":
            return self._describe_columns(wait)
        if wait.kind == "grid":
            return self._describe_grid()
        return self._describe_warp(wait)

    def _find_helpers(self, sources: list[Source], cta: int | None = None) -> frozenset[int]:
        """Return the waiting warps that can still reach one of these instructions."""
        pcs = {source.pc for source in sources}
        warps: set[int] = set()
        for wait, (pc, _) in self.resumes.items():
            if cta is not None and wait.threads[0] // self.stride != cta:
                continue
            if pcs & self.reach.find_reachable(pc):
                warps |= {thread >> 5 for thread in wait.threads}
        return frozenset(warps)

    def _find_signals(self, sources: list[Source]) -> tuple[Place, ...]:
        """Return the places of those instructions that waiting lanes can still reach."""
        coming = frozenset[int]().union(*(self.reach.find_reachable(pc) for pc, _ in self.resumes.values()))
        steps = [source.step.instruction for source in sources if source.pc in coming]
        return tuple(Place(opcode_span(step), step.full_opcode) for step in steps)

    def _describe_mbarrier(self, wait: Waiting) -> Subject:
        state, barriers = self.state, self.state.machine.memory.mbarriers
        row = int(barriers.find_rows(np.array([wait.key]))[0])
        cta, place = divmod(wait.key, state.shape.shared_stride)
        address = place + state.machine.memory.shared_base
        object_name = state.machine.launch.shared_names.format_address(address)
        phase, pending, count, tx, announced = (
            int(v[row]) for v in (barriers.phase, barriers.pending, barriers.expected, barriers.tx, barriers.announced)
        )
        sources = self._find_signalers(address)
        missing = advice.describe_phase(phase, pending, count, tx, announced)
        last_threads, init, expect = self._find_history(wait.key)
        history = [f"{self._describe_last(source, last_threads)}" for source in sources]
        if not sources:
            history = ["no instruction of the kernel arrives at it"]
        key = ("mbarrier", wait.key)
        name = f"mbarrier {object_name} of CTA {self.name_cta(cta)}, phase {phase}"
        return Subject(
            key, name, missing, tuple(history), init, self._find_helpers(sources), advice.has_begun(pending, count, tx),
            advice.advise_phase(pending, count, tx, announced), self._find_signals(sources), is_broken=tx != 0,
            expect=expect if tx else None,
        )  # fmt: skip

    def _find_signalers(self, address: int) -> list[Source]:
        """Return the instructions that may signal an mbarrier: those that may address its variable, or its part of
        dynamic shared memory."""
        names, symbol = self.state.machine.launch.shared_names, self.state.program.variables.find_shared_symbol(address)
        own = names.find_name(address)
        return [
            source
            for source in self.reach.find_sources(match_arrival, symbol)
            if not source.origins or any(names.find_part(*origin) == own for origin in source.origins)
        ]

    def _find_history(self, place: int) -> tuple[dict[int, tuple[int, ...]], Place | None, Place | None]:
        """Return the threads that last executed each instruction on an mbarrier, where it was initialized, and where it
        was told to expect bytes."""
        threads_by_instruction: dict[int, tuple[int, ...]] = {}
        init: Place | None = None
        expect: Place | None = None
        for (site, _), (lanes, offsets) in self.state.machine.memory.mbarriers.history.items():
            mask = offsets == place
            if mask.any():
                threads_by_instruction[id(site.instruction)] = list_threads(self.state, lanes, mask)
                if Trait.INITIALIZES in find_traits(site.instruction.opcode, site.instruction.modifiers):
                    init = Place(site.origin, site.instruction.full_opcode)
                if ".expect_tx" in site.instruction.modifiers:
                    expect = Place(site.origin, site.instruction.full_opcode)
        return threads_by_instruction, init, expect

    def _describe_last(self, source: Source, last_threads: dict[int, tuple[int, ...]]) -> str:
        instruction = source.step.instruction
        place = Place(opcode_span(instruction), instruction.full_opcode)
        threads = last_threads.get(id(instruction))
        return f"{place} " + (
            f"was last executed by {self.name_threads(threads)}" if threads else "was never executed on it"
        )

    def _describe_bar(self, wait: Waiting) -> Subject:
        state, cta = self.state, wait.threads[0] // self.stride
        barriers = state.barriers
        arrivals, need = int(barriers.arrivals[cta, wait.key]), int(barriers.thread_counts[cta, wait.key])
        live = int(barriers.live[cta])
        unit, name = (32, "warp") if not (arrivals % 32 or (need or live) % 32) else (1, "thread")
        missing = f"{arrivals // unit} of {format_count(name, (need or live) // unit)} have arrived"
        if need > live:
            missing += f", but only {format_count(name, live // unit)} {'is' if live == unit else 'are'} live"
        sources = self.reach.find_sources(make_bar_matcher(wait.key))
        barrier = f"barrier {wait.key} of CTA {self.name_cta(cta)}"
        return Subject(("bar", cta, wait.key), barrier, missing, helpers=self._find_helpers(sources, cta),
                       advice=advice.BARS, signals=self._find_signals(sources))  # fmt: skip

    def _describe_cluster(self, wait: Waiting) -> Subject:
        state, clusters = self.state, self.state.clusters
        own = state.alive & (state.shape.cta // clusters.size == wait.key)
        lacking = np.flatnonzero(own & (clusters.arrival_phase < clusters.phase[wait.key]))
        missing = advice.describe_absent("thread", len(lacking))
        if len(lacking):
            missing += f": {self.name_threads(list_threads(state, state.shape.select_index(lacking)))}"
        name = f"cluster barrier of CTAs {', '.join(str(self.name_cta(c)) for c in self.ctas)}"
        helpers = self._find_helpers(self.reach.find_sources(match_cluster_arrival))
        return Subject(("cluster", wait.key), name, missing, helpers=helpers, advice=advice.CLUSTERS)

    def _describe_memory(self, wait: Waiting) -> Subject:
        poll = self.resumes[wait][1]
        assert isinstance(poll, Poll)
        sources = self.reach.find_sources(match_write) if poll.names is None else self._find_writers(poll.names)
        helpers = self._find_helpers(sources)
        missing = "and no thread that can still run writes it"
        if helpers:
            missing = "and all threads that could write it wait"
        history = tuple(
            f"{Place(opcode_span(s.step.instruction), s.step.instruction.full_opcode)} may write it" for s in sources
        )
        return Subject(("memory", wait.key), poll.what, f"it holds {poll.value}, {missing}", history[:4], None, helpers)

    def _find_writers(self, names: frozenset[str]) -> list[Source]:
        sources = {id(s.step): s for name in sorted(names) or [""] for s in self.reach.find_sources(match_write, name)}
        return list(sources.values())

    def _describe_warp(self, wait: Waiting) -> Subject:
        state = self.state
        cta, own = divmod(wait.threads[0], self.stride)
        size = 128 if wait.kind == "warpgroup" else 32
        first = own // size * size
        thread, lane = state.shape.thread, np.arange(state.shape.lanes)
        near = state.alive & (state.shape.cta == cta) & (thread >= first) & (thread < first + size)
        near &= (wait.key >> state.shape.lane.astype(np.int64) & 1) != 0
        present = set(wait.threads)
        absent = [int(x) for x in lane[near] if cta * self.stride + int(thread[x]) not in present]
        threads = list_threads(state, state.shape.select_index(np.array(absent))) if absent else ()
        missing = (
            f"{advice.describe_absent('lane', len(absent))}: {self.name_threads(threads)}"
            if absent
            else "not all lanes have arrived"
        )
        name = f"the {'warpgroup' if size == 128 else 'warp'} at `{wait.place.text}`"
        helpers = frozenset(t >> 5 for t in threads)
        return Subject((wait.kind, cta, own // size, wait.key), name, missing, helpers=helpers)

    def _describe_grid(self) -> Subject:
        flight = self.state.machine.flight
        before = None if flight is None else flight.predecessor
        assert before is not None
        unfinished = before.count_unfinished()
        verb = "has" if unfinished == 1 else "have"
        missing = f"{unfinished} of its {format_count('CTA', before.ctas)} {verb} not completed"
        return Subject(("grid",), f"grid `{before.label}`", missing, tuple(before.describe_places()))

    def _describe_registers(self, wait: Waiting) -> Subject:
        state, pool = self.state, self.state.registers
        assert pool is not None
        lane_wait = self.resumes[wait][1]
        assert isinstance(lane_wait, LaneWait)
        count = read_count(state.blocks[lane_wait.block])
        warp = state.shape.warp[wait.threads[0] % self.stride * state.shape.ctas + wait.key]
        need = max(0, count - int(pool.counts[warp])) * 32
        free = int(pool.free[wait.key])
        missing = f"each warp that requests {count} per thread needs {need} more, but {free} are free"
        helpers = self._find_helpers(self.reach.find_sources(match_decrease), wait.key)
        name = f"registers of CTA {self.name_cta(wait.key)}"
        return Subject(("registers", wait.key), name, missing, helpers=helpers)

    def _describe_columns(self, wait: Waiting) -> Subject:
        state, lane_wait = self.state, self.resumes[wait][1]
        assert isinstance(lane_wait, LaneWait)
        block = state.blocks[lane_wait.block]
        step = block.steps[0]
        count = int(state.read_value(step.instruction.operands[1], step, block, lane_wait.lanes)[0])
        ctas = [wait.key & ~1, wait.key | 1] if ".cta_group::2" in step.instruction.modifiers else [wait.key]
        holders = [
            self._describe_holder(cta, item) for cta in ctas for item in state.machine.memory.tensor.list_holders(cta)
        ]
        missing = f"no {count} consecutive columns are free: {'; '.join(holders)}"
        helpers = self._find_helpers(self.reach.find_sources(match_deallocation), wait.key if len(ctas) == 1 else None)
        names = " and ".join(f"CTA {self.name_cta(cta)}" for cta in ctas)
        key, name = ("columns", ctas[0], len(ctas)), f"columns of tensor memory of {names}"
        return Subject(key, name, missing, helpers=helpers, advice=advice.COLUMNS)

    def _describe_holder(self, cta: int, item: Holding) -> str:
        """Say who holds columns and where they were allocated."""
        shape = self.state.shape
        warp = list_threads(self.state, shape.select_index(np.flatnonzero(shape.warp == shape.warp[item.lane])))
        instruction = item.instruction
        place = Place(opcode_span(instruction), instruction.full_opcode)
        last = item.first + item.columns - 1
        return f"{item.first} to {last} of CTA {self.name_cta(cta)} are held by {self.name_threads(warp)} since {place}"
