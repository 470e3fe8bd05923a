"""Manual: mbarrier, cp.async.mbarrier.arrive. A `try_wait` on an incomplete phase makes its lanes wait."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import act_on_mbarriers, locate_objects, select_lanes
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory, value
from pyptx.sim.state.mbarriers import Refused, extract_pending_count
from pyptx.sim.state.memory import Site


def _mbarrier(match: Match, signature: Signature) -> Operation | None:
    flags = set(match.modifiers)
    name = match.chosen.get("op", match.modifiers[0])
    if name == "init":
        return memory(partial(_init, "layout::v1" in flags))
    if name == "inval":
        return memory(_inval)
    if name in ("expect_tx", "complete_tx"):
        return memory(partial(_transfer, 1 if name == "expect_tx" else -1))
    if name in ("arrive", "arrive_drop"):
        return memory(partial(_arrive, name == "arrive_drop", "expect_tx" in flags))
    if name in ("test_wait", "try_wait"):
        return memory(partial(_wait, name == "try_wait", "parity" in flags, "phase_type::conditional" in flags))
    return (
        value(extract_pending_count)
        if name == "pending_count"
        else memory(partial(_test_layout, "layout::v0" in flags))
    )


def _init(reports: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, count: Any) -> None:
    active, (addresses, counts) = select_lanes(lanes, mask, address, count)
    if active is not None:
        offsets = locate_objects(site, active, space, addresses)
        act_on_mbarriers(site, active, lambda m: m.init(offsets, counts.astype(np.int64), reports))


def _inval(site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    active, (addresses,) = select_lanes(lanes, mask, address)
    if active is not None:
        offsets = locate_objects(site, active, space, addresses)
        act_on_mbarriers(site, active, lambda m: m.inval(offsets))


def _transfer(sign: int, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, amount: Any) -> None:
    active, (addresses, amounts) = select_lanes(lanes, mask, address, amount)
    if active is not None:
        offsets = locate_objects(site, active, space, addresses)
        act_on_mbarriers(site, active, lambda m: m.transfer(m.find_rows(offsets), sign * amounts.astype(np.int64)))


def _arrive(
    drop: bool,
    expects: bool,
    site: Site,
    lanes: Lanes,
    mask: Any,
    space: str,
    address: Any,
    outs: Any,
    operand: Any = 1,
) -> None:
    active, (addresses, operands) = select_lanes(lanes, mask, address, operand)
    if active is None:
        return
    offsets, numbers = locate_objects(site, active, space, addresses), operands.astype(np.int64)

    def arrive(m: Any) -> Array:
        rows = m.find_rows(offsets)
        if not expects:
            return m.arrive(rows, numbers, drop)
        m.transfer(rows, numbers)
        return m.arrive(rows, np.ones(len(rows), np.int64), drop)

    states = act_on_mbarriers(site, active, arrive)
    if outs and outs[0] is not None:
        _write_active(outs[0], mask, states)


def _write_active(out: Array, mask: Array | None, values: Any) -> None:
    if mask is None:
        out[...] = values
    else:
        out[np.flatnonzero(mask)] = values


def _wait(
    suspends: bool, parity: bool, conditional: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any,
    outs: Any, tokens: Any, *hint: Any,
) -> None:  # fmt: skip
    active, (addresses, values) = select_lanes(lanes, mask, address, tokens)
    if active is None:
        return
    offsets = locate_objects(site, active, space, addresses)
    barriers = site.memory.mbarriers
    rows = act_on_mbarriers(site, active, lambda m: m.find_rows(offsets))
    is_complete = barriers.test_phases(rows, values, parity, conditional)
    is_doubtful = barriers.refuse(active) if suspends and barriers.refuse is not None else None
    _write_active(outs[0], mask, is_complete if is_doubtful is None else is_complete & ~is_doubtful)
    for index, report in enumerate(outs[1:]):
        if report is not None:
            _write_active(report, mask, 0 if index else barriers.reported[rows])
    if suspends and not is_complete.all():
        barriers.refusal = Refused(active.index[~is_complete], rows[~is_complete])


def _test_layout(
    without_reports: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any
) -> None:
    """Test whether objects have the layout without reports, or the one with them."""
    active, (addresses,) = select_lanes(lanes, mask, address)
    if active is not None:
        offsets = locate_objects(site, active, space, addresses)
        _write_active(
            outs[0], mask, act_on_mbarriers(site, active, lambda m: m.reports[m.find_rows(offsets)]) ^ without_reports
        )


def _cp_async(match: Match, signature: Signature) -> Operation | None:
    return memory(partial(_arrive_after_copies, "noinc" in match.modifiers))


def _arrive_after_copies(
    is_counted: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any
) -> None:
    """Arrive once the lanes' copies have landed. An arrival that `init` did not count first increments the pending
    count, so it only delays the phase."""
    active, (addresses,) = select_lanes(lanes, mask, address)
    if active is None:
        return
    offsets, ones = locate_objects(site, active, space, addresses), np.ones(active.n, np.int64)
    effects = site.memory.effects
    if not is_counted:
        if not effects.eager:
            act_on_mbarriers(site, active, lambda m: m.add_pending(m.find_rows(offsets)))
        else:
            return
    effects.issue(
        "cp.async",
        active.index,
        active.shape.lanes,
        lambda: act_on_mbarriers(site, active, lambda m: m.arrive(m.find_rows(offsets), ones)),
    )


BUILDERS: dict[str, Builder] = {"mbarrier": _mbarrier, "cp": _cp_async}
