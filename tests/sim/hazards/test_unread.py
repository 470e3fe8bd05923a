"""Outputs that nobody reads: random copies, products and reads against a naive model of single cells."""

from __future__ import annotations

import random

import numpy as np
import pytest

from pyptx.diagnostics import Rule, Span
from pyptx.sim import rules
from pyptx.sim.base.events import Bytes, Ints, Space
from pyptx.sim.hazards import Hazards, Place
from pyptx.sim.hazards.rows import Rows
from pyptx.sim.hazards.unread import Unread

SHARED_BYTES, SLOTS, CTAS = 256, 2, [5, 8]
Cell = tuple[int, ...]
"""The slot and offset of a byte, or the slot, column and 16-lane part of a cell of tensor memory."""
Report = tuple[str, int, int, str, str]


class Execution:
    """Operations that the engine and the model record; both list what they report."""

    def __init__(self, seed: int, patch: pytest.MonkeyPatch) -> None:
        self.choice = random.Random(seed)
        engine = Hazards()
        engine.finish(engine.launch(Place(Span(1, 1), ""), 32, shared_bytes=64, tensor=True))
        grid = engine.launch(Place(Span(1, 1), ""), 64, slots=SLOTS, shared_bytes=SHARED_BYTES, tensor=True)
        engine.start(grid, range(SLOTS), CTAS)
        patch.setattr(engine.state, "report", self._report)
        self.unread = Unread(engine.state, grid)
        self.found: list[Report] = []
        self.expected: list[Report] = []
        self.outputs: list[tuple[int, int]] = []
        """The first byte or column of each output, and how many it has."""
        self.owners: dict[Cell, int] = {}
        for _ in range(60):
            choice = self.choice
            choice.choice([self.copy, self.access, self.read, self.multiply, self.multiply, self.move, self.free])()
        self.unread.end()
        self._end([cell for cell in self.owners if len(cell) == 2], "")
        self._end([cell for cell in self.owners if len(cell) == 3], "")

    def _report(self, rule: Rule, place: Place, detail: str, *, thread: int, where: str) -> None:
        self.found.append((rule.code, int(place.text), thread, detail, where))

    def _end(self, cells: list[Cell], when: str) -> None:
        """Let cells be overwritten: report those that are unread, by output."""
        lost: dict[int, list[Cell]] = {}
        for cell in sorted(cells):
            if cell in self.owners:
                lost.setdefault(self.owners.pop(cell), []).append(cell)
        for number, mine in sorted(lost.items()):
            (first, size), least = self.outputs[number], mine[0]
            if len(least) == 2:
                code, where = rules.UNREAD_COPY.code, f"shared {least[1]:#x} of CTA {CTAS[least[0]]}"
                start = least[0] * SHARED_BYTES + least[1] - first
                text = f"{len(mine)} of {size} bytes, the first is byte {start} of the copy, at {where}"
            else:
                code, where = rules.UNREAD_ACCUMULATOR.code, f"column {least[1]}, lanes from {16 * least[2]}"
                text = f"{len({column for _, column, _ in mine})} of {size} columns, the first is {where}"
            self.expected.append((code, number, 100 + number, text + when, where))

    def _use(self, cells: list[Cell], *, writes: bool) -> None:
        if writes:
            self._end(cells, " before they are overwritten")
        for cell in cells:
            self.owners.pop(cell, None)

    def _own(self, cells: list[Cell], first: int, size: int) -> None:
        self.owners |= dict.fromkeys(cells, len(self.outputs))
        self.outputs.append((first, size))

    def _choose_bytes(self, size: int) -> Ints:
        """Return the first bytes of some runs of bytes of a CTA."""
        starts = self.choice.sample(range(0, SHARED_BYTES, size), self.choice.randint(1, 3))
        return np.array(sorted(starts)) + SHARED_BYTES * self.choice.randrange(SLOTS)

    def copy(self) -> None:
        size, number = self.choice.choice([4, 16, 32]), len(self.outputs)
        offsets = (self._choose_bytes(size)[:, None] + np.arange(size)).reshape(-1)
        if self.choice.random() < 0.1:
            offsets = offsets[:0]
        self.unread.record_copy(Place(None, str(number)), 100 + number, offsets, len(offsets) + 3)
        cells = self._list_bytes(offsets, 1)
        self._use(cells, writes=True)
        if cells:
            self._own(cells, int(offsets.min()), len(offsets) + 3)

    def _list_bytes(self, offsets: Ints, size: int) -> list[Cell]:
        return [divmod(offset + at, SHARED_BYTES) for offset in offsets.tolist() for at in range(size)]

    def access(self) -> None:
        size, kind = self.choice.choice([1, 4, 8]), self.choice.choice(["r", "w", "rw"])
        offsets = self._choose_bytes(size)
        self.unread.record_access(offsets, size, kind)
        self._use(self._list_bytes(offsets, size), writes=kind == "w")

    def read(self) -> None:
        """A copy from shared or global memory, or a product that reads granules."""
        starts, kind = self._choose_bytes(16), self.choice.randrange(3)
        if kind < 2:
            self.unread.record_read(Bytes([Space.SHARED, Space.GLOBAL][kind], starts, 16))
        else:
            self.unread.record_product_reads(Rows(starts[None] // 16, 1))
        if kind != 1:
            self._use(self._list_bytes(starts, 16), writes=False)

    def _choose_cells(self) -> tuple[Rows, list[Cell]]:
        """Return pairs of 16-lane parts of neighboring columns of tensor memory."""
        slot, first, part = self.choice.randrange(SLOTS), self.choice.choice([0, 8, 508]), self.choice.randrange(4)
        columns = range(first, first + self.choice.randint(1, 4))
        blocks = np.array([[(slot * 512 + column) * 4 + part for column in columns]])
        return Rows(blocks, 2), [(slot, column, 2 * part + at) for column in columns for at in range(2)]

    def multiply(self) -> None:
        """A product, or a copy into tensor memory, whose result need not be read."""
        (read, used), (written, cells) = self._choose_cells(), self._choose_cells()
        starts, is_product, number = self._choose_bytes(16), self.choice.random() < 0.7, len(self.outputs)
        self.unread.operate(
            Place(None, str(number)), 100 + number,
            [(Space.SHARED, Rows(starts[None] // 16, 1)), (Space.TENSOR, read)], [(Space.TENSOR, written)], is_product,
        )  # fmt: skip
        self._use([*self._list_bytes(starts, 16), *used], writes=False)
        self._use(cells, writes=True)
        if is_product:
            columns = {column for _, column, _ in cells}
            self._own(cells, min(columns), len(columns))

    def move(self) -> None:
        """Loads or stores of one or two warps."""
        count, lanes, stores = self.choice.randint(1, 4), self.choice.choice([8, 16, 32]), self.choice.random() < 0.4
        slots, firsts, lows = ([self.choice.choice(values) for _ in range(2)]
                               for values in ([0, 1], [0, 8, 508], [0, 16, 32, 96]))  # fmt: skip
        self.unread.move(np.array(slots), np.array(firsts), count, np.array(lows), lanes, stores=stores)
        cells = [
            (slot, column, part)
            for slot, first, low in zip(slots, firsts, lows, strict=True)
            for column in range(first, first + count)
            for part in range(low // 16, (low + lanes + 15) // 16)
        ]
        self._use(cells, writes=stores)

    def free(self) -> None:
        slot, first, count = self.choice.randrange(SLOTS), self.choice.choice([0, 8, 480]), self.choice.choice([4, 32])
        self.unread.free(slot, first, count)
        self._end(
            [(slot, column, part) for column in range(first, first + count) for part in range(8)],
            " before they are freed",
        )


@pytest.mark.parametrize("part", range(8))
def test_unread_outputs_are_those_of_cells_that_nobody_read(
    part: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = Execution(seed * 8 + part, monkeypatch)
    assert execution.found == execution.expected
    assert execution.found
