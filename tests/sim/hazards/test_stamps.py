"""Lazy stamps: what they resolve to, and how many stay unresolved."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx.sim.hazards.stamps import KINDS, AnyStamp, LazyStamp, Stamp, make_lazy_stamp

MOST = 256


def count_connected(release: AnyStamp) -> int:
    """Return the number of releases that resolving this one visits, each as often as it is named."""
    pending = release.pending if isinstance(release, LazyStamp) else ()
    return 1 + sum(count_connected(other) for other in pending)


def make_common(columns: int = 8) -> Stamp:
    return Stamp(0, np.zeros((KINDS, columns), np.int32), {})


def test_a_chain_of_releases_resolves_before_it_is_long() -> None:
    common, latest, counts = make_common(), None, list[int]()
    for time in range(1, 2 * MOST):
        latest = make_lazy_stamp(common, time % 8, time, (latest,) if latest else ())
        counts.append(count_connected(latest))
    assert latest is not None
    assert max(counts) == MOST
    # The last release of each column is known.
    assert sorted(latest.resolve().clock.max(axis=0)) == list(range(2 * MOST - 8, 2 * MOST))


@pytest.mark.parametrize("is_lazy", [False, True])
def test_releases_that_are_named_twice_count_twice(is_lazy: bool) -> None:
    other = make_lazy_stamp(make_common(), 0, 1, ()) if is_lazy else make_common()
    assert make_lazy_stamp(make_common(), 1, 2, (other,) * (MOST - 1)).stamp is None
    assert make_lazy_stamp(make_common(), 1, 2, (other,) * MOST).stamp is not None
