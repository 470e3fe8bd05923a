"""Draws the pipelines of examples: what the warps and engines of one CTA do on the simulator's timeline, as SVG.

Time is logical: steps of the program, not seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from html import escape

from examples.parts.example import Run, find_example
from pyptx.sim.observers.timeline.records import RunRecord, Transfer, Wait

PICTURES = {
    "hopper/cluster_gemm": Run({"m": 256, "n": 256, "k": 768}, 1e-2, 1e-2),
    "hopper/persistent_gemm": Run({"m": 256, "n": 768, "k": 384, "sms": 2}, 1e-2, 1e-2),
    "hopper/attention_overlap": Run({"h": 1, "s": 1152, "d": 128}, 1e-2, 1e-2, 2),
    "blackwell/two_sm_gemm": Run({"m": 256, "n": 256, "k": 768}, 1e-2, 1e-2),
    "blackwell/persistent_gemm": Run({"m": 256, "n": 1024, "k": 384}, 1e-2, 1e-2),
}
"""The runs that are drawn."""
WIDTH, LABEL, ROW = 900, 130, 20
LANES, THICKNESS = 4, 4
COLORS = {
    "TMA loads": "#4c78a8",
    "cp.async": "#4c78a8",
    "TMA stores": "#72b7b2",
    "wgmma": "#e45756",
    "tcgen05": "#e45756",
}
RUNNING, WAITING, OTHER = "#bab0ac", "#f2cf5b", "#54a24b"


def list_pictures() -> dict[str, partial[str]]:
    """Return the files and the functions that draw them."""
    return {f"examples/pictures/{name.replace('/', '_')}.svg": partial(draw, name) for name in PICTURES}


def draw(name: str) -> str:
    """Return the picture of an example's first CTA."""
    outcome = find_example(name).simulate(PICTURES[name], timeline=True, check="none")
    outcome.verify()
    assert outcome.report.timeline is not None
    return draw_record(outcome.report.timeline.recorded)


def draw_record(record: RunRecord) -> str:
    """Return the picture of a record's first CTA. Warps that do the same at the same time share a row."""
    rows = choose_rows(record)
    span = max((item.end for item in (*record.runs, *record.transfers) if item.track in rows), default=1)
    scale, height = (WIDTH - LABEL) / span, ROW * (len(rows) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif"',
        'font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]  # fmt: skip
    for row, (track, label) in enumerate(rows.items()):
        top = row * ROW
        parts.append(f'<text x="4" y="{top + 14}">{escape(label)}</text>')
        for run in record.runs:
            if run.track == track:
                parts.append(draw_bar(run.start, run.end, top + 7, 4, scale, RUNNING, ""))
        for wait in record.waits:
            if wait.track == track:
                parts.append(draw_bar(wait.start, wait.end, top + 4, 10, scale, WAITING, describe_wait(wait)))
        color = COLORS.get(record.tracks[track].name, OTHER)
        for transfer, lane in spread([item for item in record.transfers if item.track == track]):
            title, place = describe_transfer(transfer), top + 1 + lane * THICKNESS
            parts.append(draw_bar(transfer.start, transfer.end, place, THICKNESS - 1, scale, color, title))
    parts.append(f'<text x="{LABEL}" y="{height - 5}" fill="#555">{span} steps of the program, not time</text></svg>')
    return "\n".join(parts) + "\n"


def spread(transfers: Sequence[Transfer]) -> Iterator[tuple[Transfer, int]]:
    """Yield transfers with a lane each, so that up to four that overlap lie below one another."""
    ends = [0] * LANES
    for transfer in sorted(transfers, key=lambda item: item.start):
        lane = next((lane for lane, end in enumerate(ends) if end <= transfer.start), ends.index(min(ends)))
        ends[lane] = transfer.end
        yield transfer, lane


def choose_rows(record: RunRecord) -> dict[int, str]:
    """Return the tracks of CTA 0 to draw, with their labels: engines, and one for all warps that wait and end alike."""
    rows = dict[int, str]()
    members = dict[tuple[tuple[int, int], ...], tuple[int, list[str]]]()
    for number, track in enumerate(record.tracks):
        if track.cta != 0:
            continue
        if track.engine:
            if any(transfer.track == number for transfer in record.transfers):
                rows[number] = track.name
            continue
        waits = [(wait.start, wait.end) for wait in record.waits if wait.track == number]
        last = max((run.end for run in record.runs if run.track == number), default=0)
        members.setdefault((*waits, (last, last)), (number, []))[1].append(track.name.removeprefix("warp "))
    warps = {first: label_warps(names) for first, names in members.values()}
    return {**dict(sorted(warps.items())), **rows}


def label_warps(names: Sequence[str]) -> str:
    """Return the label of warps that share a row."""
    if len(names) == 1:
        return f"warp {names[0]}"
    is_range = [*map(int, names)] == [*range(int(names[0]), int(names[-1]) + 1)]
    return f"warps {names[0]}–{names[-1]}" if is_range else f"warps {', '.join(names)}"


def draw_bar(start: int, end: int, top: int, thickness: int, scale: float, color: str, title: str) -> str:
    """Return a bar with a tooltip."""
    left, width = LABEL + start * scale, max((end - start) * scale - 0.5, 0.8)
    head = f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{thickness}" fill="{color}"'
    return f"{head}><title>{escape(title)}</title></rect>" if title else f"{head}/>"


def describe_wait(wait: Wait) -> str:
    """Return the tooltip of a wait."""
    return f"waits for {wait.barrier}, phase {wait.phase}"


def describe_transfer(transfer: Transfer) -> str:
    """Return the tooltip of a transfer."""
    size = f"{transfer.bytes} bytes" if transfer.bytes else f"{transfer.flops} operations"
    return f"{transfer.label}: {size}{f' to {transfer.barrier}' if transfer.barrier else ''}"
