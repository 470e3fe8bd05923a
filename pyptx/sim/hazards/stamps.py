"""Stamps: the clocks that a release passes on, some of them resolved only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Clock

SEEN, CROSSED_SHARED, CROSSED_GLOBAL, WIDE_SHARED, WIDE_GLOBAL, RAN, BEFORE, AFTER = range(8)
"""The clocks of a row, by what orders an access: any memory edge; a proxy fence, per space; edges whose scope spans
CTAs, per space; any edge, relaxed ones too; these and `tcgen05.fence::before_thread_sync`; also
`::after_thread_sync`."""
KINDS = 8
FLOORED = 5
RELAXED = [RAN, BEFORE, AFTER]
"""The kinds that a relaxed edge passes on."""
ORDER = [SEEN, WIDE_SHARED, WIDE_GLOBAL]
CROSS = [CROSSED_SHARED, CROSSED_GLOBAL]
PUBLISHED, CROSSED = (np.array(kinds)[:, None] for kinds in ([*ORDER, RAN], CROSS))
_HEAVY = 256
"""Beyond this many connected releases, resolve them into one stamp."""


@dataclass(slots=True, eq=False)
class Stamp:
    """The clocks that a release passes on: of its own cluster, and of other clusters (`foreign`)."""

    domain: int
    clock: Clock
    foreign: dict[int, Clock]

    def copy(self) -> Stamp:
        return Stamp(self.domain, self.clock.copy(), dict(self.foreign))

    def merge(self, other: Stamp) -> Stamp:
        """Return the union of both."""
        if other.domain == self.domain:
            clock, foreign = take_maximum(self.clock, other.clock), dict(self.foreign)
        else:
            clock, foreign = self.clock, dict(self.foreign)
            merge_foreign(foreign, other.domain, other.clock)
        for domain, value in other.foreign.items():
            if domain == self.domain:
                clock = take_maximum(clock, value)
            else:
                merge_foreign(foreign, domain, value)
        return Stamp(self.domain, clock, foreign)


@dataclass(slots=True, eq=False)
class LazyStamp:
    """An unresolved release, as most are never needed: the stamp of a row, the releasing thread's column and time, and
    the thread's pending releases."""

    common: Stamp | None
    column: int
    now: int
    pending: tuple[AnyStamp, ...]
    weight: int
    stamp: Stamp | None

    def resolve(self) -> Stamp:
        """Resolve the release and return its stamp."""
        if self.stamp is None:
            self.stamp = merge_stamps((self,))
            self.common, self.pending, self.weight = None, (), 1
        return self.stamp


AnyStamp = Stamp | LazyStamp


def make_lazy_stamp(common: Stamp | None, column: int, now: int, pending: tuple[AnyStamp, ...]) -> LazyStamp:
    """Return a lazy stamp, which is resolved already if very many releases are connected."""
    weight = 1
    for release in pending:
        weight += release.weight if isinstance(release, LazyStamp) else 1
    lazy = LazyStamp(common, column, now, pending, weight, None)
    if weight > _HEAVY:
        lazy.resolve()
    return lazy


def join_stamps(stamp: Stamp | None, other: Stamp) -> Stamp:
    """Return the union of two stamps that are not used elsewhere, by changing the wider one if possible."""
    if stamp is None:
        return other
    if stamp.domain != other.domain or stamp.foreign or other.foreign:
        return stamp.merge(other)
    width = other.clock.shape[1]
    if width > stamp.clock.shape[1]:
        return join_stamps(other, stamp)
    part = stamp.clock[:, :width]
    np.maximum(part, other.clock, out=part)
    return stamp


def merge_stamps(releases: Sequence[AnyStamp]) -> Stamp:
    """Return the union of releases; visit each shared stamp once."""
    parts: dict[int, list[Clock]] = {}
    marks: dict[int, dict[int, int]] = {}
    visits: set[int] = set()
    queue = list(reversed(releases))
    while queue:
        release: AnyStamp | None = queue.pop()
        if id(release) in visits:
            continue
        visits.add(id(release))
        if isinstance(release, LazyStamp):
            if release.stamp is None:
                queue += release.pending
                if release.common is not None:
                    queue.append(release.common)
                    own = marks.setdefault(release.common.domain, {})
                    own[release.column] = max(own.get(release.column, 0), release.now)
                continue
            release = release.stamp
            if id(release) in visits:
                continue
            visits.add(id(release))
        parts.setdefault(release.domain, []).append(release.clock)
        for domain, clock in release.foreign.items():
            parts.setdefault(domain, []).append(clock)
    maxima = {domain: _take_maxima(clocks, marks.get(domain, {})) for domain, clocks in parts.items()}
    domain = next(iter(maxima))
    return Stamp(domain, maxima.pop(domain), maxima)


def _take_maxima(parts: list[Clock], marks: dict[int, int]) -> Clock:
    """Return the maximum of clock arrays. `marks`: the times of releasing threads, by column."""
    if len(parts) == 1 and not marks:
        return parts[0]
    maximum = max(parts, key=lambda part: part.shape[1]).copy()
    for part in parts:
        view = maximum[:, : part.shape[1]]
        np.maximum(view, part, out=view)
    if marks:
        columns, times = np.array([*marks]), np.array([*marks.values()], np.int32)
        maximum[PUBLISHED, columns] = np.maximum(maximum[PUBLISHED, columns], times)
    return maximum


def take_maximum(a: Clock, b: Clock) -> Clock:
    """Return the maximum of two clock arrays, one of which may have fewer columns."""
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    out = a.copy()
    np.maximum(out[:, : b.shape[1]], b, out=out[:, : b.shape[1]])
    return out


def merge_foreign(foreign: dict[int, Clock], domain: int, value: Clock) -> None:
    foreign[domain] = take_maximum(foreign[domain], value) if domain in foreign else value
