"""The statistics of a run as values, text and JSON: hints about the program, not timing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from pyptx.check.body import Step
from pyptx.isa.traits import Trait
from pyptx.sim.observers.statistics.overlap import Overlap, measure_overlap
from pyptx.sim.observers.statistics.tally import Access, Tally
from pyptx.sim.observers.timeline.recorder import Recorder
from pyptx.sim.program.blocks import Program, is_product
from pyptx.sim.semantics.registry import find_section

NOTE = "hints about the program, not timing"


@dataclass(frozen=True, slots=True)
class LineAccess:
    """The accesses of one instruction to one state space: `line` of the PTX and its `source` line. `pieces` are
    wavefronts of shared or sectors of global memory over all `requests` of warps, `ideal` the fewest possible."""

    line: int
    source: tuple[str, int] | None
    opcode: str
    space: str
    requests: int
    pieces: int
    ideal: int
    most: int
    bytes: int

    @property
    def factor(self) -> float:
        """The ratio of pieces to the ideal: the n of an n-way bank conflict; 1 is best."""
        return self.pieces / self.ideal if self.ideal else 1.0

    @property
    def unit(self) -> str:
        """The unit of `pieces`."""
        return "wavefronts" if self.space == "shared" else "sectors"


@dataclass(frozen=True, slots=True)
class Statistics:
    """What the program executed: the instruction mix by section of the manual, in warps and in lanes, bytes by state
    space and by engine, tensor core operations, accesses by line, and the overlap of engines."""

    mix: dict[str, tuple[int, int]]
    bytes: dict[str, int]
    tensor_flops: int
    accesses: tuple[LineAccess, ...]
    overlap: Overlap

    @property
    def conflicts(self) -> tuple[LineAccess, ...]:
        """The accesses to shared memory with bank conflicts, the costliest first."""
        return self._rank_worst("shared")

    @property
    def uncoalesced(self) -> tuple[LineAccess, ...]:
        """The accesses to global memory that use more sectors than their bytes need, the costliest first."""
        return self._rank_worst("global")

    def _rank_worst(self, space: str) -> tuple[LineAccess, ...]:
        costly = [item for item in self.accesses if item.space == space and item.pieces > item.ideal]
        return tuple(sorted(costly, key=lambda item: item.ideal - item.pieces))

    def at(self, line: int, space: str) -> LineAccess:
        """Return the accesses of a PTX line to a state space; KeyError if it has none."""
        for item in self.accesses:
            if (item.line, item.space) == (line, space):
                return item
        raise KeyError(f"line {line} does not access {space} memory")

    def by_source(self, space: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Return pieces and ideal of every Python line, or line that `.loc` names, over all its instructions."""
        totals: dict[tuple[str, int], tuple[int, int]] = {}
        for item in self.accesses:
            if item.space == space and item.source is not None:
                pieces, ideal = totals.get(item.source, (0, 0))
                totals[item.source] = pieces + item.pieces, ideal + item.ideal
        return totals

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "note": NOTE,
            "mix": {name: {"warps": warps, "lanes": lanes} for name, (warps, lanes) in self.mix.items()},
            "bytes": self.bytes,
            "tensor_flops": self.tensor_flops,
            "accesses": [
                {
                    "line": item.line, "source": list(item.source) if item.source else None, "opcode": item.opcode,
                    "space": item.space, "requests": item.requests, item.unit: item.pieces, "ideal": item.ideal,
                    "factor": item.factor, "most": item.most, "bytes": item.bytes,
                }
                for item in self.accesses
            ],
            "overlap": {
                "copies": self.overlap.copies, "products": self.overlap.products, "both": self.overlap.both,
                "steps": self.overlap.steps, "share": self.overlap.share,
            },
        }  # fmt: skip

    def marks(self) -> dict[int, dict[str, str]]:
        """Return the notes beside the lines of the timeline's page."""
        labels: dict[int, dict[str, str]] = {}
        for item in self.accesses:
            labels.setdefault(item.line, {})["banks" if item.space == "shared" else "sectors"] = f"{item.factor:.1f}×"
        return labels

    def __str__(self) -> str:
        lines = [f"statistics ({NOTE})", "", *self._format_mix(), "", *self._format_bytes()]
        lines += ["", *_format_accesses(self.accesses)] if self.accesses else []
        overlap = self.overlap
        if overlap.copies or overlap.products:
            lines += [
                "",
                f"engines: copies in flight for {overlap.copies} steps, products for {overlap.products}, both for "
                f"{overlap.both} ({overlap.share:.0%} of the products'), of {overlap.steps}",
            ]
        return "\n".join(lines)

    def _format_mix(self) -> list[str]:
        total = sum(warps for warps, _ in self.mix.values()) or 1
        rows = sorted(self.mix.items(), key=lambda pair: -pair[1][0])
        return [
            f"{'instructions of warps':32}{'warps':>12}{'share':>8}{'lanes':>8}",
            *(f"  {n:30}{w:12}{w / total:8.1%}{lanes / (32 * w):8.1%}" for n, (w, lanes) in rows if w),
        ]

    def _format_bytes(self) -> list[str]:
        rows = [f"  {name:30}{count:12}" for name, count in sorted(self.bytes.items())]
        rows += [f"  {'tensor cores (operations)':30}{self.tensor_flops:12}"] if self.tensor_flops else []
        return [f"{'bytes':32}{'':>12}", *rows]


