"""Manual: cp.async, cp.async.bulk, cp.reduce.async.bulk, and their groups. `bulk` and `copies` move the bytes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines import bulk
from pyptx.sim.engines.copies.reports import parse_report
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.rules import faults
from pyptx.sim.semantics.access import load, store
from pyptx.sim.semantics.replicas import replicated
from pyptx.sim.semantics.vocabulary import NOTHING, Builder, Operation, Signature, lanes, memory
from pyptx.sim.state.memory import Site

_U4 = np.dtype("u4")


def _cp(match: Match, signature: Signature) -> Operation | None:
    match match.traits:
        case {Trait.HINTS: _}:
            return NOTHING
        case {Trait.COMMITS: agent}:
            return lanes(partial(_commit, agent))
        case {Trait.LANDS: agent}:
            return lanes(partial(_wait, agent, n=None)) if not signature else lanes(partial(_wait, agent))
        case {Trait.ISSUES: "bulk"}:
            return _build_bulk(match, signature, set(match.modifiers))
        case _:
            names = [operand.name for operand in signature]
            return memory(partial(_copy, "ignore" in names, "from" in names))


def _commit(agent: str, machine: Any, group: Lanes) -> None:
    machine.effects.commit(agent, group.index, group.shape.lanes)


def _wait(agent: str, machine: Any, group: Lanes, n: Any = 0) -> None:
    machine.effects.wait(agent, group.index, group.shape.lanes, None if n is None else int(n))


def _copy(
    ignores: bool, partly: bool, site: Site, group: Lanes, mask: Any, to: str, target: Any, of: str, source: Any,
    outs: Any, size: Any, *rest: Any,
) -> None:  # fmt: skip
    """Copy 4, 8 or 16 bytes per lane; ignored source bytes are zero in the target, and the source is not accessed."""
    active, (there, here, extra) = select_lanes(group, mask, target, source, rest[0] if rest else np.array(0))
    if active is None:
        return
    whole = int(size)
    count = extra.astype(np.int64) if partly else np.full(active.n, whole)
    if partly and count.max() > whole:
        at = int(np.argmax(count))
        text = f"`{site.instruction.full_opcode}`: src-size is {count[at]}, cp-size {whole}: expected at most {whole}"
        help = f"clamp src-size to {whole}; a copy reads src-size bytes and fills the rest of cp-size with zeros"
        raise faults.error(
            faults.COPY, site.origin, text, help=help, notes=(site.memory.describe_thread(active, at, site.function),)
        )
    if ignores:
        count = np.where(extra, 0, whole)
    effects = site.memory.effects
    if not effects.eager:
        there, here = np.array(there), np.array(here)
    effects.issue(
        "cp.async", active.index, active.shape.lanes, lambda: _move(site, active, to, there, of, here, count, whole),
        size=whole * active.n,
    )  # fmt: skip


def _move(site: Site, group: Lanes, to: str, target: Array, of: str, source: Array, count: Array, whole: int) -> None:
    data = np.zeros((whole // 4, group.n), _U4)
    full = count == whole
    load(site, group, None if full.all() else full, of, source, _U4, tuple(data))
    octets = data.T.copy().view(np.uint8)
    for number in np.unique(count[(count > 0) & ~full]):
        part = count == number
        for at in range(int(number)):
            byte = np.zeros(group.n, np.uint8)
            load(site, group, part, of, source + np.uint64(at), byte.dtype, (byte,))
            octets[part, at] = byte[part]
    words = np.ascontiguousarray(octets).view(_U4).T
    store(site, group, None, to, target, _U4, tuple(np.ascontiguousarray(words)))


def _build_bulk(match: Match, signature: Signature, flags: set[str]) -> Operation | None:
    names = [operand.name for operand in signature]
    operation = match.chosen.get("op", "") if match.modifiers[0] == "reduce" else ""
    extras = tuple(name for name in ("left", "right", "ctas", "policy", "bytes") if name in names)
    return memory(partial(bulk.copy, operation, "mbar" in names, extras, report=parse_report(flags)))


def _multimem(match: Match, signature: Signature) -> Operation | None:
    names = [operand.name for operand in signature]
    operation = match.chosen.get("op", "") if "reduce" in match.modifiers else ""
    return memory(replicated(partial(bulk.copy, operation, False, tuple(n for n in ("bytes",) if n in names))))


BUILDERS: dict[str, Builder] = {"cp": _cp, "applypriority": _cp, "multimem": _multimem}
