"""Manual: stacksave, stackrestore, alloca. Dynamic memory lies above the frames of all functions, where calls do not
move it, and grows upward; a return gives back what its function took."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.formats import Array
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes

_LEAST = 8


def _stacksave(match: Match, signature: Signature) -> Operation | None:
    return lanes(partial(_save, _dtype(match)))


def _stackrestore(match: Match, signature: Signature) -> Operation | None:
    return lanes(_restore)


def _alloca(match: Match, signature: Signature) -> Operation | None:
    return lanes(partial(_allocate, _dtype(match)))


def _dtype(match: Match) -> str:
    return f"u{int(match.modifiers[-1][1:]) // 8}"


def _save(dtype: str, machine: Any, group: Any) -> Array:
    return (machine.dynamic_base + machine.dynamic[group.sel]).astype(dtype)


def _restore(machine: Any, group: Any, pointer: Array) -> tuple[()]:
    machine.dynamic[group.sel] = pointer.astype(np.int64) - machine.dynamic_base
    return ()


def _allocate(dtype: str, machine: Any, group: Any, size: Array, alignment: Any = _LEAST) -> Array:
    step = max(_LEAST, int(alignment))
    first = machine.dynamic_base + machine.dynamic[group.sel]
    first = -(-first // step) * step
    end = first + size.astype(np.int64)
    machine.memory.ensure_local(int(end.max()), None)
    machine.dynamic[group.sel] = end - machine.dynamic_base
    return first.astype(dtype)


BUILDERS: dict[str, Builder] = {"stacksave": _stacksave, "stackrestore": _stackrestore, "alloca": _alloca}
