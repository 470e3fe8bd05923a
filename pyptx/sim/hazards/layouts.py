"""Tiles of shared memory that a tensor copy filled and a product reads: both must have the same swizzle and type.

The last copy of each granule is recorded at issue; only if its mode differs from the descriptor's, shadow memory tells
whether the bytes are still the copy's.
"""

from __future__ import annotations

import numpy as np

from pyptx.isa.swizzle import xor_terms
from pyptx.sim import rules
from pyptx.sim.base.events import Family, Ints, Mask, Place, Space
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.hazards.state import Grid, State
from pyptx.tensormap import ElementType, Swizzle

_GRANULE = 16
_WRITERS = (Family.BULK_LOAD, Family.THREAD)
_SOME_ROWS = 4
"""The mode of this many of a matrix's eight rows must be known."""


_KINDS = {
    element: "tf32" if element.format.name == "f32" else element.format.name for element in ElementType
    if element.format is not None and element.is_float
}  # fmt: skip
"""The types as which products read maps of floating-point numbers. Integers match any type."""
_Filler = tuple[Place, Swizzle, ElementType | None]
_READABLE = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32, Swizzle.B128_ATOM_32B, Swizzle.B128_ATOM_64B)
"""The modes to compare with the addresses of matrix rows."""


class Layouts:
    """The modes and types of the copies that filled shared memory."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._numbers: dict[_Filler, int] = {}
        self._copies: dict[int, _Filler] = {}
        """The instructions that fill memory, each with a mode and a type, numbered from 1."""
        self._filled: dict[int, Ints] = {}
        self._modes: set[Swizzle] = set()
        self._kinds: set[str] = set()
        self._by_rows: set[int] = {0}
        """The numbers that are not compared with products: only their addresses show their mode."""

    def filled(
        self, grid: Grid, place: Place, starts: list[int], size: int, mode: Swizzle, dtype: ElementType | None = None
    ) -> None:
        """Record that a tensor copy with this mode and type fills `size` bytes of shared memory at each of these
        places."""
        number = self._number_filler(place, mode, dtype)
        self._modes.add(mode)
        if dtype is not None and dtype in _KINDS:
            self._kinds.add(_KINDS[dtype])
        held = self._filled.get(grid.number)
        if held is None:
            held = self._filled[grid.number] = np.zeros(grid.shared.granules, np.int64)
        for start in starts:
            held[start // _GRANULE : (start + size) // _GRANULE] = number

    def _number_filler(self, place: Place, mode: Swizzle, dtype: ElementType | None) -> int:
        """Return the number of an instruction that fills memory."""
        key = place, mode, dtype
        number = self._numbers.setdefault(key, len(self._copies) + 1)
        self._copies[number] = key
        return number

    def differs(self, mode: Swizzle, kind: str = "") -> bool:
        """Tell whether any copy so far had another mode or type: in most kernels none has."""
        return bool(self._modes - {mode}) or bool(kind and self._kinds - {kind})

    def taken(self, threads: Ints, place: Place, rows: Rows, mode: Swizzle, low: int, kind: str = "") -> None:
        """Check a row of granules that each of these threads reads by a descriptor with this mode, as elements of a
        type, if known; `low` is the address of the first byte of shared memory."""
        grid = self.state.find_grid(int(threads[0]))
        held = self._filled.get(grid.number)
        if held is None or not self.differs(mode, kind):
            return
        ends = rows.blocks[:, [0, -1]] * rows.width
        ends[:, 1] += rows.width - 1
        numbers = held[ends]
        for at in np.flatnonzero((numbers != 0).any(1)).tolist():
            fillers = [self._copies[number] for number in set(numbers[at].tolist()) - self._by_rows]
            if any(other is not mode or _is_mistyped(dtype, kind) for _, other, dtype in fillers):
                cells = (rows.blocks[at][:, None] * rows.width + np.arange(rows.width)).ravel()
                self._compare(grid, int(threads[at]), place, cells, mode, low, kind)

    def _compare(
        self, grid: Grid, thread: int, place: Place, cells: Ints, mode: Swizzle, low: int, kind: str
    ) -> None:  # fmt: skip
        """Report granules that the copy placed elsewhere than the descriptor does, or that have another type."""
        numbers, inside = self._filled[grid.number][cells], cells * _GRANULE % grid.shared_stride + low
        for number in set(numbers.tolist()) - self._by_rows:
            filler, other, dtype = self._copies[number]
            mine = numbers == number
            still = self._select_unchanged(grid, filler, cells[mine & _compare_places(inside, mode, other)])
            if len(still):
                where = self.state.describe_bytes(Space.SHARED, grid, int(still[0]) * _GRANULE, _GRANULE)
                detail = f"the copy wrote {where} with {_name_mode(other)}, the descriptor says {_name_mode(mode)}"
                self.state.report(rules.SWIZZLE, place, detail, thread=thread, other=filler, where=where)
            still = self._select_unchanged(grid, filler, cells[mine]) if _is_mistyped(dtype, kind) else cells[:0]
            if len(still) and dtype is not None:
                self._report_type(grid, thread, place, int(still[0]), filler, (dtype, kind))

    def _report_type(
        self, grid: Grid, thread: int, place: Place, cell: int, filler: Place, types: tuple[ElementType, str]
    ) -> None:
        dtype, kind = types
        where = self.state.describe_bytes(Space.SHARED, grid, cell * _GRANULE, _GRANULE)
        detail = f"the copy's tensor map says {_spell(dtype)}, the product reads {where} as {kind}"
        right = next((_spell(one) for one, name in _KINDS.items() if name == kind), "u8")
        help = f"encode the map with type {right}, or multiply as `.{_KINDS[dtype]}`; u8, u16 and u32 match any type"
        self.state.report(rules.ELEMENT_TYPE, place, detail, thread=thread, other=filler, where=where, help=help)

    # Rows of ldmatrix and stmatrix

    def fillers(self, grid: Grid) -> bool:
        """Tell whether shared memory has been filled with a known swizzle."""
        return grid.number in self._filled

    def stored(self, grid: Grid, place: Place, addresses: Ints, cells: Ints) -> None:
        """Record the rows that `stmatrix` writes, a row of eight addresses for each matrix; `cells` are the engine's.
        Their mode is known if they fit only one."""
        modes = _find_modes(addresses)
        if len(modes) != 1 and grid.number not in self._filled:
            return
        held = self._filled.setdefault(grid.number, np.zeros(grid.shared.granules, np.int64))
        number = self._number_filler(place, modes[0], None) if len(modes) == 1 else 0
        self._by_rows.add(number)
        held[cells // _GRANULE] = number

    def rows_read(self, grid: Grid, threads: Ints, place: Place, addresses: Ints, cells: Ints) -> None:
        """Check the rows that `ldmatrix` reads, a row of eight addresses and a thread for each matrix."""
        granules = cells // _GRANULE
        numbers = self._filled[grid.number][granules]
        every, which = np.unique(numbers, return_inverse=True)
        writers = [self._copies[number][1] if number else None for number in every.tolist()]
        modes = [mode for mode in dict.fromkeys(writers) if mode is not None]
        written = np.array([modes.index(mode) if mode is not None else -1 for mode in writers])[which].reshape(-1, 8)
        # Rows of unknown mode are among others where the pattern happens to be even.
        at = np.arange(len(written)), np.argmax(written >= 0, axis=1)
        numbers, granules, written_by = numbers[at], granules[at], written[at]
        wrong = ((written == written_by[:, None]) | (written < 0)).all(1) & ((written >= 0).sum(1) >= _SOME_ROWS)
        for number, mode in enumerate(modes):
            mine = written_by == number
            wrong[mine] &= ~_is_even(addresses[mine], mode)
        meant = _find_modes(addresses) if wrong.any() else []
        for number in np.unique(numbers[wrong]).tolist() if meant else ():
            filler, mode, _ = self._copies[number]
            mine = np.flatnonzero(wrong & (numbers == number))
            still = mine[np.isin(granules[mine], self._select_unchanged(grid, filler, granules[mine]))]
            if mode not in meant and len(still):
                where = self.state.describe_bytes(Space.SHARED, grid, int(granules[still[0]]) * _GRANULE, _GRANULE)
                detail = f"{where} were written with {_name_mode(mode)}, but these addresses use {_name_mode(meant[0])}"
                self.state.report(
                    rules.ROW_SWIZZLE, place, detail, thread=int(threads[still[0]]), other=filler, where=where,
                    count=len(still), help=_explain_reading(mode),
                )  # fmt: skip

    def _select_unchanged(self, grid: Grid, place: Place, cells: Ints) -> Ints:
        """Return the granules unchanged since an instruction wrote them."""
        if not len(cells):
            return cells
        whole = cells[grid.shared.level[cells] == 0]
        refs = grid.shared.cells(0).write[whole]
        records = self.state.records
        mine = [
            number
            for number in np.unique(refs >> 6).tolist()
            if number and records.get_access(number).place == place and records.get_access(number).family in _WRITERS
        ]
        return whole[np.isin(refs >> 6, mine)]


def _spell(dtype: ElementType) -> str:
    """Return the name of a type as PTX would spell it."""
    return dtype.name.lower().replace("_", ".")


def _is_mistyped(dtype: ElementType | None, kind: str) -> bool:
    """Tell whether a product reads floating-point numbers of a type other than the map's."""
    return bool(kind) and dtype is not None and _KINDS.get(dtype, kind) != kind


