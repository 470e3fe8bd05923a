"""What an iteration of an example's main loop does: operations, bytes and waits, from a run's counts by line of PTX.

Bytes in flight are known of asynchronous loads alone: how many plain loads a warp has under way, the GPU decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyptx.sim.observers.statistics.report import Statistics
from pyptx.sim.observers.timeline.records import RunRecord, Transfer

_LABEL = re.compile(r"\s*(?P<name>\$?[\w$]+):")
_BRANCH = re.compile(r"\bbra(?:\.uni)?\s+(?P<name>\$?[\w$]+);")
_OPCODE = re.compile(r"\s*(?:@!?%\w+\s+)?(?P<opcode>[a-z][\w.:]*)")
_PRODUCT = re.compile(r"(?P<kind>wgmma|mma)\.\S*?m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)")
LOADS = ("TMA loads", "cp.async", "bulk copies")
"""Engines that bring bytes into an SM."""
WAITS = {
    "mbarrier": ("mbarrier.try_wait", "mbarrier.test_wait"),
    "bar": ("bar.sync", "bar.red", "barrier.sync", "barrier.red", "barrier.cta.sync", "barrier.cta.red"),
    "cluster barrier": ("barrier.cluster.wait",),
    "group": ("cp.async.wait", "cp.async.bulk.wait", "wgmma.wait"),
}
"""Instructions that wait, by what they wait for; groups are of copies or of products."""


@dataclass(frozen=True)
class Loop:
    """A loop of the PTX, and the loop around all of it: first and last lines."""

    first: int
    last: int
    outer: tuple[int, int]


@dataclass(frozen=True)
class Step:
    """An iteration of the main loop, of all warps of a CTA: operations, and bytes that arrive. The waits are of a warp:
    in the products' loop, in the loads' loop if that is another, and outside the products' loop for each tile."""

    flops: float
    loaded: float
    waits: Counter[str]
    load_waits: Counter[str]
    tile_waits: Counter[str]

    def __str__(self) -> str:
        work = [f"{value:,.0f} {unit}" for value, unit in ((self.flops, "FLOP"), (self.loaded, "bytes")) if value]
        waits = [
            f"{', '.join(f'{count} {kind}' for kind, count in counts.items())}{where}"
            for counts, where in ((self.waits, ""), (self.load_waits, " to load"), (self.tile_waits, " more a tile"))
            if counts
        ]
        return "; ".join([f"a step: {', '.join(work)}", *([f"waits: {'; '.join(waits)}"] if waits else [])])


@dataclass
class Work:
    """What an instruction did in a run: operations or bytes in all, how often, and for one thread of which warps."""

    total: float = 0.0
    times: int = 0
    issuers: set[int] = field(default_factory=set[int])

    def add(self, transfer: Transfer, amount: float) -> None:
        """Count a transfer, which one thread has issued."""
        self.total += amount
        self.times += 1
        self.issuers.add(transfer.issuer)


class Listing:
    """The PTX of a run with the number of executions of each line by warps."""

    def __init__(self, record: RunRecord) -> None:
        self.lines = record.source.splitlines()
        self.runs = {line.number: line.warps for line in record.lines}
        self.ctas = len(record.ctas)
        self.spans = list_spans(self.lines)

    def find_loop(self, work: Mapping[int, Work]) -> Loop | None:
        """Return the innermost loop of the lines that do most; None if most is not in loops."""
        totals = dict[tuple[int, int], float]()
        for line, item in work.items():
            if around := [span for span in self.spans if span[0] <= line <= span[1]]:
                inner = min(around, key=lambda span: span[1] - span[0])
                totals[inner] = totals.get(inner, 0.0) + item.total
        if sum(totals.values()) <= sum(item.total for item in work.values()) / 2:
            return None
        first, last = max(totals, key=lambda span: totals[span])
        around = [span for span in self.spans if span[0] <= first and last <= span[1]]
        return Loop(first, last, max(around, key=lambda span: span[1] - span[0]))

    def sum_step(self, work: Mapping[int, Work], loop: Loop) -> float:
        """Return what all warps of a CTA do in an iteration in which each instruction runs once."""
        items = [item for line, item in work.items() if loop.first <= line <= loop.last]
        issuers = set[int]().union(*(item.issuers for item in items))
        warps = len(issuers) if issuers else self.count_before(loop.outer[0])
        return sum(item.total / item.times for item in items) * warps / self.ctas

    def count_before(self, line: int) -> int:
        """Return how often warps ran the last instruction before a line."""
        return next(self.runs[number] for number in range(line - 1, 0, -1) if number in self.runs)

    def count_waits(self, lines: Iterable[int], times: int) -> Counter[str]:
        """Return how often a warp waits at lines for what, for each of so many passes."""
        counts = Counter[str]()
        for line in lines:
            opcode = self.read_opcode(line)
            for kind, names in WAITS.items():
                if opcode.startswith(names):
                    counts[kind] += self.runs[line]
        return Counter({kind: count for kind, total in counts.items() if (count := round(total / times))})

    def read_opcode(self, line: int) -> str:
        """Return the opcode of a line, empty if it has no instruction."""
        match = _OPCODE.match(self.lines[line - 1])
        return match["opcode"] if match and line in self.runs else ""


