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
    active, (where, counts) = select_lanes(lanes, mask, address, count)
    if active is not None:
        offsets = locate_objects(site, active, space, where)
        act_on_mbarriers(site, active, lambda m: m.init(offsets, counts.astype(np.int64), reports))


def _inval(site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    active, (where,) = select_lanes(lanes, mask, address)
    if active is not None:
        offsets = locate_objects(site, active, space, where)
        act_on_mbarriers(site, active, lambda m: m.inval(offsets))


def _transfer(sign: int, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any, amount: Any) -> None:
    active, (where, amounts) = select_lanes(lanes, mask, address, amount)
    if active is not None:
        offsets = locate_objects(site, active, space, where)
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
    active, (where, operands) = select_lanes(lanes, mask, address, operand)
    if active is None:
        return
    offsets, numbers = locate_objects(site, active, space, where), operands.astype(np.int64)

    def arrived(m: Any) -> Array:
        rows = m.find_rows(offsets)
        if not expects:
            return m.arrive(rows, numbers, drop)
        m.transfer(rows, numbers)
        return m.arrive(rows, np.ones(len(rows), np.int64), drop)

    states = act_on_mbarriers(site, active, arrived)
    if outs and outs[0] is not None:
        _put(outs[0], mask, states)


def _put(out: Array, mask: Array | None, values: Any) -> None:
    if mask is None:
        out[...] = values
    else:
        out[np.flatnonzero(mask)] = values


def _wait(
    suspends: bool, parity: bool, conditional: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any,
    outs: Any, wanted: Any, *hint: Any,
) -> None:  # fmt: skip
    active, (where, values) = select_lanes(lanes, mask, address, wanted)
    if active is None:
        return
    offsets = locate_objects(site, active, space, where)
    barriers = site.memory.mbarriers
    rows = act_on_mbarriers(site, active, lambda m: m.find_rows(offsets))
    done = barriers.test_phases(rows, values, parity, conditional)
    refused = barriers.doubt(active) if suspends and barriers.doubt is not None else None
    _put(outs[0], mask, done if refused is None else done & ~refused)
    for at, report in enumerate(outs[1:]):
        if report is not None:
            _put(report, mask, 0 if at else barriers.reported[rows])
    if suspends and not done.all():
        barriers.refusal = Refused(active.index[~done], rows[~done])


def _test_layout(plain: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any) -> None:
    """Tell whether objects have the layout without reports, or the one with them."""
    active, (where,) = select_lanes(lanes, mask, address)
    if active is not None:
        offsets = locate_objects(site, active, space, where)
        _put(outs[0], mask, act_on_mbarriers(site, active, lambda m: m.reports[m.find_rows(offsets)]) ^ plain)


def _cp_async(match: Match, signature: Signature) -> Operation | None:
    return memory(partial(_arrive_after_copies, "noinc" in match.modifiers))


def _arrive_after_copies(
    counted: bool, site: Site, lanes: Lanes, mask: Any, space: str, address: Any, outs: Any
) -> None:
    """Arrive once the lanes' copies have landed. An arrival that `init` did not count first increments the pending
    count, and so only delays the phase."""
    active, (where,) = select_lanes(lanes, mask, address)
    if active is None:
        return
    offsets, ones = locate_objects(site, active, space, where), np.ones(active.n, np.int64)
    effects = site.memory.effects
    if not counted:
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
