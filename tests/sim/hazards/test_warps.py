"""Rules of convergence, tensor-memory allocation and reports: one case per rule."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from pyptx.diagnostics import Span
from pyptx.sim.base.events import Ints
from pyptx.sim.hazards import Group, Hazards, Place, Space, load, show, store
from pyptx.sim.hazards.state import Grid
from pyptx.sim.rules import REMEDIES, RULES

WARP = np.arange(32)
FULL = 0xFFFFFFFF
Act = Callable[[Hazards, Grid], object]


def place(line: int = 1) -> Place:
    return Place(Span(line, 1), f"line {line}")


def group(threads: object) -> Group:
    return Group(np.asarray(threads, np.int64))


def masks(value: int, count: int = 32) -> np.ndarray:
    return np.full(count, value, np.int64)


def _allocate(engine: Hazards) -> Hazards:
    engine.tensor.alloc(group(WARP), place(), 0, 32)
    return engine


def _mix_kinds(engine: Hazards) -> None:
    engine.barriers.bar(group(WARP), place(1), 1, 96, "sync")
    engine.barriers.bar(group(WARP + 32), place(2), 1, 96, "red")


def _increase_registers(engine: Hazards) -> None:
    engine.warps.setmaxnreg(group(np.arange(128)), place(), 240, True, 168, 168 * 256)


def _exit(engine: Hazards, threads: object) -> None:
    engine.exit(group(threads), place())


CASES: list[tuple[str, Act]] = [
    ("", lambda e, g: e.warps.check_aligned(group(WARP), place())),
    ("PTX0960", lambda e, g: e.warps.check_aligned(group(WARP[:16]), place())),
    ("", lambda e, g: e.warps.check_members(group(WARP), place(), masks(FULL))),
    ("PTX0961", lambda e, g: e.warps.check_members(group(WARP), place(), masks(0xFFFF))),
    ("PTX0960", lambda e, g: e.warps.check_members(group(WARP[:16]), place(), masks(FULL, 16))),
    ("", lambda e, g: e.warps.check_sources(group(WARP), place(), WARP[::-1].copy(), masks(FULL))),
    ("PTX0962", lambda e, g: e.warps.check_sources(group(WARP[:16]), place(), WARP[:16] + 16, masks(FULL, 16))),
    ("", lambda e, g: e.warps.check_elect(group(WARP), place(), FULL)),
    ("PTX0966", lambda e, g: e.warps.check_elect(group(WARP[:8]), place(), FULL)),
    ("", lambda e, g: e.warps.setmaxnreg(group(np.arange(128)), place(), 40, False, 168, 168 * 256)),
    ("PTX0965", lambda e, g: e.warps.setmaxnreg(group(np.arange(128)), place(), 200, False, 168, 168 * 256)),
    ("PTX0965", lambda e, g: e.warps.setmaxnreg(group(np.arange(128)), place(), 44, False, 168, 168 * 256)),
    ("", lambda e, g: e.warps.setmaxnreg(group(np.arange(128)), place(), 240, True, 168, 168 * 256)),
    ("PTX0965", lambda e, g: (_increase_registers(e), _exit(e, np.arange(256)))),
    ("PTX0911", lambda e, g: e.warps.report_uninitialized(group(WARP), place(), ["%r1"])),
    ("PTX0963", lambda e, g: (_exit(e, WARP[16:]), e.barriers.warp_sync(group(WARP[:16]), place(), FULL))),
    ("PTX0961", lambda e, g: e.barriers.warp_sync(group(WARP), place(), 0xFF)),
    ("PTX0970", lambda e, g: e.barriers.bar(group(WARP), place(), 16, 64, "sync")),
    ("PTX0970", lambda e, g: e.barriers.bar(group(WARP), place(), 1, 48, "sync")),
    ("PTX0971", lambda e, g: _mix_kinds(e)),
    ("PTX0946", lambda e, g: e.tensor.alloc(group(WARP), place(), 0, 48)),
    ("", lambda e, g: e.tensor.alloc(group(WARP), place(), 0, 96, exclusive=True)),
    ("PTX0946", lambda e, g: e.tensor.alloc(group(WARP[:1]), place(), 0, 32)),
    ("PTX0946", lambda e, g: [e.tensor.alloc(group(WARP), place(c), c, c) for c in (64, 128)]),
    ("PTX0946", lambda e, g: (e.tensor.relinquish(group(WARP)), e.tensor.alloc(group(WARP), place(), 0, 32))),
    ("PTX0947", lambda e, g: e.tensor.dealloc(group(WARP), place(), 0, 32)),
    ("PTX0948", lambda e, g: _allocate(e).tensor.move(group(WARP), place(2), 0, 32, 32, 32, stores=True)),
    ("PTX0945", lambda e, g: e.tensor.move(group(WARP), place(), 0, 32, 0, 32, stores=True)),
    ("PTX0949", lambda e, g: [e.tensor.alloc(group(WARP), place(), 32 * n, 32, n) for n in (1, 2)]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "act"), CASES, ids=[f"{i} {code or 'clean'}" for i, (code, _) in enumerate(CASES)])
def test_a_rule_is_reported_by_its_code(code: str, act: Act) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 256, shared_bytes=1024, tensor=True)
    engine.start(grid, [0], [0])
    act(engine, grid)
    assert sorted({finding.rule.code for finding in engine.findings}) == ([code] if code else [])


@pytest.mark.parametrize(("count", "warps"), [(None, 2), (32, 1)])
@pytest.mark.parametrize("number", [-1, 0, 15, 16])
def test_ctas_have_16_barriers(number: int, count: int | None, warps: int) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 64, slots=2)
    engine.start(grid, range(2), range(2))
    threads = np.concatenate([grid.list_threads(slot)[: 32 * warps] for slot in range(2)])
    assert engine.barriers.bar(group(threads), place(), number, count, "sync") == threads.tolist()
    assert {finding.rule.code for finding in engine.findings} == (set() if 0 <= number < 16 else {"PTX0970"})


def test_remote_barriers_and_absent_peers() -> None:
    engine = Hazards()
    grid = engine.launch(place(), 32, slots=4, cluster=2, shared_bytes=64)
    engine.start(grid, range(4), range(4))
    engine.access(store(place(2), Space.SHARED, 4), group([0]), np.array([grid.find_shared_base(2)]))
    engine.mbarriers.init(grid.find_thread(1), place(3), grid.find_shared_base(1), 1)
    for slot in range(2):
        engine.barriers.cluster_arrive(group(grid.list_threads(slot)), place(4))
    for slot in range(2):
        engine.barriers.cluster_wait(group(grid.list_threads(slot)), place(5))
    engine.mbarriers.arrive(group([0]), place(6), grid.find_shared_base(1))
    engine.mbarriers.wait(group([0]), place(7), grid.find_shared_base(1), 0)
    assert {"PTX0984", "PTX0958"} == {finding.rule.code for finding in engine.findings}


def _race() -> Hazards:
    engine = Hazards()
    grid = engine.launch(place(), 64, shared_bytes=1024)
    engine.start(grid, [0], [3])
    engine.access(store(place(2), Space.SHARED, 4), group(WARP), WARP * 4 + 256)
    engine.access(load(place(3), Space.SHARED, 4), group(WARP + 32), WARP * 4 + 256)
    return engine


def test_a_finding_shows_both_places_the_bytes_the_rule_and_the_remedy() -> None:
    text = show(_race().findings)
    for part in (
        "<ptx>:3:1: error[PTX0901]: data race: reads 4 bytes at shared 0x100 of CTA 3 after an earlier write (32 "
        "times)",
        "note: first by CTA 3 warp 1 lane 0; the other place: `line 2` at <ptx>:2:1, by CTA 3 warp 0 lane 0",
        "Memory Consistency Model",
        "help: order the accesses",
    ):
        assert part in text


def test_a_finding_as_json() -> None:
    (finding,) = _race().findings
    value = json.loads(json.dumps(finding.as_json()))
    assert (value["code"], value["line"], value["count"]) == ("PTX0901", 3, 32)
    assert value["other"]["line"] == 2
    assert value["agent"] == {"cta": 3, "warp": 1, "lane": 0, "engine": None}


def test_codes_are_unique_and_every_rule_has_a_remedy() -> None:
    assert len({rule.code for rule in RULES}) == len(RULES)
    assert all(rule.code.startswith("PTX09") and rule.why and REMEDIES[rule.code] for rule in RULES)


@pytest.mark.parametrize("together", [False, True], ids=["one by one", "together"])
def test_moves_of_several_warps_are_compared_and_recorded(together: bool) -> None:
    engine = Hazards()
    grid = engine.launch(place(), 128, tensor=True)
    engine.start(grid, [0], [0])
    engine.tensor.alloc(group(WARP), place(1), 0, 32)
    engine.barriers.bar(group(np.arange(128)), place(2), 0, 128, "sync")
    groups, lanes = [group(WARP + 32 * warp) for warp in range(4)], 32 * np.arange(4)

    def move(line: int, first: int, *, stores: bool) -> None:
        columns = np.full(4, first)
        if together:
            engine.tensor.move_all(groups, place(line), columns, 8, lanes, 32, stores=stores)
            return
        for warp, lane in zip(groups, lanes.tolist(), strict=True):
            engine.tensor.move(warp, place(line), first, 8, lane, 32, stores=stores)

    move(3, 0, stores=True)
    move(4, 8, stores=True)
    assert not [*engine.findings]
    move(5, 4, stores=False)
    found = {
        (finding.rule.code, finding.place.text, finding.other and finding.other.text) for finding in engine.findings
    }
    assert found == {("PTX0939", "line 5", "line 3"), ("PTX0939", "line 5", "line 4")}


def _start_second_grid() -> tuple[Hazards, Ints, list[Group]]:
    """Return an engine, and the threads and the warps of a CTA of eight warps that an earlier grid precedes."""
    engine = Hazards()
    engine.finish(engine.launch(place(), 96))
    grid = engine.launch(place(), 256, slots=2)
    engine.start(grid, [0, 1], [4, 5])
    threads = grid.list_threads(1)
    return engine, threads, [group(part) for part in threads.reshape(-1, 32)]


def _describe(engine: Hazards) -> list[tuple[str, str, str, int]]:
    return [(finding.rule.code, finding.what, str(finding.agent), finding.count) for finding in engine.findings]


def test_findings_of_warps_name_lanes_and_masks() -> None:
    engine, threads, (_, warp, *_) = _start_second_grid()
    _exit(engine, threads[60:64])
    alive, low = warp[[*range(28)]], warp[[*range(4, 12)]]
    engine.warps.check_aligned(alive, place(1))
    engine.warps.check_aligned(low, place(1))
    engine.warps.check_members(low, place(2), masks(0x0FF0, 8))
    engine.warps.check_members(low, place(3), masks(0xF0000FC0, 8))
    engine.warps.check_members(low, place(4), np.array([*masks(0xFF0, 5), *masks(0x1FF0, 3)]))
    engine.warps.check_members(low, place(5), masks(0x1FF0, 8), warp[[*range(4, 13)]])
    engine.warps.check_sources(low, place(6), np.array([4, 5, 6, 7, 11, 12, 3, 36]), masks(0xFF0, 8))
    engine.warps.check_sources(low, place(7), masks(5, 8), masks(0xFD0, 8))
    engine.warps.check_elect(low, place(8), 0xFF0)
    engine.warps.check_elect(low, place(9), 0xFF8)
    engine.warps.check_elect(alive, place(10), FULL)
    agent = "CTA 5 warp 1 lane"
    assert _describe(engine) == [
        ("PTX0960", "lanes 0x0ffff00f do not execute this instruction", f"{agent} 11", 1),
        ("PTX0961", "lane 4 with mask 0xf0000fc0", f"{agent} 4", 2),
        ("PTX0960", "mask 0x00001ff0 includes lanes that do not execute this instruction", f"{agent} 9", 3),
        ("PTX0962", "lane 9 reads lane 12", f"{agent} 9", 2),
        ("PTX0962", "lane 4 reads lane 5", f"{agent} 4", 8),
        ("PTX0966", "mask 0x00000ff8, executing 0x00000ff0", f"{agent} 11", 1),
    ]


def test_operands_that_differ_are_counted_by_warp() -> None:
    engine, threads, _ = _start_second_grid()
    values = np.full(128, 16)
    engine.warps.check_uniform(group(threads[:128]), place(1), values, "stride")
    engine.warps.check_uniform(group(threads[:128]), place(2), values + np.arange(128) // 32, "stride")
    values[[40, 41, 96 + 31]] = 20
    engine.warps.check_uniform(group(threads[:128]), place(3), values, "stride")
    engine.warps.check_uniform(group(threads[:128]), place(4), values, "row", np.arange(128) // 64 * 64 + 40)
    assert _describe(engine) == [
        ("PTX0968", "stride 0x14, in the first lane 0x10", "CTA 5 warp 1 lane 8", 2),
        ("PTX0968", "row 0x10, in the first lane 0x14", "CTA 5 warp 0 lane 0", 3),
    ]


@pytest.mark.parametrize(
    ("count", "increases", "entry", "words"),
    [
        (24, False, 168, ""), (256, True, 168, ""), (168, True, 168, ""), (168, False, 168, ""), (40, True, None, ""),
        (16, False, 168, ".dec from 168 to 16"), (264, True, 168, ".inc from 168 to 264"),
        (28, False, 168, ".dec from 168 to 28"), (160, True, 168, ".inc from 168 to 160"),
        (176, False, 168, ".dec from 168 to 176"), (20, False, None, ".dec from the count at entry to 20"),
    ],
)  # fmt: skip
def test_setmaxnreg_takes_multiples_of_8_in_its_direction(
    count: int, increases: bool, entry: int | None, words: str
) -> None:
    engine, _, (_, warp, *_) = _start_second_grid()
    engine.warps.setmaxnreg(warp, place(), count, increases, entry)
    assert _describe(engine) == ([("PTX0965", words, "CTA 5 warp 1 lane 0", 1)] if words else [])


@pytest.mark.parametrize(("grown", "words"), [(200, ""), (208, "the CTA's warps request 34816 of 33792 registers")])
def test_a_cta_has_the_registers_of_its_entry(grown: int, words: str) -> None:
    engine, threads, _ = _start_second_grid()
    for first, count in ((0, 64), (128, grown)):
        engine.warps.setmaxnreg(group(threads[first : first + 128]), place(), count, bool(first), 132, 132 * 256)
    _exit(engine, threads)
    assert _describe(engine) == ([("PTX0965", words, "CTA 5 warp 0 lane 0", 1)] if words else [])


def test_the_warps_of_a_warpgroup_request_the_same_registers() -> None:
    engine, threads, warps = _start_second_grid()
    for index in (0, 1, 2, 3, 4, 5, 7):
        engine.warps.setmaxnreg(warps[index], place(index), 40, False, 168)
    _exit(engine, threads)
    words = "its warps requested [40], [40], nothing, [40]"
    assert _describe(engine) == [("PTX0964", words, "CTA 5 warp 4 lane 0", 1)]


def test_a_warp_that_requests_registers_again_waits_for_its_warpgroup() -> None:
    engine, threads, warps = _start_second_grid()
    for index in (4, 5, 6, 7, 5):
        engine.warps.setmaxnreg(warps[index], place(index), 40, False, 168)
    engine.barriers.bar(group(threads[128:]), place(), 1, 128, "sync")
    engine.warps.setmaxnreg(warps[6], place(8), 32, False, 168)
    engine.warps.setmaxnreg(warps[6], place(8), 24, False, 168)
    words = "warp {} of the CTA {}".format
    late, absent = "may not have executed the previous one yet", "has not reached the previous one"
    agent = "CTA 5 warp {} lane 0".format
    assert [(*row, str(found.other)) for row, found in zip(_describe(engine), engine.findings, strict=True)] == [
        ("PTX0974", words(4, late), agent(5), 1, str(place(4))),
        ("PTX0969", words(4, absent), agent(6), 1, "None"),
    ]
