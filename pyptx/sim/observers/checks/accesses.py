"""Translate an instruction's modifiers into the engine's `Access`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pyptx.ir import Instruction, opcode_span
from pyptx.isa.lookup import find_traits
from pyptx.isa.traits import Trait
from pyptx.sim.base.formats import Array
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.hazards import Access, Place, Scope, Sem, Space

_SCOPES = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "gl": Scope.GPU, "sys": Scope.SYS}
_SEMS = {"relaxed", "acquire", "release", "acq_rel", "sc", "weak"}


def split_modifiers(instruction: Instruction) -> set[str]:
    """Return the modifiers without their dots; compound ones also in parts."""
    names = [modifier[1:] for modifier in instruction.modifiers]
    return {*names, *(part for modifier in names for part in modifier.split("."))}


def find_scope(words: set[str], otherwise: Scope) -> Scope:
    """Return the scope that the modifiers name."""
    return next((scope for name, scope in _SCOPES.items() if name in words), otherwise)


def find_sem(words: set[str], otherwise: Sem) -> Sem:
    """Return the memory semantics that the modifiers name."""
    return next((Sem(name) for name in _SEMS if name in words), otherwise)


def describe_access(instruction: Instruction, shared: bool, size: int, kind: str) -> Access | None:
    """Return the access of an instruction whose lanes access memory themselves; None if a hook reports it."""
    if not _is_plain(instruction) or kind not in ("r", "w", "rw"):
        return None
    words = split_modifiers(instruction)
    instruction_traits = find_traits(instruction.opcode, instruction.modifiers)
    atomic = Trait.UPDATES in instruction_traits
    sem = find_sem(words, Sem.RELAXED if atomic else Sem.WEAK)
    scope = find_scope(words, Scope.GPU)
    if "volatile" in words or "mmio" in words:
        sem, scope = (Sem.RELAXED, Scope.SYS) if sem is Sem.WEAK else (sem, Scope.SYS)
    readonly = Trait.LOADS in instruction_traits and ("nc" in words or "proxy::readonly" in words)
    return Access(
        Place(opcode_span(instruction), instruction.full_opcode), Space.SHARED if shared else Space.GLOBAL, size,
        writes="w" in kind, reads="r" in kind, sem=sem, scope=scope, readonly=readonly,
        red=atomic and Trait.LOADS not in instruction_traits,
    )  # fmt: skip


_NOT_BY_LANES = frozenset((Trait.OPAQUE, Trait.ISSUES, Trait.ALLOCATES, Trait.HINTS, Trait.ORDERS))


def _is_plain(instruction: Instruction) -> bool:
    """Tell whether the lanes themselves access memory, in order."""
    return _NOT_BY_LANES.isdisjoint(find_traits(instruction.opcode, instruction.modifiers))


@dataclass(frozen=True, slots=True)
class StoredValues:
    """The values of a store in the executing lanes."""

    lanes: Lanes
    values: tuple[Array | None, ...]

    def compare_memory(self, data: Array, offsets: Array, size: int) -> Array:
        """Tell which lanes change the bytes in memory."""
        step, starts = size // len(self.values), np.broadcast_to(offsets, self.lanes.n)
        differs = np.zeros(self.lanes.n, np.bool_)
        for number, value in enumerate(self.values):
            if value is None:
                continue
            stored_bytes = (
                np.ascontiguousarray(np.broadcast_to(value, self.lanes.n)).view(np.uint8).reshape(self.lanes.n, -1)
            )
            cells = starts[:, None] + (number * step + np.arange(stored_bytes.shape[1]))
            differs |= (data[cells] != stored_bytes).any(axis=1)
        return differs

    def compare_lanes(self, addresses: Array) -> bool:
        """Tell whether lanes with equal addresses store equal values."""
        order = np.argsort(addresses, kind="stable")
        same_address = addresses[order][1:] == addresses[order][:-1]
        for value in self.values:
            if value is None:
                continue
            ordered_values = np.broadcast_to(value, self.lanes.n)[order]
            bits = f"u{ordered_values.itemsize}"
            if (same_address & (ordered_values[1:].view(bits) != ordered_values[:-1].view(bits))).any():
                return False
        return True