def _format_accesses(accesses: Iterable[LineAccess]) -> list[str]:
    """Return one row per line: of Python if the instructions come from Python, else of the PTX."""
    head = f"{'line':>6}  {'instruction':34}{'space':8}{'requests':>9}{'pieces':>10}{'ideal':>10}{'factor':>8}"
    rows: dict[tuple[object, ...], list[LineAccess]] = {}
    for item in accesses:
        rows.setdefault((item.source or item.line, item.opcode, item.space), []).append(item)
    return [head, *(_format_row(items) for items in rows.values())]


def _format_row(items: Sequence[LineAccess]) -> str:
    first = items[0]
    requests, pieces, ideal = (sum(getattr(i, name) for i in items) for name in ("requests", "pieces", "ideal"))
    opcode = first.opcode if len(first.opcode) < 34 else first.opcode[:32] + "…"
    place = f"  {first.source[0].rpartition('/')[2]}:{first.source[1]}" if first.source else ""
    numbers = f"{requests:9}{pieces:10}{ideal:10}{pieces / max(1, ideal):7.1f}×"
    return f"{first.line:6}  {opcode:34}{first.space:8}{numbers}{place}"


def make_statistics(recorder: Recorder, tally: Tally) -> Statistics:
    """Return the statistics of a recorded run."""
    byte_counts = dict(tally.bytes)
    for engine, count in recorder.engines.bytes.items():
        byte_counts[engine] = byte_counts.get(engine, 0) + count
    rows = [_make_line_access(recorder, item) for item in tally.accesses.values()]
    return Statistics(
        _count_mix(recorder), byte_counts, recorder.engines.flops + _count_warp_flops(recorder),
        tuple(sorted(rows, key=lambda row: (row.line, row.space))),
        measure_overlap(recorder.run_record, recorder.engines.products),
    )  # fmt: skip


def _make_line_access(recorder: Recorder, item: Access) -> LineAccess:
    places, instruction = recorder.places, item.instruction
    return LineAccess(
        places.find_line(instruction), places.find_source(instruction), instruction.full_opcode, item.space,
        item.requests, item.pieces, item.ideal, item.most, item.bytes,
    )  # fmt: skip


def _count_mix(recorder: Recorder) -> dict[str, tuple[int, int]]:
    counts: dict[str, tuple[int, int]] = {}
    for family, _, warps, lanes in _iterate_executed(recorder.program, recorder):
        before = counts.get(family, (0, 0))
        counts[family] = before[0] + warps, before[1] + lanes
    return counts


def _iterate_executed(program: Program, recorder: Recorder) -> Iterable[tuple[str, Step, int, int]]:
    """Yield every instruction with its family and how many warps and lanes ran it."""
    for block in program.blocks:
        warps, lanes = int(recorder.warp_runs[block.pc]), int(recorder.lane_runs[block.pc])
        for step in block.steps if warps else ():
            if step.plan is not None:
                yield find_section(step.plan.match.form).replace("_", " "), step, warps, lanes


def _count_warp_flops(recorder: Recorder) -> int:
    """Return the operations of the products that warps and warpgroups issue: two for each multiplication."""
    total = 0
    for _, step, warps, _ in _iterate_executed(recorder.program, recorder):
        total += count_flops(step) * warps // (4 if is_product(step) else 1)
    return total


def count_flops(step: Step) -> int:
    """Return the operations of one `mma`, `wmma` or `wgmma`; 0 for other instructions."""
    if Trait.MULTIPLIES not in step.traits:
        return 0
    shape_match = re.search(r"m(\d+)n(\d+)k(\d+)", step.instruction.full_opcode)
    return 2 * prod(map(int, shape_match.groups())) if shape_match else 0
