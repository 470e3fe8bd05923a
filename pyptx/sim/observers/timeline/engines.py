"""What asynchronous engines have in flight: bulk and tensor copies, cp.async groups, wgmma groups, tcgen05 products.

Work begins at its issue and ends at the first wait for it: of a group, or of an mbarrier's phase.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from pyptx.check.body import Step
from pyptx.ir import ImmediateOperand, Instruction
from pyptx.isa.descriptors import InstructionDescriptor
from pyptx.isa.model import Kind
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.timeline.record import Now, Record
from pyptx.sim.observers.timeline.records import Track, Transfer
from pyptx.sim.program.blocks import Block

LOADS, STORES, COPIES, WGMMA, TCGEN05 = "TMA loads", "TMA stores", "cp.async", "wgmma", "tcgen05"
MULTIPLIERS = frozenset((WGMMA, TCGEN05))
Landing = Callable[[], None]
Key = tuple[str, int]
"""An engine and the warp that issues to it."""


@dataclass(slots=True)
class Work:
    """One operation in flight, or the operations of a group together."""

    track: int
    start: int
    label: str
    line: int
    issuer: int
    bytes: int
    flops: int
    barrier: str = ""
    count: int = 1
    """How many operations it represents; 0 once another one represents it."""
    end: int | None = None


class Engines:
    """The engines of the recorded CTAs of a batch."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.signaling_work: list[list[Work]] = []
        """The work that now signals barriers, for each lane that issued it; the last one is named after them."""
        self.bytes: dict[str, int] = {}
        self.flops = 0
        """Operations of all CTAs, recorded or not; only of tcgen05, whose shape the instruction does not name."""
        self.products: list[tuple[int, int, int]] = []
        """CTA, start and end of the products that recorded warps execute themselves."""
        self._ctas, self._first = 1, 0
        self._tracks: dict[tuple[str, int], int] = {}
        self._works: list[Work] = []
        self._open: dict[Key, list[Work]] = {}
        self._groups: dict[Key, list[list[Work]]] = {}
        self._pending_products: dict[int, list[Work]] = {}
        """The committed products of a warp without a wait."""
        self._static: dict[int, list[tuple[int, str, int]]] = {}

    def begin(self, ctas: int, first: int) -> None:
        """Begin a batch with this many CTAs, the recorded ones numbered from `first`."""
        self._ctas, self._first = ctas, first
        self._tracks = {}

    def close(self) -> None:
        """Record the batch's work; draw work without a wait to the end."""
        record = self.record
        last = record.run_record.end
        for work in self._works:
            last = max(last, work.start + 1, work.end or 0)
        for work in self._works:
            if work.count and record.has_room():
                end = last if work.end is None else max(work.end, work.start + 1)
                record.run_record.transfers.append(
                    Transfer(work.track, work.start, end, work.label, work.line, work.issuer, work.bytes, work.flops,
                             work.barrier, work.count, work.end is not None)
                )  # fmt: skip
        self._works, self._open, self._groups, self._pending_products = [], {}, {}, {}

    def end_wait(self, work: Work, time: int) -> None:
        """End the work that a wait has observed."""
        work.end = time if work.end is None else min(work.end, time)

    # Issues

    def add(self, engine: str, warp: int, instruction: Instruction, label: str, count: int = 0, flops: int = 0) -> Work:
        """Record the issue of work by a warp, with its bytes or operations."""
        record = self.record
        cta = warp % self._ctas
        track = self._tracks.get((engine, cta))
        if track is None:
            track = self._tracks[engine, cta] = len(record.run_record.tracks)
            record.run_record.tracks.append(Track(self._first + cta, engine, True))
        line = record.places.find_line(instruction)
        work = Work(track, record.read_clock(warp), label, line, record.rows[warp], count, flops)
        self._works.append(work)
        return work

    def begin_instruction(self, now: Now, args: tuple[Any, ...]) -> None:
        """Prepare for an instruction that may issue work."""
        step_traits, instruction = now.step.traits, now.site.instruction
        match step_traits.get(Trait.ISSUES):
            case "wgmma":
                self._issue_wgmma(now, instruction)
            case "tcgen05":
                self._issue_tcgen05(now, instruction, args)
            case _:
                if step_traits.get(Trait.COMMITS) == "tcgen05":
                    self._commit_products(now)

    def _issue_wgmma(self, now: Now, instruction: Instruction) -> None:
        shape_match = re.search(r"m(\d+)n(\d+)k(\d+)", instruction.full_opcode)
        flops = 2 * prod(map(int, shape_match.groups())) if shape_match else 0
        record = self.record
        shape = record.batch.shape
        for warp in record.find_recorded_warps(now.lanes)[0]:
            if warp // shape.ctas % 4 == 0:
                work = self.add(WGMMA, warp, instruction, shape_match[0] if shape_match else "wgmma", flops=flops)
                self._open.setdefault((WGMMA, warp), []).append(work)

    def _issue_tcgen05(self, now: Now, instruction: Instruction, args: tuple[Any, ...]) -> None:
        for lane in now.active.tolist():
            warp = self.record.find_warp(lane)
            multiplies = Trait.MULTIPLIES in now.step.traits
            label, flops = _decode_product(now.step, args, lane) if multiplies else (instruction.modifiers[0][1:], 0)
            self.flops += flops
            if not self.record.is_recorded[warp]:
                continue
            work = self.add(TCGEN05, warp, instruction, label, flops=flops)
            self._open.setdefault((TCGEN05, warp), []).append(work)

    def _commit_products(self, now: Now) -> None:
        """Group the pending work of each thread that runs `tcgen05.commit`: it arrives at an mbarrier together."""
        for lane in now.active.tolist():
            warp = self.record.find_warp(lane)
            if not self.record.is_recorded[warp]:
                self.signaling_work.append([])
                continue
            pending = self._pending_products.setdefault(warp, [])
            pending[:] = [work for work in pending if work.end is None]
            group = self._join(self._open.pop((TCGEN05, warp), []))
            if group is not None:
                pending.append(group)
            self.signaling_work.append(list(pending))

    def end_instruction(self) -> None:
        """Finish an instruction."""
        self.signaling_work = []

    def wrap_effect(
        self, agent: str, lanes: Array, land: Callable[[], None], in_group: bool, size: int
    ) -> Callable[[], None]:
        """Record the issue of a copy; return a function that lands it and records that."""
        record = self.record
        now = record.now
        if now is None:
            return land
        instruction = now.site.instruction
        if Trait.SIGNALS in now.step.traits and now.step.traits.get(Trait.COMMITS) == "cp.async":
            return self._deliver_copies(lanes, land)
        warps = {record.find_warp(int(lane)) for lane in lanes}
        issuers = [warp for warp in sorted(warps) if record.is_recorded[warp]]
        engine = COPIES if agent == "cp.async" else STORES if in_group else LOADS
        self.bytes[engine] = self.bytes.get(engine, 0) + size
        works: dict[int, list[Work]] = {}
        for warp in issuers:
            work = self.add(engine, warp, instruction, _describe_copy(instruction), size // len(warps))
            works[warp] = [work]
            if in_group:
                self._open.setdefault((agent, warp), []).append(work)
        return self._attribute_landing(works, lanes, land)

    def _deliver_copies(self, lanes: Array, land: Landing) -> Landing:
        """Return the landing of a `cp.async.mbarrier.arrive`: the lanes' copies end with a phase."""
        works: dict[int, list[Work]] = {}
        for warp in sorted({self.record.find_warp(int(lane)) for lane in lanes}):
            group = self._join(self._open.pop((COPIES, warp), [])) if self.record.is_recorded[warp] else None
            if group is not None:
                works[warp] = [group]
        return self._attribute_landing(works, lanes, land)

    def _attribute_landing(self, works: dict[int, list[Work]], lanes: Array, land: Landing) -> Landing:
        """Return a function that lands the work of warps for these lanes and attributes it to them."""
        if not works:
            return land
        works_by_lane = [works.get(self.record.find_warp(int(lane)), []) for lane in lanes]

        def landing() -> None:
            before, self.signaling_work = self.signaling_work, works_by_lane
            try:
                land()
            finally:
                self.signaling_work = before

        return landing

    def wrap_arrival(self, land: Callable[[Array], None]) -> Callable[[Array], None]:
        """Return a function that lands an arrival with the current work of its lanes."""
        works_by_lane = self.signaling_work
        if not works_by_lane:
            return land

        def landing(positions: Array) -> None:
            before, self.signaling_work = (
                self.signaling_work,
                [works_by_lane[position] for position in positions.tolist()],
            )
            try:
                land(positions)
            finally:
                self.signaling_work = before

        return landing

    # Groups

    def commit(self, agent: str, lanes: Array) -> None:
        """Commit a group of copies of these lanes."""
        for warp in sorted({self.record.find_warp(int(lane)) for lane in lanes}):
            if self.record.is_recorded[warp]:
                self._commit((agent, warp), None)

    def _commit(self, key: Key, until: int | None) -> None:
        works = self._open.get(key, [])
        members = [work for work in works if until is None or work.start < until]
        self._open[key] = [work for work in works if until is not None and work.start >= until]
        group = self._join(members)
        self._groups.setdefault(key, []).append([group] if group is not None else [])

    def _join(self, works: list[Work]) -> Work | None:
        """Merge the operations of a group into the first."""
        if not works:
            return None
        first = works[0]
        first.bytes, first.flops = sum(work.bytes for work in works), sum(work.flops for work in works)
        first.count = sum(work.count for work in works)
        for work in works[1:]:
            work.count = 0
        return first

    def wait(self, agent: str, lanes: Array, newest: int | None) -> None:
        """Record that lanes wait for all but their newest groups."""
        for warp in sorted({self.record.find_warp(int(lane)) for lane in lanes}):
            if self.record.is_recorded[warp]:
                self._wait((agent, warp), newest or 0, self.record.read_clock(warp))

    def _wait(self, key: Key, newest: int, time: int) -> None:
        groups = self._groups.get(key, [])
        complete_groups = groups[: len(groups) - newest]
        self._groups[key] = groups[len(groups) - newest :] if newest else []
        for group in complete_groups:
            for work in group:
                self.end_wait(work, time + 1)

    def record_block(self, block: Block, warp: int, start: int) -> None:
        """Record that a warp ran a block: its own products, and its `wgmma` groups and waits."""
        steps = self._static.get(block.pc)
        if steps is None:
            steps = self._static[block.pc] = _collect_group_steps(block)
        for offset, kind, newest in steps:
            if kind == "mma":
                self.products.append((self._first + warp % self._ctas, start + offset, start + offset + 1))
            elif kind == "commit":
                self._commit((WGMMA, warp), start + offset)
            else:
                self._wait((WGMMA, warp), newest, start + offset)


def _describe_copy(instruction: Instruction) -> str:
    """Return the name of a copy: its shape, and what it does beyond copying."""
    parts = [part.partition("::")[0] for part in instruction.full_opcode.split(".")]
    words = [part for part in parts if part in _WORDS or re.fullmatch(r"[1-5]d", part)]
    return " ".join(words) or ("bulk" if "bulk" in parts else "cp.async")


_WORDS = frozenset("reduce multicast im2col gather4 scatter4 st red add min max inc dec and or xor".split())


def _decode_product(step: Step, args: tuple[Any, ...], lane: int) -> tuple[str, int]:
    """Return the shape of a tcgen05 product, from its instruction descriptor, and its operations."""
    assert step.plan is not None
    modifiers, signature = step.instruction.modifiers, step.plan.signature
    kind = next(part.removeprefix("kind::") for m in modifiers for part in m.split(".") if part.startswith("kind::"))
    addresses = sum(operand.kind is Kind.ADDRESS for operand in signature)
    names = [operand.name for operand in signature if operand.kind is not Kind.ADDRESS]
    lanes: Lanes = args[1]
    values = np.broadcast_to(args[3 + 2 * addresses + 1 + names.index("idesc")], lanes.n)
    try:
        descriptor = InstructionDescriptor.decode(kind, int(values[np.searchsorted(lanes.index, lane)]))
    except ValueError:
        return "mma", 0
    return f"m{descriptor.m}n{descriptor.n}k{descriptor.k}", 2 * descriptor.m * descriptor.n * descriptor.k


def _collect_group_steps(block: Block) -> list[tuple[int, str, int]]:
    steps: list[tuple[int, str, int]] = []
    for offset, step in enumerate(block.steps):
        traits = step.traits
        if Trait.MULTIPLIES in traits and Trait.ISSUES not in traits:
            steps.append((offset, "mma", 0))
        elif traits.get(Trait.COMMITS) == "wgmma":
            steps.append((offset, "commit", 0))
        elif traits.get(Trait.LANDS) == "wgmma":
            newest = step.instruction.operands[0]
            steps.append((offset, "wait", int(newest.value) if isinstance(newest, ImmediateOperand) else 0))
    return steps
