"""What releases pass on: stamps, and releases that are resolved only when needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pyptx.sim.base.events import Clock

SEEN, CROSSED_SHARED, CROSSED_GLOBAL, WIDE_SHARED, WIDE_GLOBAL, RAN, BEFORE, AFTER = range(8)
"""What a row knows: by any memory edge; through a proxy fence, per space; by edges whose scope spans CTAs, per space;
by any edge, relaxed ones too; that through `tcgen05.fence::before_thread_sync`; and through `::after_thread_sync`."""
KINDS = 8
FLOORED = 5
RELAXED = [RAN, BEFORE, AFTER]
"""What a relaxed edge passes on."""
ORDER = [SEEN, WIDE_SHARED, WIDE_GLOBAL]
CROSS = [CROSSED_SHARED, CROSSED_GLOBAL]
PUBLISHED, CROSSED = (np.array(kinds)[:, None] for kinds in ([*ORDER, RAN], CROSS))
_HEAVY = 256
"""Merge this many connected releases into one stamp."""


@dataclass(slots=True, eq=False)
class Stamp:
    """What a release passes on: the knowledge of one row, and of agents outside its cluster."""

    domain: int
    known: Clock
    foreign: dict[int, Clock]

    def copy(self) -> Stamp:
        return Stamp(self.domain, self.known.copy(), dict(self.foreign))

    def merge(self, other: Stamp) -> Stamp:
        """Return the union of both."""
        if other.domain == self.domain:
            known, foreign = wider(self.known, other.known), dict(self.foreign)
        else:
            known, foreign = self.known, dict(self.foreign)
            join(foreign, other.domain, other.known)
        for domain, value in other.foreign.items():
            if domain == self.domain:
                known = wider(known, value)
            else:
                join(foreign, domain, value)
        return Stamp(self.domain, known, foreign)


@dataclass(slots=True, eq=False)
class Later:
    """An unresolved release, as most are never needed: the knowledge of a row, one of its threads up to a time, and
    what that thread had learned but not resolved."""

    common: Stamp | None
    column: int
    now: int
    learned: tuple[Handed, ...]
    weight: int
    whole: Stamp | None

    def made(self) -> Stamp:
        """Return the resolved stamp."""
        if self.whole is None:
            self.whole = union((self,))
            self.common, self.learned, self.weight = None, (), 1
        return self.whole


Handed = Stamp | Later


def later(common: Stamp | None, column: int, now: int, learned: tuple[Handed, ...]) -> Later:
    """Return an unresolved release, or a stamp if very many releases are connected."""
    weight = 1
    for one in learned:
        weight += one.weight if isinstance(one, Later) else 1
    stamp = Later(common, column, now, learned, weight, None)
    if weight > _HEAVY:
        stamp.made()
    return stamp


def joined(stamp: Stamp | None, other: Stamp) -> Stamp:
    """Return the union of a stamp and another that is not used elsewhere: change the larger one."""
    if stamp is None:
        return other
    if stamp.domain != other.domain or stamp.foreign or other.foreign:
        return stamp.merge(other)
    width = other.known.shape[1]
    if width > stamp.known.shape[1]:
        return joined(other, stamp)
    part = stamp.known[:, :width]
    np.maximum(part, other.known, out=part)
    return stamp


def union(handed: Sequence[Handed]) -> Stamp:
    """Return the union of releases, visiting each shared row once."""
    parts: dict[int, list[Clock]] = {}
    marks: dict[int, dict[int, int]] = {}
    seen: set[int] = set()
    waiting = list(reversed(handed))
    while waiting:
        one: Handed | None = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Later):
            if one.whole is None:
                waiting += one.learned
                if one.common is not None:
                    waiting.append(one.common)
                    own = marks.setdefault(one.common.domain, {})
                    own[one.column] = max(own.get(one.column, 0), one.now)
                continue
            one = one.whole
            if id(one) in seen:
                continue
            seen.add(id(one))
        parts.setdefault(one.domain, []).append(one.known)
        for domain, known in one.foreign.items():
            parts.setdefault(domain, []).append(known)
    every = {domain: _maximum(known, marks.get(domain, {})) for domain, known in parts.items()}
    domain = next(iter(every))
    return Stamp(domain, every.pop(domain), every)


def _maximum(parts: list[Clock], marks: dict[int, int]) -> Clock:
    """Return the maximum of arrays of clocks; `marks`: threads that released at a time, by their columns."""
    if len(parts) == 1 and not marks:
        return parts[0]
    known = max(parts, key=lambda part: part.shape[1]).copy()
    for part in parts:
        mine = known[:, : part.shape[1]]
        np.maximum(mine, part, out=mine)
    if marks:
        columns, times = np.array([*marks]), np.array([*marks.values()], np.int32)
        known[PUBLISHED, columns] = np.maximum(known[PUBLISHED, columns], times)
    return known


def wider(a: Clock, b: Clock) -> Clock:
    """Return the maximum of two arrays of clocks, one of which may have fewer columns."""
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    out = a.copy()
    np.maximum(out[:, : b.shape[1]], b, out=out[:, : b.shape[1]])
    return out


def join(foreign: dict[int, Clock], domain: int, value: Clock) -> None:
    foreign[domain] = wider(foreign[domain], value) if domain in foreign else value
