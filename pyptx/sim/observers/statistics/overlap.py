"""How much the work of engines overlaps, in logical time. Knows only records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyptx.sim.observers.timeline.engines import MULTIPLIERS
from pyptx.sim.observers.timeline.records import Recorded

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


def measure_overlap(recorded: Recorded, products: Sequence[tuple[int, int, int]]) -> Overlap:
    """Return the total overlap of the engines of all CTAs. `products` are those that warps execute themselves
    (`mma.sync`): CTA, start and end."""
    copies = both = multiplies = steps = 0
    for cta in range(len(recorded.ctas)):
        tracks = {at: track.name for at, track in enumerate(recorded.tracks) if track.cta == cta and track.engine}
        moving = _merge_spans(
            (t.start, t.end) for t in recorded.transfers if tracks.get(t.track, "wgmma") not in MULTIPLIERS
        )
        working = _merge_spans(
            [
                *((t.start, t.end) for t in recorded.transfers if tracks.get(t.track) in MULTIPLIERS),
                *((start, end) for at, start, end in products if at == cta),
            ]
        )
        ends = [r.end for r in recorded.runs if recorded.tracks[r.track].cta == cta]
        starts = [r.start for r in recorded.runs if recorded.tracks[r.track].cta == cta]
        copies, multiplies = copies + _measure(moving), multiplies + _measure(working)
        both += _measure(moving) + _measure(working) - _measure(_merge_spans([*moving, *working]))
        steps += max(ends, default=0) - min(starts, default=0)
    return Overlap(copies, multiplies, both, steps)


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def _measure(spans: Iterable[Span]) -> int:
    return sum(end - start for start, end in spans)