def _is_even(addresses: Ints, mode: Swizzle) -> Mask:
    """Return which rows of addresses are evenly spaced after undoing a mode's swizzle."""
    steps = np.diff(_remove_swizzle(addresses, mode), axis=1)
    return np.asarray((steps == steps[:, :1]).all(1))


def _find_modes(addresses: Ints) -> list[Swizzle]:
    """Return the modes with which all rows of addresses are evenly spaced."""
    return [mode for mode in _READABLE if _is_even(addresses, mode).all()]


def _explain_reading(mode: Swizzle) -> str:
    """Say how to read what a mode has written."""
    if mode is Swizzle.NONE:
        return "read without a swizzle, or write with the swizzle of the read, such as Swizzle.B128 in the tensor map"
    terms = "".join(f" ^ ((addr & {mask:#x}) >> {shift})" for mask, shift in xor_terms(mode))
    return f"read at `addr{terms}`, where `addr` is the shared address without swizzle, or write without a swizzle"


def _compare_places(addresses: Ints, mode: Swizzle, other: Swizzle) -> Mask:
    """Return which granules two modes place differently, in whole or in half."""
    return _remove_swizzle(addresses, mode) != _remove_swizzle(addresses, other)


def _remove_swizzle(addresses: Ints, mode: Swizzle) -> Ints:
    """Return the places without swizzle of the first half of each granule, which determines the other."""
    plain = addresses
    for mask, shift in xor_terms(mode):
        plain = plain ^ ((plain & mask) >> shift)
    return plain


def _name_mode(mode: Swizzle) -> str:
    return "no swizzle" if mode is Swizzle.NONE else f"the {mode.name.removeprefix('B').lower()}-byte swizzle"
