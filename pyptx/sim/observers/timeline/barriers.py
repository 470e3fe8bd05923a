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
        self._of: dict[tuple[int, int], tuple[int, int]] = {}

    def arrive(self, keys: dict[int, tuple[int, int]]) -> None:
        """Record the arrivals of warps."""
        for warp, key in keys.items():
            time = int(self._record.clock[warp])
            if key not in self._of or self._of[key][0] <= time:
                self._of[key] = time, warp

    def wait(self, step: Step, warp: int, key: tuple[int, int], name: str, phase: int) -> None:
        """Record that a warp passes a barrier."""
        arrival = self._of.get(key)
        if arrival is not None:
            cause = self._record.cause(arrival[1], arrival[0])
            self._record.waits(warp, arrival[0], name, phase, step.instruction, cause)

    def forget(self, key: tuple[int, int]) -> None:
        """Forget a completed round of a barrier."""
        self._of.pop(key, None)


class CtaBarrierRecord:
    """bar.sync, bar.arrive, bar.red."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self.reset()

    def reset(self) -> None:
        """Prepare for a batch."""
        self._latest = _Latest(self._record)
        self._rounds: dict[tuple[int, int], int] = {}

    def _key_by_warp(self, lanes: Lanes, number: int) -> dict[int, tuple[int, int]]:
        return {warp: (warp % lanes.shape.ctas, number) for warp in self._record.kept_warps(lanes)[0]}

    def arrive(self, lanes: Lanes, number: int) -> None:
        """Record that lanes arrive."""
        self._latest.arrive(self._key_by_warp(lanes, number))

    def wait(self, step: Step, lanes: Lanes, number: int) -> None:
        """Record that lanes pass a barrier."""
        for warp, key in self._key_by_warp(lanes, number).items():
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

    def _key_by_warp(self, lanes: Lanes, phases: Array) -> dict[int, tuple[int, int]]:
        keys: dict[int, tuple[int, int]] = {}
        size = self._record.batch.launch.cluster_size
        for warp in self._record.kept_warps(lanes)[0]:
            cluster = warp % lanes.shape.ctas // size
            keys[warp] = cluster, int(phases[cluster])
        return keys

    def arrive(self, lanes: Lanes, phases: Array) -> None:
        """Record that lanes arrive in the current phase of their cluster."""
        self._latest.arrive(self._key_by_warp(lanes, phases))

    def wait(self, step: Step, lanes: Lanes, phases: Array) -> None:
        """Record that lanes pass the completed phase."""
        for warp, key in self._key_by_warp(lanes, phases - 1).items():
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
        self._landed: dict[int, list[Work]] = {}
        self._ended: dict[tuple[int, int], tuple[int, Cause]] = {}
        self._delivered: dict[tuple[int, int], list[Work]] = {}

    def name(self, row: int) -> str:
        """Return the name of an object."""
        batch = self._record.batch
        mbarriers, stride, low = batch.memory.mbarriers, batch.shape.shared_stride, batch.memory.shared.low
        offset = int(mbarriers.places[row])
        first = offset
        source = self._sources.get(row)
        while first % stride and (before := mbarriers.row_at(first - 8)) >= 0 and self._sources.get(before) == source:
            first -= 8
        written = getline(*source) if source is not None and source[0] in self._record.places.files else ""
        return self._record.names.mbarrier(offset % stride + low, first % stride + low, written)

    def init(self, rows: Array) -> None:
        """Record initialized objects."""
        if self._record.now is not None:
            source = self._record.places.find_source(self._record.now.site.instruction)
            if source is not None:
                self._sources.update(dict.fromkeys(rows.tolist(), source))

    def arrive(self, rows: Array) -> None:
        """Record the last arrival. Bytes that land, and arrivals of an engine, count at issue."""
        record = self._record
        telling = self._engines.telling
        if telling:
            # An arrival in several CTAs names that many objects per lane, lane by lane.
            each = max(1, len(rows) // len(telling))
            for at, row in enumerate(rows.tolist()):
                self._deliver(row, telling[min(at // each, len(telling) - 1)])
            return
        now = record.now
        if now is None:
            return
        warps = record.batch.shape.warp[now.active]
        if len(warps) != len(rows):
            warps = np.resize(warps, len(rows))
        for row, warp in {(int(r), int(w)) for r, w in zip(rows, warps, strict=True)}:
            if record.kept[warp]:
                time = record.time(warp) + 1
                self._update_latest(row, time, record.cause(warp, time))

    def _deliver(self, row: int, works: list[Work]) -> None:
        """Deliver the work of an engine to an object, which names the last one."""
        self._landed.setdefault(row, []).extend(works)
        if works:
            last = works[-1]
            self._update_latest(row, last.start, Cause(last.track, last.start))
            last.barrier = last.barrier or self.name(row)

    def _update_latest(self, row: int, time: int, cause: Cause) -> None:
        if row not in self._latest or self._latest[row][0] <= time:
            self._latest[row] = time, cause

    def end_phase(self, rows: Array, phases: Array) -> None:
        """Record that these phases have completed."""
        for row, phase in zip(rows.tolist(), phases.tolist(), strict=True):
            arrival = self._latest.pop(row, None)
            if arrival is not None:
                self._ended[row, phase] = arrival
            self._delivered[row, phase] = self._landed.pop(row, [])

    def test(self, rows: Array, wanted: Array, parity: bool, ended: Array) -> None:
        """Record that lanes test phases: those whose phase has completed have waited for its last arrival."""
        record, now = self._record, self._record.now
        if now is None or len(now.active) != len(rows):
            return
        running = record.batch.memory.mbarriers.phase[rows]
        phases = running - 1 if parity else (wanted >> np.uint64(_PENDING_BITS)).astype(np.int64)
        warps = record.batch.shape.warp[now.active]
        for warp, row, phase in {
            (int(w), int(r), int(p)) for w, r, p, d in zip(warps, rows, phases, ended, strict=True) if d
        }:
            if not record.kept[warp]:
                continue
            ending = self._ended.get((row, phase))
            if ending is not None:
                name, instruction = self.name(row), now.site.instruction
                record.waits(warp, ending[0], name, phase, instruction, ending[1], now.offset)
            for work in self._delivered.get((row, phase), ()):
                self._engines.end_wait(work, record.time(warp))
