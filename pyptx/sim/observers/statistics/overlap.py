"""How much the work of engines overlaps, in logical time. Knows only records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyptx.sim.observers.timeline.engines import MULTIPLIERS
from pyptx.sim.observers.timeline.records import RunRecord

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Overlap:
    """Steps of the recorded CTAs in which copies were in flight, matrix products, and both; and all steps. Work is in
    flight from its issue to the first wait for it, as in the lazy schedule."""

    copies: int
    products: int
    both: int
    steps: int

    @property
    def share(self) -> float:
        """The part of the products' time in which copies were also in flight."""
        return self.both / self.products if self.products else 0.0


def measure_overlap(record: RunRecord, products: Sequence[tuple[int, int, int]]) -> Overlap:
    """Return the total overlap of the engines of all CTAs. `products` are those that warps execute themselves
    (`mma.sync`): CTA, start and end."""
    copies = shared_steps = multiplies = steps = 0
    for cta in range(len(record.ctas)):
        tracks = {index: track.name for index, track in enumerate(record.tracks) if track.cta == cta and track.engine}
        moving = _merge_spans(
            (t.start, t.end) for t in record.transfers if tracks.get(t.track, "wgmma") not in MULTIPLIERS
        )
        working = _merge_spans(
            [
                *((t.start, t.end) for t in record.transfers if tracks.get(t.track) in MULTIPLIERS),
                *((start, end) for product_cta, start, end in products if product_cta == cta),
            ]
        )
        ends = [r.end for r in record.runs if record.tracks[r.track].cta == cta]
        starts = [r.start for r in record.runs if record.tracks[r.track].cta == cta]
        copies, multiplies = copies + _measure(moving), multiplies + _measure(working)
        shared_steps += _measure(moving) + _measure(working) - _measure(_merge_spans([*moving, *working]))
        steps += max(ends, default=0) - min(starts, default=0)
    return Overlap(copies, multiplies, shared_steps, steps)


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = union[-1][0], max(union[-1][1], end)
        else:
            union.append((start, end))
    return union


def _measure(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)
