"""Tiles of shared memory that a tensor copy filled and a product reads: both have to mean the same swizzle.

Which copy filled a granule last is noted as copies are issued; only where its mode is another than the descriptor's,
shadow memory is asked whether the bytes are still the copy's.
"""

from __future__ import annotations

import numpy as np

from pyptx.isa.swizzle import xor_terms
from pyptx.sim.hazards import rules
from pyptx.sim.hazards.events import Family, Ints, Mask, Place, Space
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.hazards.state import Grid, State
from pyptx.tensormap import Swizzle

_GRANULE = 16


class Layouts:
    """The modes of the copies that filled shared memory."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._numbers: dict[tuple[Place, Swizzle], int] = {}
        self._copies: dict[int, tuple[Place, Swizzle]] = {}
        """The instructions that fill memory, each with a mode, by a number from 1 on."""
        self._filled: dict[int, Ints] = {}
        self._modes: set[Swizzle] = set()

    def filled(self, grid: Grid, place: Place, starts: list[int], size: int, mode: Swizzle) -> None:
        """A tensor copy with this mode fills `size` bytes of shared memory from each of these places."""
        key = place, mode
        number = self._numbers.setdefault(key, len(self._copies) + 1)
        self._copies[number] = key
        self._modes.add(mode)
        held = self._filled.get(grid.number)
        if held is None:
            held = self._filled[grid.number] = np.zeros(grid.shared.granules, np.int64)
        for start in starts:
            held[start // _GRANULE : (start + size) // _GRANULE] = number

    def differs(self, mode: Swizzle) -> bool:
        """Say whether any copy so far had another mode: in most kernels none has."""
        return bool(self._modes - {mode})

    def taken(self, threads: Ints, place: Place, rows: Rows, mode: Swizzle, low: int) -> None:
        """Each of these threads reads a row of granules as a descriptor with this mode says; `low` is the address of
        the first byte of shared memory."""
        grid = self.state.grid_of(int(threads[0]))
        held = self._filled.get(grid.number)
        if held is None or not self.differs(mode):
            return
        ends = rows.blocks[:, [0, -1]] * rows.width
        ends[:, 1] += rows.width - 1
        numbers = held[ends]
        for at in np.flatnonzero((numbers != 0).any(1)).tolist():
            if any(self._copies[number][1] is not mode for number in numbers[at].tolist() if number):
                cells = (rows.blocks[at][:, None] * rows.width + np.arange(rows.width)).ravel()
                self._compare(grid, int(threads[at]), place, cells, held[cells], mode, low)

    def _compare(
        self, grid: Grid, thread: int, place: Place, cells: Ints, numbers: Ints, mode: Swizzle, low: int
    ) -> None:
        """Report granules that the copy put elsewhere than the descriptor looks for them."""
        inside = cells * _GRANULE % grid.shared_stride + low
        for number in np.unique(numbers).tolist():
            if not number:
                continue
            filler, other = self._copies[number]
            moved = (numbers == number) & _differ(inside, mode, other)
            still = self._still_of(grid, filler, cells[moved])
            if len(still):
                where = self.state.location(Space.SHARED, grid, int(still[0]) * _GRANULE, _GRANULE)
                what = f"the copy put {where} there by {_named(other)}, the descriptor says {_named(mode)}"
                self.state.report(rules.SWIZZLE, place, what, thread=thread, other=filler, where=where)

    def _still_of(self, grid: Grid, place: Place, cells: Ints) -> Ints:
        """Return the granules that nobody has written since a copy by an instruction did."""
        if not len(cells):
            return cells
        whole = cells[grid.shared.level[cells] == 0]
        refs = grid.shared.cells(0).write[whole]
        records = self.state.records
        mine = [
            number
            for number in np.unique(refs >> 6).tolist()
            if number and records.place(number).place == place and records.place(number).family is Family.BULK_LOAD
        ]
        return whole[np.isin(refs >> 6, mine)]


def _differ(addresses: Ints, mode: Swizzle, other: Swizzle) -> Mask:
    """Return which granules two modes take from different places, in whole or in half."""
    return _plain(addresses, mode) != _plain(addresses, other)


def _plain(addresses: Ints, mode: Swizzle) -> Ints:
    """Return the places without swizzle of the first of each granule's halves, which tells that of the other."""
    made = addresses
    for mask, shift in xor_terms(mode):
        made = made ^ ((made & mask) >> shift)
    return made


def _named(mode: Swizzle) -> str:
    return "no swizzle" if mode is Swizzle.NONE else f"the {mode.name.removeprefix('B').lower()}-byte swizzle"
