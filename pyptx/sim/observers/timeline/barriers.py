"""The machine's barriers, with a record of who arrived last and how long others waited for it."""

from __future__ import annotations

from linecache import getline
from typing import TYPE_CHECKING

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes, Shape
from pyptx.sim.observers.timeline.records import Cause
from pyptx.sim.state.barriers import ClusterBarriers, CtaBarriers, Waiting
from pyptx.sim.state.mbarriers import MBarriers

if TYPE_CHECKING:
    from pyptx.sim.observers.timeline.engines import Work
    from pyptx.sim.observers.timeline.recorder import Recorder

_PENDING_BITS = 20
Latest = dict[tuple[int, int], tuple[int, int]]
"""The time of the last arrival and the warp that made it, by CTA or cluster and barrier or phase."""


def _record_arrivals(recorder: Recorder, latest: Latest, lanes: Lanes, keys: dict[int, tuple[int, int]]) -> None:
    for warp, key in keys.items():
        time = int(recorder.clock[warp])
        if key not in latest or latest[key][0] <= time:
            latest[key] = time, warp


def _record_waits(
    recorder: Recorder, latest: Latest, item: Waiting, keys: dict[int, tuple[int, int]], name: str, phase: int
) -> None:
    assert recorder.batch is not None
    instruction = recorder.batch.program.blocks[item.at].steps[-1].instruction
    for warp, key in keys.items():
        arrival = latest.get(key)
        if arrival is not None:
            recorder.waits(warp, arrival[0], name, phase, instruction, recorder.cause(arrival[1], arrival[0]))


class RecordedCtaBarriers(CtaBarriers):
    """bar.sync, bar.arrive, bar.red."""

    def __init__(self, recorder: Recorder, shape: Shape) -> None:
        super().__init__(shape)
        self._recorder, self._latest = recorder, Latest()
        self._rounds: dict[tuple[int, int], int] = {}

    def _key_by_warp(self, lanes: Lanes, number: int) -> dict[int, tuple[int, int]]:
        return {warp: (warp % self.shape.ctas, number) for warp in self._recorder.kept_warps(lanes)[0]}

    def arrive(self, lanes: Lanes, number: int, count: int | None, predicate: Array | None) -> None:
        _record_arrivals(self._recorder, self._latest, lanes, self._key_by_warp(lanes, number))
        super().arrive(lanes, number, count, predicate)

    def release(self, number: int) -> tuple[list[tuple[Waiting, Lanes]], Array, Array]:
        done = np.flatnonzero(self.complete(number)).tolist()
        result = super().release(number)
        for item, lanes in result[0]:
            for warp, key in self._key_by_warp(lanes, number).items():
                phase = self._rounds.get(key, 0)
                _record_waits(self._recorder, self._latest, item, {warp: key}, f"bar {number}", phase)
        for cta in done:
            self._rounds[cta, number] = self._rounds.get((cta, number), 0) + 1
            self._latest.pop((cta, number), None)
        return result


class RecordedClusterBarriers(ClusterBarriers):
    """barrier.cluster."""

    def __init__(self, recorder: Recorder, shape: Shape, size: int) -> None:
        super().__init__(shape, size)
        self._recorder, self._latest = recorder, Latest()

    def _key_by_warp(self, lanes: Lanes, phases: Array) -> dict[int, tuple[int, int]]:
        keys: dict[int, tuple[int, int]] = {}
        for warp in self._recorder.kept_warps(lanes)[0]:
            cluster = warp % self.shape.ctas // self.size
            keys[warp] = cluster, int(phases[cluster])
        return keys

    def arrive(self, lanes: Lanes) -> None:
        _record_arrivals(self._recorder, self._latest, lanes, self._key_by_warp(lanes, self.phase))
        super().arrive(lanes)

    def release(self) -> list[tuple[Waiting, Lanes]]:
        gone = super().release()
        for item, lanes in gone:
            for warp, (cluster, phase) in self._key_by_warp(lanes, self.phase - 1).items():
                keys = {warp: (cluster, phase)}
                _record_waits(self._recorder, self._latest, item, keys, "cluster barrier", phase)
        return gone