def list_spans(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return first and last lines of all loops: of labels and the last branches back to them."""
    labels, spans = dict[str, int](), dict[int, int]()
    for number, line in enumerate(lines, 1):
        if label := _LABEL.match(line):
            labels[label["name"]] = number
        elif (branch := _BRANCH.search(line)) and branch["name"] in labels:
            spans[labels[branch["name"]]] = number
    return list(spans.items())


def measure_step(record: RunRecord, statistics: Statistics) -> Step | None:
    """Return what an iteration of the main loop does: the loop with most operations, or of a kernel without products
    that with most loads. None if most is done outside loops, as in a kernel of one tile."""
    listing = Listing(record)
    flops, loads = count_products(listing, record), count_loads(record, statistics)
    main = listing.find_loop(flops or loads)
    if main is None:
        return None
    inner, outer = range(main.first, main.last + 1), range(main.outer[0], main.outer[1] + 1)
    source = main if any(line in inner for line in loads) else listing.find_loop(loads)
    return Step(
        listing.sum_step(flops, main), listing.sum_step(loads, source) if source else 0.0,
        listing.count_waits(inner, listing.runs[main.last]),
        listing.count_waits(range(source.first, source.last + 1), listing.runs[source.last])
        if source and source != main else Counter(),
        listing.count_waits((line for line in outer if line not in inner), listing.count_before(main.first)),
    )  # fmt: skip


def count_products(listing: Listing, record: RunRecord) -> dict[int, Work]:
    """Return the operations by line. Of `tcgen05` instructions, the timeline has the first of those that end together,
    with the operations of all."""
    flops = dict[int, Work]()
    for line, times in listing.runs.items():
        if times and (product := _PRODUCT.match(listing.read_opcode(line))):
            warps = 4 if product["kind"] == "wgmma" else 1
            each = 2 * int(product["m"]) * int(product["n"]) * int(product["k"])
            flops[line] = Work(each * times / warps, times)
    for transfer in record.transfers:
        if transfer.flops and listing.read_opcode(transfer.line).startswith("tcgen05"):
            flops.setdefault(transfer.line, Work()).add(transfer, transfer.flops)
    return flops


def count_loads(record: RunRecord, statistics: Statistics) -> dict[int, Work]:
    """Return the bytes that arrive in SMs by line: of asynchronous loads, or else of plain ones."""
    loads = dict[int, Work]()
    for transfer, bytes in list_loads(record):
        if record.tracks[transfer.track].name != "cp.async":
            loads.setdefault(transfer.line, Work()).add(transfer, bytes)
    # The timeline has the copies of a group at the line of the first one. Their writes include zeros beyond an edge.
    copies = [item for item in statistics.accesses if item.space == "shared" and item.opcode.startswith("cp.async.c")]
    plain = [item for item in statistics.accesses if item.space == "global" and item.opcode.startswith("ld.")]
    for item in copies or (plain if not loads else []):
        loads[item.line] = Work(item.bytes, item.requests)
    return loads


def list_loads(record: RunRecord) -> Iterator[tuple[Transfer, int]]:
    """Yield asynchronous loads, and the bytes that arrive in CTAs."""
    ctas = record.cluster[0] * record.cluster[1] * record.cluster[2]
    for transfer in record.transfers:
        if record.tracks[transfer.track].name in LOADS:
            yield transfer, transfer.bytes * (ctas if "multicast" in transfer.label else 1)
