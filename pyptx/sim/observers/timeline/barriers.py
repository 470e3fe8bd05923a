"""Barriers of a record: which warp arrived last, and how long others waited for it."""

from __future__ import annotations

from linecache import getline

import numpy as np

from pyptx.check.body import Step
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.observers.timeline.engines import Engines, Work
from pyptx.sim.observers.timeline.record import Record
from pyptx.sim.observers.timeline.records import Cause

_PENDING_BITS = 20


class _Latest:
    """The last arrival at each barrier: its time and warp."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._arrivals: dict[tuple[int, int], tuple[int, int]] = {}

    def arrive(self, keys: dict[int, tuple[int, int]]) -> None:
        """Record the arrivals of warps."""
        for warp, key in keys.items():
            time = int(self._record.clock[warp])
            if key not in self._arrivals or self._arrivals[key][0] <= time:
                self._arrivals[key] = time, warp

    def wait(self, step: Step, warp: int, key: tuple[int, int], name: str, phase: int) -> None:
        """Record that a warp passes a barrier."""
        arrival = self._arrivals.get(key)
        if arrival is not None:
            cause = self._record.make_cause(arrival[1], arrival[0])
            self._record.record_wait(warp, arrival[0], name, phase, step.instruction, cause)

    def forget(self, key: tuple[int, int]) -> None:
        """Forget a completed round of a barrier."""
        self._arrivals.pop(key, None)


class CtaBarrierRecord:
    """bar.sync, bar.arrive, bar.red."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.reset()

    def reset(self) -> None:
        """Prepare for a batch."""
        self._latest = _Latest(self._record)
        self._rounds: dict[tuple[int, int], int] = {}

    def _find_keys(self, lanes: Lanes, number: int) -> dict[int, tuple[int, int]]:
        return {warp: (warp % lanes.shape.ctas, number) for warp in self._record.find_recorded_warps(lanes)[0]}

    def arrive(self, lanes: Lanes, number: int) -> None:
        """Record that lanes arrive."""
        self._latest.arrive(self._find_keys(lanes, number))

    def wait(self, step: Step, lanes: Lanes, number: int) -> None:
        """Record that lanes pass a barrier."""
        for warp, key in self._find_keys(lanes, number).items():
            self._latest.wait(step, warp, key, f"bar {number}", self._rounds.get(key, 0))

    def complete(self, number: int, ctas: Array) -> None:
        """Record that a round has completed in these CTAs."""
        for cta in ctas.tolist():
            self._rounds[cta, number] = self._rounds.get((cta, number), 0) + 1
            self._latest.forget((cta, number))


