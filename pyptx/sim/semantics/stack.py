"""Manual: stacksave, stackrestore, alloca. Dynamic memory lies above the frames of all functions, where calls do not
move it, and grows upward; a return gives back what its function took."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.engines.issuing import select_lanes
from pyptx.sim.rules import faults
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes, memory
from pyptx.sim.state.memory import Site

_LEAST = 8


def _stacksave(match: Match, signature: Signature) -> Operation | None:
    return lanes(partial(_save, _unsigned_dtype(match)))


def _stackrestore(match: Match, signature: Signature) -> Operation | None:
    return lanes(_restore)


def _alloca(match: Match, signature: Signature) -> Operation | None:
    return memory(partial(_allocate, _unsigned_dtype(match)))


def _unsigned_dtype(match: Match) -> str:
    return f"u{int(match.modifiers[-1][1:]) // 8}"


def _save(dtype: str, machine: Any, group: Any) -> Array:
    return (machine.dynamic_base + machine.dynamic[group.sel]).astype(dtype)


def _restore(machine: Any, group: Any, pointer: Array) -> tuple[()]:
    machine.dynamic[group.sel] = pointer.astype(np.int64) - machine.dynamic_base
    return ()


def _allocate(
    dtype: str, site: Site, group: Lanes, mask: Any, outs: tuple[Array, ...], size: Any, alignment: Any = _LEAST
) -> None:
    active, (sizes,) = select_lanes(group, mask, size)
    if active is None:
        return
    memory, step = site.memory, max(_LEAST, int(alignment))
    counts = sizes.astype(dtype).view(f"i{dtype[1:]}")
    if (counts < 0).any():
        position = int(np.argmax(counts < 0))
        text = f"`{site.instruction.full_opcode}` of {int(counts[position])} bytes: expected 0 or more"
        unsigned = int(counts[position]) % (1 << 8 * counts.itemsize)
        help = f"sizes are unsigned, so a negative one is {unsigned} bytes: clamp it"
        raise faults.error(
            faults.STACK, site.origin, text, help=help, notes=(memory.describe_thread(active, position, site.function),)
        )
    first = -(-(memory.dynamic_base + memory.dynamic[active.sel]) // step) * step
    end = first + counts.astype(np.int64)
    memory.ensure_local(int(end.max()), site.origin)
    memory.dynamic[active.sel] = end - memory.dynamic_base
    outs[0][... if mask is None else np.flatnonzero(mask)] = first.astype(dtype)


BUILDERS: dict[str, Builder] = {"stacksave": _stacksave, "stackrestore": _stackrestore, "alloca": _alloca}
