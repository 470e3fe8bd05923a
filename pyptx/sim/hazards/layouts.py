"""Tiles of shared memory that a tensor copy filled and a product reads: both have to mean the same swizzle and type.

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
from pyptx.tensormap import ElementType, Swizzle

_GRANULE = 16


_KINDS = {
    ElementType.F16: "f16", ElementType.BF16: "bf16", ElementType.F32: "tf32", ElementType.F32_FTZ: "tf32",
    ElementType.TF32: "tf32", ElementType.TF32_FTZ: "tf32", ElementType.F64: "f64",
}  # fmt: skip
"""The types of elements that products read maps of floating-point numbers as. Integers stand for any bits."""
_Filler = tuple[Place, Swizzle, ElementType | None]


class Layouts:
    """The modes and types of the copies that filled shared memory."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._numbers: dict[_Filler, int] = {}
        self._copies: dict[int, _Filler] = {}
        """The instructions that fill memory, each with a mode and a type, by a number from 1 on."""
        self._filled: dict[int, Ints] = {}
        self._modes: set[Swizzle] = set()
        self._kinds: set[str] = set()

    def filled(
        self, grid: Grid, place: Place, starts: list[int], size: int, mode: Swizzle, dtype: ElementType | None = None
    ) -> None:
        """A tensor copy with this mode and type fills `size` bytes of shared memory from each of these places."""
        key = place, mode, dtype
        number = self._numbers.setdefault(key, len(self._copies) + 1)
        self._copies[number] = key
        self._modes.add(mode)
        if dtype is not None and dtype in _KINDS:
            self._kinds.add(_KINDS[dtype])
        held = self._filled.get(grid.number)
        if held is None:
            held = self._filled[grid.number] = np.zeros(grid.shared.granules, np.int64)
        for start in starts:
            held[start // _GRANULE : (start + size) // _GRANULE] = number

    def differs(self, mode: Swizzle, kind: str = "") -> bool:
        """Say whether any copy so far had another mode or type: in most kernels none has."""
        return bool(self._modes - {mode}) or bool(kind and self._kinds - {kind})

    def taken(self, threads: Ints, place: Place, rows: Rows, mode: Swizzle, low: int, kind: str = "") -> None:
        """Each of these threads reads a row of granules as a descriptor with this mode says, as elements of a type, if
        that is known; `low` is the address of the first byte of shared memory."""
        grid = self.state.grid_of(int(threads[0]))
        held = self._filled.get(grid.number)
        if held is None or not self.differs(mode, kind):
            return
        ends = rows.blocks[:, [0, -1]] * rows.width
        ends[:, 1] += rows.width - 1
        numbers = held[ends]
        for at in np.flatnonzero((numbers != 0).any(1)).tolist():
            fillers = [self._copies[number] for number in set(numbers[at].tolist()) if number]
            if any(other is not mode or _mistyped(dtype, kind) for _, other, dtype in fillers):
                cells = (rows.blocks[at][:, None] * rows.width + np.arange(rows.width)).ravel()
                self._compare(grid, int(threads[at]), place, cells, mode, low, kind)

    def _compare(
        self, grid: Grid, thread: int, place: Place, cells: Ints, mode: Swizzle, low: int, kind: str
    ) -> None:  # fmt: skip
        """Report granules that the copy put elsewhere than the descriptor looks for them, or that have another type."""
        numbers, inside = self._filled[grid.number][cells], cells * _GRANULE % grid.shared_stride + low
        for number in np.unique(numbers).tolist():
            if not number:
                continue
            filler, other, dtype = self._copies[number]
            mine = numbers == number
            still = self._still_of(grid, filler, cells[mine & _differ(inside, mode, other)])
            if len(still):
                where = self.state.location(Space.SHARED, grid, int(still[0]) * _GRANULE, _GRANULE)
                what = f"the copy put {where} there by {_named(other)}, the descriptor says {_named(mode)}"
                self.state.report(rules.SWIZZLE, place, what, thread=thread, other=filler, where=where)
            still = self._still_of(grid, filler, cells[mine]) if _mistyped(dtype, kind) else cells[:0]
            if len(still) and dtype is not None:
                self._report_type(grid, thread, place, int(still[0]), filler, (dtype, kind))

    def _report_type(
        self, grid: Grid, thread: int, place: Place, cell: int, filler: Place, types: tuple[ElementType, str]
    ) -> None:
        dtype, kind = types
        where = self.state.location(Space.SHARED, grid, cell * _GRANULE, _GRANULE)
        what = f"the copy's tensor map says ElementType.{dtype.name}, the product reads {where} as {kind}"
        right = next((one.name for one, name in _KINDS.items() if name == kind), "U8")
        help = f"encode the map with ElementType.{right}, or multiply as `.{_KINDS[dtype]}`; U8, U16, U32 are any bits"
        self.state.report(rules.ELEMENT_TYPE, place, what, thread=thread, other=filler, where=where, help=help)

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


def _mistyped(dtype: ElementType | None, kind: str) -> bool:
    """Say whether a product reads other floating-point numbers than the map has."""
    return bool(kind) and dtype is not None and _KINDS.get(dtype, kind) != kind


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
