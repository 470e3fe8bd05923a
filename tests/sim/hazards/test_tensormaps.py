"""Tensor maps that overlapping grids change, acquire and use: the end of one grid changes nothing for the others."""

from __future__ import annotations

import pytest

from pyptx.diagnostics import Span
from pyptx.sim.hazards import Group, Hazards, Place, Scope
from pyptx.sim.hazards.state import Overlap

MAP, COPY = 1 << 20, 1


def _place(line: int) -> Place:
    return Place(Span(line, 1), f"line {line}")


class Grids:
    """An engine with three grids of one warp that run at the same time."""

    def __init__(self) -> None:
        self.engine = Hazards()
        self.grids = [
            self.engine.launch(_place(number), 32, overlap=Overlap.DEPENDENT if number else Overlap.NONE)
            for number in range(3)
        ]
        for number, grid in enumerate(self.grids):
            self.engine.start(grid, [0], [number])
        self.threads = [grid.first_thread for grid in self.grids]

    def end(self, number: int) -> None:
        self.engine.exit(Group(self.grids[number].list_threads(0)), _place(9))
        self.engine.finish(self.grids[number])

    def codes(self) -> list[str]:
        return [finding.rule.code for finding in self.engine.findings]


@pytest.mark.parametrize(("ended", "codes"), [([], ["PTX0926"]), ([0], []), ([1], ["PTX0926"]), ([1, 0], [])])
def test_the_end_of_a_grid_releases_its_own_changes(ended: list[int], codes: list[str]) -> None:
    grids = Grids()
    grids.engine.maps.replace(grids.threads[0], _place(5), MAP, set())
    for number in ended:
        grids.end(number)
    grids.engine.maps.acquire(grids.threads[2], MAP, Scope.SYS)
    grids.engine.maps.use(grids.threads[2], _place(6), MAP, COPY)
    assert grids.codes() == codes


@pytest.mark.parametrize("ended", [[], [0], [0, 1]])
def test_an_acquired_map_stays_so_when_another_grid_ends(ended: list[int]) -> None:
    grids = Grids()
    grids.engine.maps.acquire(grids.threads[2], MAP, Scope.SYS)
    for number in ended:
        grids.end(number)
    grids.engine.maps.use(grids.threads[2], _place(6), MAP, COPY)
    assert grids.codes() == []


@pytest.mark.parametrize(("flying", "codes"), [(set[int](), []), ({COPY}, ["PTX0927"])])
def test_a_map_in_use_stays_so_when_another_grid_ends(flying: set[int], codes: list[str]) -> None:
    grids = Grids()
    grids.engine.maps.acquire(grids.threads[2], MAP, Scope.SYS)
    grids.engine.maps.use(grids.threads[2], _place(6), MAP, COPY)
    grids.end(0)
    grids.engine.maps.replace(grids.threads[2], _place(7), MAP, flying)
    assert grids.codes() == codes


def test_a_finding_of_a_map_names_its_address_and_its_last_edit() -> None:
    grids = Grids()
    maps, thread = grids.engine.maps, grids.threads[1]
    maps.replace(thread, _place(5), MAP, set())
    maps.use(thread, _place(6), MAP, 1)
    maps.release(MAP)
    maps.use(thread, _place(7), MAP, 2)
    maps.acquire(thread, MAP, Scope.GPU)
    maps.use(thread, _place(8), MAP, 3)
    maps.replace(thread, _place(9), MAP, {2, 4})
    maps.replace(thread, _place(10), MAP, {2})
    maps.release_edits([thread + 1])
    maps.use(thread, _place(11), MAP, 5)
    maps.release_edits([thread, thread + 1])
    maps.acquire(grids.threads[2], MAP, Scope.GPU)
    maps.use(grids.threads[2], _place(12), MAP, 6)
    maps.acquire(thread, MAP, Scope.GPU)
    maps.use(thread, _place(13), MAP, 7)
    maps.use(thread, _place(14), MAP + 128, 8)
    what, other = "the map at 0x100000", "the map at 0x100080"
    assert [
        (found.rule.code, found.what, found.place.line, found.other and found.other.line)
        for found in grids.engine.findings
    ] == [
        ("PTX0926", what, 6, 5), ("PTX0925", what, 7, 5), ("PTX0927", what, 9, 7), ("PTX0926", what, 11, 10),
        ("PTX0925", what, 12, 10), ("PTX0925", other, 14, None),
    ]  # fmt: skip


def test_a_cta_acquires_a_map_of_the_host_for_itself_with_the_scope_of_the_system() -> None:
    grids = Grids()
    thread, use = grids.threads[2], grids.engine.maps.use
    grids.engine.maps.acquire(thread, MAP, Scope.GPU)
    use(thread, _place(5), MAP, 1)
    grids.engine.maps.acquire(thread, MAP, Scope.SYS)
    use(thread, _place(6), MAP, 2)
    use(grids.threads[1], _place(7), MAP, 3)
    grids.engine.exit(Group(grids.grids[2].list_threads(0)), _place(8))
    grids.engine.start(grids.grids[2], [0], [9])
    use(thread, _place(9), MAP, 4)
    assert [(found.rule.code, found.place.line) for found in grids.engine.findings] == [
        ("PTX0925", line) for line in (5, 7, 9)
    ]