class RecordedMBarriers(MBarriers):
    """mbarrier objects. A phase ends when its last arrival is made or its last bytes are issued."""

    def __init__(self, recorder: Recorder, size: int) -> None:
        super().__init__(size)
        self._recorder = recorder
        self._sources: dict[int, tuple[str, int]] = {}
        """Where each object is initialized: those of one line belong together."""
        self._latest: dict[int, tuple[int, Cause]] = {}
        self._landed: dict[int, list[Work]] = {}
        self._ended: dict[tuple[int, int], tuple[int, Cause]] = {}
        self._delivered: dict[tuple[int, int], list[Work]] = {}

    def reset(self) -> None:
        super().reset()
        for held in (self._sources, self._latest, self._landed, self._ended, self._delivered):
            held.clear()

    def name(self, row: int) -> str:
        """Return what an object is called."""
        batch = self._recorder.batch
        assert batch is not None
        stride, low = batch.shape.shared_stride, batch.memory.shared.low
        offset = int(self.places[row])
        first = offset
        source = self._sources.get(row)
        while first % stride and self._row[(first >> 3) - 1] >= 0:
            if self._sources.get(int(self._row[(first >> 3) - 1])) != source:
                break
            first -= 8
        written = getline(*source) if source is not None and source[0] in self._recorder.places.files else ""
        return self._recorder.names.mbarrier(offset % stride + low, first % stride + low, written)

    def init(self, offsets: Array, counts: Array, reports: bool = False) -> None:
        super().init(offsets, counts, reports)
        if self._recorder.now is not None:
            source = self._recorder.places.source_of(self._recorder.now.site.instruction)
            if source is not None:
                self._sources.update(dict.fromkeys(self._row[offsets >> 3].tolist(), source))

    def arrive(self, rows: Array, counts: Array, drop: bool = False) -> Array:
        self._note_arrivals(rows)
        return super().arrive(rows, counts, drop)

    def transfer(self, rows: Array, amounts: Array) -> None:
        self._note_arrivals(rows, amounts)
        super().transfer(rows, amounts)

    def _note_arrivals(self, rows: Array, amounts: Array | None = None) -> None:
        """Keep who arrives last. Bytes that land, and arrivals that an engine makes, happen when they are issued."""
        recorder = self._recorder
        telling = recorder.engines.telling
        if telling:
            # What reaches several CTAs names as many objects for each lane, one lane after the other.
            each = max(1, len(rows) // len(telling))
            for at, row in enumerate(rows.tolist()):
                self._deliver(row, telling[min(at // each, len(telling) - 1)])
            return
        now = recorder.now
        if now is None:
            return
        lanes = now.active
        warps = recorder.batch.shape.warp[lanes] if recorder.batch is not None else lanes
        if len(warps) != len(rows):
            warps = np.resize(warps, len(rows))
        for row, warp in {(int(r), int(w)) for r, w in zip(rows, warps, strict=True)}:
            if recorder.kept[warp]:
                time = recorder.time(warp) + 1
                self._update_latest(row, time, recorder.cause(warp, time))

    def _deliver(self, row: int, works: list[Work]) -> None:
        """The work of an engine arrives at an object; the last one is named after it."""
        self._landed.setdefault(row, []).extend(works)
        if works:
            last = works[-1]
            self._update_latest(row, last.start, Cause(last.track, last.start))
            last.barrier = last.barrier or self.name(row)

    def _update_latest(self, row: int, time: int, cause: Cause) -> None:
        if row not in self._latest or self._latest[row][0] <= time:
            self._latest[row] = time, cause

    def _end(self, rows: Array) -> None:
        before = self.phase[rows].copy()
        super()._end(rows)
        for row, phase in zip(rows.tolist(), before.tolist(), strict=True):
            if self.phase[row] == phase:
                continue
            arrival = self._latest.pop(row, None)
            if arrival is not None:
                self._ended[row, phase] = arrival
            self._delivered[row, phase] = self._landed.pop(row, [])

    def passed(self, rows: Array, wanted: Array, parity: bool, conditional: bool = False) -> Array:
        done = super().passed(rows, wanted, parity, conditional)
        now = self._recorder.now
        if now is not None and len(now.active) == len(rows):
            self._observe(now.active, rows, wanted, parity, done)
        return done

    def _observe(self, lanes: Array, rows: Array, wanted: Array, parity: bool, done: Array) -> None:
        recorder = self._recorder
        assert recorder.batch is not None
        assert recorder.now is not None
        phases = self.phase[rows] - 1 if parity else (wanted >> np.uint64(_PENDING_BITS)).astype(np.int64)
        warps = recorder.batch.shape.warp[lanes]
        for warp, row, phase in {
            (int(w), int(r), int(p)) for w, r, p, d in zip(warps, rows, phases, done, strict=True) if d
        }:
            if not recorder.kept[warp]:
                continue
            ending = self._ended.get((row, phase))
            offset = recorder.now.offset
            if ending is not None:
                instruction = recorder.now.site.instruction
                recorder.waits(warp, ending[0], self.name(row), phase, instruction, ending[1], offset)
            for work in self._delivered.get((row, phase), ()):
                recorder.engines.observed(work, recorder.time(warp))
