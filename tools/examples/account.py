"""What limits an example: its machine code, and what a small run moves and multiplies, against published rates.

A ceiling is what the busiest resource allows if everything else were free; no kernel has been timed. The figures of the
run are scaled to the large shape by operations or bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod

from examples.parts.example import Example, Run
from examples.parts.tile_order import TileOrder
from pyptx.sim.observers.statistics.report import LineAccess
from pyptx.sim.observers.timeline.records import RunRecord
from pyptx.toolchain import occupancy
from tools.examples.loops import choose_main, count_kinds, count_opcodes, list_loops
from tools.examples.machines import MACHINES, Machine
from tools.examples.steps import Listing, Step, list_loads, measure_step
from tools.examples.waves import count_memory_clocks, describe_order, list_waves

_SHAPE = re.compile(r"m(?P<m>\d+)n(?P<n>\d+)k(?P<k>\d+)")
_NARROW = {4: {"OMMA", "UTCOMMA"}, 8: {"QMMA", "IMMA", "QGMMA", "IGMMA", "UTCQMMA", "UTCIMMA"}}
"""Machine instructions by the bits of their operands; others take 16."""
_WGMMA_EXTRA = 0.8
"""Clocks that a wgmma takes beyond its operands or products."""
_SPECIAL = re.compile(r"(ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh)\.|div\..*f\d")
"""Instructions for which the special function units compute. ptxas multiplies to divide by an integer that it knows."""
SECTOR = 32
"""Bytes of a sector of global memory."""
L2 = "L2 (one probe)"
"""The rates of L2 are each of one published measurement. Plain loads may hit L1, and are not counted."""
LONG = {"k": 2048, "s": 1024, "g": 1, "splits": 1}
"""Sizes with which a run is long enough. One group has whole tiles, and one split loads queries once."""
FOLLOWS = {"words": "k", "kb": "k", "nb": "n", "a_blocks": "m", "b_blocks": "n"}
"""Sizes that follow from others: of scale factors."""
CTAS = 1024
"""More CTAs than a run has: all are recorded."""


@dataclass(frozen=True)
class Account:
    """The account of an example on a target."""

    registers: int
    spills: int
    shared: int
    ctas: int
    warps: int
    loop: Counter[str]
    """Instructions of the main loop by kind."""
    step: Step | None
    """What an iteration of the main loop does, if most is done in one."""
    loaded: int
    """Bytes that the run brings into SMs, by asynchronous loads or else by plain ones."""
    in_flight: int
    """The most bytes that asynchronous loads have under way for a CTA."""
    flops: int
    """Floating-point operations of the run."""
    clocks: dict[str, float]
    """Clocks of all SMs together that each resource is busy at the large shape."""
    order: str
    """What the tiles in flight read."""
    gpu: str
    """The GPU with whose rates the clocks are."""
    limit: str
    ceiling: str

    def __str__(self) -> str:
        mix = ", ".join(f"{count} {kind}" for kind, count in self.loop.most_common())
        intensity = f"{self.flops / self.loaded:.0f} FLOP per byte loaded" if self.flops and self.loaded else ""
        in_flight = f"{self.in_flight:,} bytes in flight" if self.in_flight else ""
        shares = ", ".join(f"{name} {clocks:,.0f}" for name, clocks in self.clocks.items())
        parts = [f"loop: {mix or 'none'}", str(self.step or ""), intensity, in_flight, self.order]
        return "; ".join(part for part in (*parts, f"clocks: {shares or 'unknown'}") if part)


def make_account(example: Example, target: str, machine: Machine | None = None) -> Account:
    """Assemble an example, simulate a run, and compare both with the rates of a GPU, the target's by default."""
    kernel, large = example.make(target), dict(example.large)
    needs = kernel.resources(**large)
    x, y, z = kernel.block
    resident = occupancy(target, x * y * z, registers=needs.registers, shared=needs.shared, barriers=needs.barriers)
    run = choose_run(example)
    report = example.simulate(run, target, statistics=True, timeline=CTAS, check="none").report
    assert report.stats.statistics is not None
    assert report.timeline is not None
    record, statistics = report.timeline.recorded, report.stats.statistics
    machine = machine or MACHINES.get(target)
    accesses = statistics.accesses
    delivered, requested = count_loaded(record, accesses)
    plain = [item for item in accesses if item.space == "global" and item.opcode.startswith("ld.")]
    # Tiles at an edge compute and load more than the problem has, so scale by what the run multiplied; but decode pads
    # the rows of any problem.
    done = 0 if example.traffic else statistics.tensor_flops
    scale = measure(example, Run(large)) / (done or measure(example, run))
    sass = kernel.sass(**large)
    loop = choose_main(list_loops(sass))
    clocks: dict[str, float] = {}
    waves = list_waves(example, machine, resident.ctas) if machine is not None else []
    if machine is not None:
        busy = count_tensor_clocks(record, statistics.tensor_flops, target, machine, find_bits(count_opcodes(sass)))
        wavefronts = sum(item.pieces for item in accesses if item.space == "shared")
        resources = {
            "tensor cores": busy,
            "shared memory": float(wavefronts),
            "special functions": count_special_clocks(record),
            "L1": sum(item.pieces for item in plain) * SECTOR / machine.shared,
            "loads into SMs": delivered / machine.ingest if machine.ingest else 0.0,
            L2: requested / machine.l2 * machine.sms if machine.l2 else 0.0,
            "memory": count_memory_clocks(example, machine, waves) / scale if scale else 0.0,
        }
        # A problem of one size may have fewer CTAs than there are SMs.
        sms = machine.sms if large else min(machine.sms, prod(record.grid))
        clocks = {name: value * scale / sms for name, value in resources.items() if value}
    limit = max(clocks, key=lambda name: clocks[name], default="unknown")
    return Account(
        needs.registers, (needs.spill_stores or 0) + (needs.spill_loads or 0), needs.shared, resident.ctas,
        resident.warps, count_kinds(loop), measure_step(record, statistics),
        delivered or sum(item.bytes for item in plain), count_in_flight(record),
        statistics.tensor_flops, clocks, describe_order(example, waves), machine.name if machine else "unknown",
        limit, describe_ceiling(example, machine, clocks.get(limit, 0.0)),
    )  # fmt: skip