class ClusterBarrierRecord:
    """barrier.cluster."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.reset()

    def reset(self) -> None:
        """Prepare for a batch."""
        self._latest = _Latest(self._record)

    def _find_keys(self, lanes: Lanes, phases: Array) -> dict[int, tuple[int, int]]:
        keys: dict[int, tuple[int, int]] = {}
        size = self._record.batch.launch.cluster_size
        for warp in self._record.find_recorded_warps(lanes)[0]:
            cluster = warp % lanes.shape.ctas // size
            keys[warp] = cluster, int(phases[cluster])
        return keys

    def arrive(self, lanes: Lanes, phases: Array) -> None:
        """Record that lanes arrive in the current phase of their cluster."""
        self._latest.arrive(self._find_keys(lanes, phases))

    def wait(self, step: Step, lanes: Lanes, phases: Array) -> None:
        """Record that lanes pass the completed phase."""
        for warp, key in self._find_keys(lanes, phases - 1).items():
            self._latest.wait(step, warp, key, "cluster barrier", key[1])


class MBarrierRecord:
    """mbarrier objects. A phase completes with its last arrival or when its last bytes are issued."""

    def __init__(self, record: Record, engines: Engines) -> None:
        self._record, self._engines = record, engines
        self.reset()

    def reset(self) -> None:
        """Prepare for a batch."""
        self._sources: dict[int, tuple[str, int]] = {}
        """Where each object is initialized: those of one line belong together."""
        self._latest: dict[int, tuple[int, Cause]] = {}
        self._landings: dict[int, list[Work]] = {}
        self._phase_ends: dict[tuple[int, int], tuple[int, Cause]] = {}
        self._deliveries: dict[tuple[int, int], list[Work]] = {}

    def find_name(self, row: int) -> str:
        """Return the name of an object."""
        batch = self._record.batch
        mbarriers, stride, low = batch.memory.mbarriers, batch.shape.shared_stride, batch.memory.shared.low
        offset = int(mbarriers.places[row])
        first = offset
        source = self._sources.get(row)
        while first % stride and (before := mbarriers.find_row(first - 8)) >= 0 and self._sources.get(before) == source:
            first -= 8
        source_line = getline(*source) if source is not None and source[0] in self._record.places.files else ""
        return self._record.names.name_mbarrier(offset % stride + low, first % stride + low, source_line)

    def init(self, rows: Array) -> None:
        """Record initialized objects."""
        if self._record.now is not None:
            source = self._record.places.find_source(self._record.now.site.instruction)
            if source is not None:
                self._sources.update(dict.fromkeys(rows.tolist(), source))

    def arrive(self, rows: Array) -> None:
        """Record the last arrival. Bytes that land, and arrivals of an engine, count at issue."""
        record = self._record
        works_by_lane = self._engines.signaling_work
        if works_by_lane:
            # An arrival in several CTAs names that many objects per lane, lane by lane.
            rows_per_lane = max(1, len(rows) // len(works_by_lane))
            for index, row in enumerate(rows.tolist()):
                self._deliver(row, works_by_lane[min(index // rows_per_lane, len(works_by_lane) - 1)])
            return
        now = record.now
        if now is None:
            return
        warps = record.batch.shape.warp[now.active]
        if len(warps) != len(rows):
            warps = np.resize(warps, len(rows))
        for row, warp in {(int(r), int(w)) for r, w in zip(rows, warps, strict=True)}:
            if record.is_recorded[warp]:
                time = record.read_clock(warp) + 1
                self._update_latest(row, time, record.make_cause(warp, time))

    def _deliver(self, row: int, works: list[Work]) -> None:
        """Deliver the work of an engine to an object, which names the last one."""
        self._landings.setdefault(row, []).extend(works)
        if works:
            last = works[-1]
            self._update_latest(row, last.start, Cause(last.track, last.start))
            last.barrier = last.barrier or self.find_name(row)

    def _update_latest(self, row: int, time: int, cause: Cause) -> None:
        if row not in self._latest or self._latest[row][0] <= time:
            self._latest[row] = time, cause

    def end_phase(self, rows: Array, phases: Array) -> None:
        """Record that these phases have completed."""
        for row, phase in zip(rows.tolist(), phases.tolist(), strict=True):
            arrival = self._latest.pop(row, None)
            if arrival is not None:
                self._phase_ends[row, phase] = arrival
            self._deliveries[row, phase] = self._landings.pop(row, [])

    def test(self, rows: Array, tokens: Array, parity: bool, is_complete: Array) -> None:
        """Record that lanes test phases: those whose phase has completed have waited for its last arrival."""
        record, now = self._record, self._record.now
        if now is None or len(now.active) != len(rows):
            return
        running = record.batch.memory.mbarriers.phase[rows]
        phases = running - 1 if parity else (tokens >> np.uint64(_PENDING_BITS)).astype(np.int64)
        warps = record.batch.shape.warp[now.active]
        for warp, row, phase in {
            (int(w), int(r), int(p)) for w, r, p, d in zip(warps, rows, phases, is_complete, strict=True) if d
        }:
            if not record.is_recorded[warp]:
                continue
            ending = self._phase_ends.get((row, phase))
            if ending is not None:
                name, instruction = self.find_name(row), now.site.instruction
                record.record_wait(warp, ending[0], name, phase, instruction, ending[1], now.offset)
            for work in self._deliveries.get((row, phase), ()):
                self._engines.end_wait(work, record.read_clock(warp))
