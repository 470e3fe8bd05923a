"""Tiles of shared memory that a tensor copy fills and a product reads: swizzle mode and element type must agree.

The last copy to each granule is recorded at issue. If it disagrees with the descriptor, shadow memory tells whether the
bytes are still the copy's.
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
"""The least number of a matrix's eight rows whose mode must be known."""


_KINDS = {
    element: "tf32" if element.format.name == "f32" else element.format.name for element in ElementType
    if element.format is not None and element.is_float
}  # fmt: skip
"""The operand type that matches a map of each floating-point type. Integers match any type."""
_Filler = tuple[Place, Swizzle, ElementType | None]
_READABLE = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32, Swizzle.B128_ATOM_32B, Swizzle.B128_ATOM_64B)
"""The modes that the addresses of matrix rows may show."""


class Layouts:
    """The modes and types of the writes that filled shared memory."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._numbers: dict[_Filler, int] = {}
        self._copies: dict[int, _Filler] = {}
        """The instructions that fill memory, each with a mode and a type, by number from 1."""
        self._granule_fillers: dict[int, Ints] = {}
        self._modes: set[Swizzle] = set()
        self._kinds: set[str] = set()
        self._by_rows: set[int] = {0}
        """The numbers of `stmatrix` rows, which are not compared with products: only their addresses show the mode."""

    def record_fill(
        self, grid: Grid, place: Place, starts: list[int], size: int, mode: Swizzle, dtype: ElementType | None = None
    ) -> None:
        """Record that a tensor copy with this mode and type fills `size` bytes of shared memory from each start."""
        number = self._number_filler(place, mode, dtype)
        self._modes.add(mode)
        if dtype is not None and dtype in _KINDS:
            self._kinds.add(_KINDS[dtype])
        granule_fillers = self._granule_fillers.get(grid.number)
        if granule_fillers is None:
            granule_fillers = self._granule_fillers[grid.number] = np.zeros(grid.shared.granules, np.int64)
        for start in starts:
            granule_fillers[start // _GRANULE : (start + size) // _GRANULE] = number

    def _number_filler(self, place: Place, mode: Swizzle, dtype: ElementType | None) -> int:
        """Return the number of an instruction with this mode and type."""
        key = place, mode, dtype
        number = self._numbers.setdefault(key, len(self._copies) + 1)
        self._copies[number] = key
        return number

    def differs(self, mode: Swizzle, kind: str = "") -> bool:
        """Tell whether any copy so far had another mode or type: in most kernels none does."""
        return bool(self._modes - {mode}) or bool(kind and self._kinds - {kind})

    def check_granules(self, threads: Ints, place: Place, rows: Rows, mode: Swizzle, low: int, kind: str = "") -> None:
        """Check the granules that threads read through matrix descriptors with this mode, as elements of type `kind` if
        known. Each thread has a row; `low` is the address of the first byte of shared memory."""
        grid = self.state.find_grid(int(threads[0]))
        granule_fillers = self._granule_fillers.get(grid.number)
        if granule_fillers is None or not self.differs(mode, kind):
            return
        ends = rows.blocks[:, [0, -1]] * rows.width
        ends[:, 1] += rows.width - 1
        numbers = granule_fillers[ends]
        for index in np.flatnonzero((numbers != 0).any(1)).tolist():
            fillers = [self._copies[number] for number in set(numbers[index].tolist()) - self._by_rows]
            if any(copy_mode is not mode or _is_mistyped(dtype, kind) for _, copy_mode, dtype in fillers):
                cells = (rows.blocks[index][:, None] * rows.width + np.arange(rows.width)).ravel()
                self._compare(grid, int(threads[index]), place, cells, mode, low, kind)

    def _compare(
        self, grid: Grid, thread: int, place: Place, cells: Ints, mode: Swizzle, low: int, kind: str
    ) -> None:  # fmt: skip
        """Report granules that the copy placed elsewhere than the descriptor does, or with another type."""
        numbers, inside = self._granule_fillers[grid.number][cells], cells * _GRANULE % grid.shared_stride + low
        for number in set(numbers.tolist()) - self._by_rows:
            filler, copy_mode, dtype = self._copies[number]
            mine = numbers == number
            intact = self._select_unchanged(grid, filler, cells[mine & _compare_places(inside, mode, copy_mode)])
            if len(intact):
                location = self.state.describe_bytes(Space.SHARED, grid, int(intact[0]) * _GRANULE, _GRANULE)
                detail = (
                    f"the copy wrote {location} with {_name_mode(copy_mode)}, the descriptor says {_name_mode(mode)}"
                )
                self.state.report(rules.SWIZZLE, place, detail, thread=thread, other=filler, where=location)
            intact = self._select_unchanged(grid, filler, cells[mine]) if _is_mistyped(dtype, kind) else cells[:0]
            if len(intact) and dtype is not None:
                self._report_type(grid, thread, place, int(intact[0]), filler, (dtype, kind))

    def _report_type(
        self, grid: Grid, thread: int, place: Place, cell: int, filler: Place, types: tuple[ElementType, str]
    ) -> None:
        dtype, kind = types
        location = self.state.describe_bytes(Space.SHARED, grid, cell * _GRANULE, _GRANULE)
        detail = f"the copy's tensor map says {_spell(dtype)}, the product reads {location} as {kind}"
        right = next((_spell(element) for element, name in _KINDS.items() if name == kind), "u8")
        help = f"encode the map with type {right}, or multiply as `.{_KINDS[dtype]}`; u8, u16 and u32 match any type"
        self.state.report(rules.ELEMENT_TYPE, place, detail, thread=thread, other=filler, where=location, help=help)

    # Rows of ldmatrix and stmatrix

    def has_fillers(self, grid: Grid) -> bool:
        """Tell whether any write to shared memory had a known swizzle."""
        return grid.number in self._granule_fillers

    def record_rows(self, grid: Grid, place: Place, addresses: Ints, cells: Ints) -> None:
        """Record the rows that `stmatrix` writes. Each matrix has a row of eight `addresses`, whose engine addresses
        are in `cells`. Their mode is known if the addresses fit only one."""
        modes = _find_modes(addresses)
        if len(modes) != 1 and grid.number not in self._granule_fillers:
            return
        granule_fillers = self._granule_fillers.setdefault(grid.number, np.zeros(grid.shared.granules, np.int64))
        number = self._number_filler(place, modes[0], None) if len(modes) == 1 else 0
        self._by_rows.add(number)
        granule_fillers[cells // _GRANULE] = number

    def check_rows(self, grid: Grid, threads: Ints, place: Place, addresses: Ints, cells: Ints) -> None:
        """Check the rows that `ldmatrix` reads: each matrix has a row of eight addresses and a thread."""
        granules = cells // _GRANULE
        numbers = self._granule_fillers[grid.number][granules]
        every, index = np.unique(numbers, return_inverse=True)
        writers = [self._copies[number][1] if number else None for number in every.tolist()]
        modes = [mode for mode in dict.fromkeys(writers) if mode is not None]
        writers_index = np.array([modes.index(mode) if mode is not None else -1 for mode in writers])[index].reshape(
            -1, 8
        )
        # Some rows of a matrix may lack a mode, where the swizzle happens to be even.
        selection = np.arange(len(writers_index)), np.argmax(writers_index >= 0, axis=1)
        numbers, granules, row_writers = numbers[selection], granules[selection], writers_index[selection]
        wrong = ((writers_index == row_writers[:, None]) | (writers_index < 0)).all(1) & (
            (writers_index >= 0).sum(1) >= _SOME_ROWS
        )
        for number, mode in enumerate(modes):
            mine = row_writers == number
            wrong[mine] &= ~_is_even(addresses[mine], mode)
        read_modes = _find_modes(addresses) if wrong.any() else []
        for number in np.unique(numbers[wrong]).tolist() if read_modes else ():
            filler, mode, _ = self._copies[number]
            mine = np.flatnonzero(wrong & (numbers == number))
            intact = mine[np.isin(granules[mine], self._select_unchanged(grid, filler, granules[mine]))]
            if mode not in read_modes and len(intact):
                location = self.state.describe_bytes(Space.SHARED, grid, int(granules[intact[0]]) * _GRANULE, _GRANULE)
                detail = (
                    f"{location} were written with {_name_mode(mode)}, but these addresses use "
                    f"{_name_mode(read_modes[0])}"
                )
                self.state.report(
                    rules.ROW_SWIZZLE, place, detail, thread=int(threads[intact[0]]), other=filler, where=location,
                    count=len(intact), help=_explain_reading(mode),
                )  # fmt: skip

    def _select_unchanged(self, grid: Grid, place: Place, cells: Ints) -> Ints:
        """Return the granules that are unchanged since an instruction wrote them."""
        if not len(cells):
            return cells
        whole_granules = cells[grid.shared.level[cells] == 0]
        refs = grid.shared.get_cells(0).write[whole_granules]
        records = self.state.records
        mine = [
            number
            for number in np.unique(refs >> 6).tolist()
            if number and records.get_access(number).place == place and records.get_access(number).family in _WRITERS
        ]
        return whole_granules[np.isin(refs >> 6, mine)]


def _spell(dtype: ElementType) -> str:
    """Return the name of a type in PTX spelling."""
    return dtype.name.lower().replace("_", ".")


def _is_mistyped(dtype: ElementType | None, kind: str) -> bool:
    """Tell whether a product reads another floating-point type than the map declares."""
    return bool(kind) and dtype is not None and _KINDS.get(dtype, kind) != kind


def _is_even(addresses: Ints, mode: Swizzle) -> Mask:
    """Tell which rows of addresses are evenly spaced after undoing a mode's swizzle."""
    steps = np.diff(_remove_swizzle(addresses, mode), axis=1)
    return np.asarray((steps == steps[:, :1]).all(1))