def choose_run(example: Example) -> Run:
    """Return the run that does most, of those with the large shape's parameters. Of a product, it gets whole tiles and
    a long K, of attention a long sequence: what a tile does once is scaled like its loop."""
    large = example.large
    runs = [
        run
        for run in example.runs
        if run.shape.keys() <= large.keys() and all(run.shape[name] == large[name] for name in example.fixed)
    ]
    run = max(runs or example.runs, key=lambda run: measure(example, run))
    if not example.flops or not large:
        return run
    sizes = {**run.shape, **{name: min(size, large[name]) for name, size in LONG.items() if name in large}}
    if isinstance(order := example.order, TileOrder):
        for names, tile in (("mt", order.rows), ("n", order.columns)):
            sizes |= {name: -(-sizes[name] // tile) * tile for name in names if name in sizes}
        sizes |= {name: -(-large[name] * sizes[base] // large[base]) for name, base in FOLLOWS.items() if name in sizes}
    return replace(run, shape=sizes, special=False)


def measure(example: Example, run: Run) -> float:
    """Return the size of a run's problem: its bytes, or else its operations."""
    count = example.traffic or example.flops
    return float(count(run.shape)) if count else 1.0


def count_loaded(record: RunRecord, accesses: Iterable[LineAccess]) -> tuple[int, int]:
    """Return the bytes that asynchronous loads bring into SMs, and those that they read from L2: a multicast arrives in
    every CTA of the cluster. Zeros that `cp.async` writes are not loaded."""
    copies = sum(item.bytes for item in accesses if item.space == "global" and item.opcode.startswith("cp.async"))
    loads = [load for load in list_loads(record) if record.tracks[load[0].track].name != "cp.async"]
    return copies + sum(bytes for _, bytes in loads), copies + sum(transfer.bytes for transfer, _ in loads)


def count_in_flight(record: RunRecord) -> int:
    """Return the most bytes that asynchronous loads of a CTA have under way, from their issue to the wait for them, or
    to the next use of their mbarrier: clocks of warps differ."""
    changes, uses = dict[int, list[tuple[int, int]]](), dict[tuple[int, int, str], int]()
    for transfer, bytes in sorted(list_loads(record), key=lambda load: -load[0].start):
        place = transfer.track, transfer.line, transfer.barrier
        end = min(transfer.end, uses.get(place, transfer.end)) if transfer.barrier else transfer.end
        uses[place] = transfer.start
        cta = record.tracks[transfer.track].cta
        changes.setdefault(cta, []).extend([(transfer.start, bytes), (end, -bytes)])
    return max((max(accumulate(bytes for _, bytes in sorted(part))) for part in changes.values()), default=0)


def count_tensor_clocks(record: RunRecord, flops: int, target: str, machine: Machine, bits: int = 16) -> float:
    """Return the clocks of tensor cores: by instruction shape for wgmma and tcgen05, else by the rate for operands of
    so many bits: of `mma.sync`, and of products that the timeline merges with copies.

    An instruction reads operands from shared memory at 128 bytes per clock, which limits small shapes."""
    total, accounted = 0.0, 0
    for transfer in record.transfers:
        shape = _SHAPE.match(transfer.label)
        if not transfer.flops or shape is None:
            continue
        accounted += transfer.flops
        m, n = int(shape["m"]), int(shape["n"])
        if target.startswith("sm_90"):
            total += transfer.count * (max(n / 2, (64 + n) / 4) + _WGMMA_EXTRA)
        else:
            sms = max(m // 128, 1)
            total += transfer.count * sms * max(n / 2, (m + n) / sms / 4)
    rate = machine.tensor.get(bits, 0.0)
    return total + (max(flops - accounted, 0) / rate if rate else 0.0)


def find_bits(opcodes: Counter[str]) -> int:
    """Return the bits of an operand of the products."""
    names = {opcode.partition(".")[0] for opcode in opcodes}
    return next((bits for bits, opcodes in _NARROW.items() if names & opcodes), 16)


def count_special_clocks(record: RunRecord) -> float:
    """Return the clocks of the special function units for all warps: 16 lanes per clock and SM."""
    listing = Listing(record)
    return sum(times * 32 / 16 for line, times in listing.runs.items() if _SPECIAL.match(listing.read_opcode(line)))


def describe_ceiling(example: Example, machine: Machine | None, clocks: float) -> str:
    """Return the rate that the busiest resource allows at the large shape."""
    if machine is None or not clocks:
        return "unknown"
    seconds = clocks / (machine.clock * 1e6)
    if example.flops:
        rate = example.flops(example.large) / seconds / 1e12
        return f"{rate:,.0f} TFLOP/s" if rate >= 100 else f"{rate:.1f} TFLOP/s"
    if example.traffic:
        return f"{example.traffic(example.large) / seconds / 1e9:,.0f} GB/s"
    return "unknown"
