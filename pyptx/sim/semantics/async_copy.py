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
from pyptx.sim.semantics.replicas import apply_to_replicas
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
    ignores: bool, partly: bool, site: Site, group: Lanes, mask: Any, target_space: str, target: Any, source_space: str,
    source: Any, outs: Any, size: Any, *optional: Any,
) -> None:  # fmt: skip
    """Copy 4, 8 or 16 bytes per lane; ignored source bytes are zero in the target, and the source is not accessed."""
    active, (target_addresses, source_addresses, extra) = select_lanes(
        group, mask, target, source, optional[0] if optional else np.array(0)
    )
    if active is None:
        return
    copy_size = int(size)
    count = extra.astype(np.int64) if partly else np.full(active.n, copy_size)
    if partly and count.max() > copy_size:
        position = int(np.argmax(count))
        sizes = f"src-size is {count[position]}, cp-size {copy_size}: expected at most {copy_size}"
        text = f"`{site.instruction.full_opcode}`: {sizes}"
        help = f"clamp src-size to {copy_size}; a copy reads src-size bytes and fills the rest of cp-size with zeros"
        raise faults.error(
            faults.COPY,
            site.origin,
            text,
            help=help,
            notes=(site.memory.describe_thread(active, position, site.function),),
        )
    if ignores:
        count = np.where(extra, 0, copy_size)
    effects = site.memory.effects
    if not effects.eager:
        target_addresses, source_addresses = np.array(target_addresses), np.array(source_addresses)
    effects.issue(
        "cp.async", active.index, active.shape.lanes,
        lambda: _move(
            site, active, target_space, target_addresses, source_space, source_addresses, count, copy_size
        ),
        size=copy_size * active.n,
    )  # fmt: skip


def _move(
    site: Site,
    group: Lanes,
    target_space: str,
    target: Array,
    source_space: str,
    source: Array,
    count: Array,
    copy_size: int,
) -> None:
    data = np.zeros((copy_size // 4, group.n), _U4)
    full = count == copy_size
    load(site, group, None if full.all() else full, source_space, source, _U4, tuple(data))
    octets = data.T.copy().view(np.uint8)
    for number in np.unique(count[(count > 0) & ~full]):
        part = count == number
        for offset in range(int(number)):
            byte = np.zeros(group.n, np.uint8)
            load(site, group, part, source_space, source + np.uint64(offset), byte.dtype, (byte,))
            octets[part, offset] = byte[part]
    words = np.ascontiguousarray(octets).view(_U4).T
    store(site, group, None, target_space, target, _U4, tuple(np.ascontiguousarray(words)))


def _build_bulk(match: Match, signature: Signature, flags: set[str]) -> Operation | None:
    names = [operand.name for operand in signature]
    operation = match.chosen.get("op", "") if match.modifiers[0] == "reduce" else ""
    extras = tuple(name for name in ("left", "right", "ctas", "policy", "bytes") if name in names)
    return memory(partial(bulk.copy, operation, "mbar" in names, extras, report=parse_report(flags)))


def _multimem(match: Match, signature: Signature) -> Operation | None:
    names = [operand.name for operand in signature]
    operation = match.chosen.get("op", "") if "reduce" in match.modifiers else ""
    return memory(apply_to_replicas(partial(bulk.copy, operation, False, tuple(n for n in ("bytes",) if n in names))))


BUILDERS: dict[str, Builder] = {"cp": _cp, "applypriority": _cp, "multimem": _multimem}