def _find_modes(addresses: Ints) -> list[Swizzle]:
    """Return the modes with which all rows of addresses are evenly spaced."""
    return [mode for mode in _READABLE if _is_even(addresses, mode).all()]


def _explain_reading(mode: Swizzle) -> str:
    """Return the remedy: how to read rows that were written with a mode."""
    if mode is Swizzle.NONE:
        return "read without a swizzle, or write with the swizzle of the read, such as Swizzle.B128 in the tensor map"
    terms = "".join(f" ^ ((addr & {mask:#x}) >> {shift})" for mask, shift in xor_terms(mode))
    return f"read at `addr{terms}`, where `addr` is the shared address without swizzle, or write without a swizzle"


def _compare_places(addresses: Ints, mode: Swizzle, other_mode: Swizzle) -> Mask:
    """Tell which granules two modes place differently, in whole or in half."""
    return _remove_swizzle(addresses, mode) != _remove_swizzle(addresses, other_mode)


def _remove_swizzle(addresses: Ints, mode: Swizzle) -> Ints:
    """Return the unswizzled address of the first half of each granule, which determines that of the other half."""
    plain = addresses
    for mask, shift in xor_terms(mode):
        plain = plain ^ ((plain & mask) >> shift)
    return plain


def _name_mode(mode: Swizzle) -> str:
    return "no swizzle" if mode is Swizzle.NONE else f"the {mode.name.removeprefix('B').lower()}-byte swizzle"
