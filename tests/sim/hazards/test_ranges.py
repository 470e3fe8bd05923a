"""The ranges of memory that runs accessed: against sets of bytes, and for kernels that access memory in all ways."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.parser import parse
from pyptx.sim.hazards.ranges import AccessedMemory, Ranges
from pyptx.sim.launch.hosted import LoadedModule, Outcome, run_in_place
from pyptx.sim.launch.prepared import Options
from pyptx.sim.observers.checks import parse_choice
from pyptx.sim.state.address_space import AddressSpace

Runs = list[tuple[int, int]]
runs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=6)


def make_ranges(runs: Runs) -> Ranges:
    starts, sizes = (np.array([run[at] for run in runs], np.int64) for at in (0, 1))
    return Ranges.merge(starts, sizes, np.arange(len(runs)))


def access(kind: str, runs: Runs) -> AccessedMemory:
    ranges = make_ranges(runs)
    nobody = replace(ranges, sources=np.full_like(ranges.sources, -1))
    return replace(AccessedMemory(), **{kind: nobody})


def list_bytes(runs: Runs) -> set[int]:
    return {byte for start, size in runs for byte in range(start, start + size)}


def expand(ranges: Ranges) -> list[int]:
    return [
        byte for start, end in zip(ranges.starts.tolist(), ranges.ends.tolist(), strict=True)
        for byte in range(start, end)
    ]  # fmt: skip


@given(runs)
def test_merged_ranges_contain_each_byte_once_and_name_an_access_of_it(runs: Runs) -> None:
    ranges = make_ranges(runs)
    assert expand(ranges) == sorted(list_bytes(runs))
    triples = zip(ranges.starts.tolist(), ranges.ends.tolist(), ranges.sources.tolist(), strict=True)
    assert all(set(range(start, end)) <= list_bytes([runs[source]]) for start, end, source in triples)


def test_adjacent_ranges_of_one_access_are_one() -> None:
    ranges = Ranges.merge(np.array([8, 0, 4, 16]), 4, np.array([1, 1, 1, 1]))
    assert (ranges.starts.tolist(), ranges.ends.tolist()) == ([0, 16], [12, 20])
    assert len(Ranges.merge(np.array([0, 4]), 4, np.array([0, 1])).starts) == 2


@given(runs, runs)
def test_an_overlap_is_found_where_sets_of_bytes_meet(mine: Runs, theirs: Runs) -> None:
    common = list_bytes(mine) & list_bytes(theirs)
    overlap = access("writes", mine).find_conflict(access("reads", theirs))
    assert (overlap is not None) == bool(common)
    if overlap is not None:
        assert set(range(overlap.start, overlap.end)) <= common
        assert overlap.start == min(common)
        assert (overlap.writes, overlap.other_writes) == (True, False)


@given(runs, st.lists(runs, max_size=3))
def test_subtracted_ranges_are_those_that_meet_no_other(mine: Runs, others: list[Runs]) -> None:
    ours, bytes = make_ranges(mine), {byte for runs in others for byte in list_bytes(runs)}
    kept = ours.subtract([make_ranges(runs) for runs in others])
    parts = zip(ours.starts.tolist(), ours.ends.tolist(), strict=True)
    expected = [(start, end) for start, end in parts if not bytes & set(range(start, end))]
    assert list(zip(kept.starts.tolist(), kept.ends.tolist(), strict=True)) == expected


KINDS = ("reads", "writes", "strong_reads", "strong_writes")


@pytest.mark.parametrize("mine", KINDS)
@pytest.mark.parametrize("theirs", KINDS)
def test_two_reads_and_two_strong_accesses_do_not_conflict(mine: str, theirs: str) -> None:
    overlap = access(mine, [(0, 4)]).find_conflict(access(theirs, [(0, 4)]))
    is_strong, writes = "strong" in mine and "strong" in theirs, "writes" in mine + theirs
    assert (overlap is not None) == (writes and not is_strong)
    if overlap is not None:
        assert (overlap.writes, overlap.other_writes) == ("writes" in mine, "writes" in theirs)


ACCESSES = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry touch(.param .u64 data)
{
    .reg .b16 %h<2>;
    .reg .b32 %r<6>;
    .reg .b64 %rd<6>;
    .shared .align 16 .b8 buffer[64];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 8;
    add.u64 %rd3, %rd1, %rd2;
    BODY
    ret;
}
"""


def touch(body: str) -> tuple[Outcome, int]:
    """Run a kernel of 64 threads; return its outcome and the address of its data."""
    space, data = AddressSpace(), np.zeros(2048, np.uint8)
    region = space.allocate("data", data)
    loaded = LoadedModule.load(parse(ACCESSES.replace("BODY", body)), space, lambda size, alignment: (0, data))
    options = Options(grid=(1, 1, 1), block=(64, 1, 1), parameters=region.low.to_bytes(8, "little"))
    outcome = run_in_place(loaded, "touch", options, parse_choice("all", "report"))
    assert outcome.error is None
    return outcome, region.low


LOOP = """\
mov.u32 %r2, 0;
    AGAIN: ld.global.u32 %r3, [%rd3]; st.global.u16 [%rd3 + 512], %r2; add.u32 %r2, %r2, 1;
    .reg .pred %p; setp.lt.u32 %p, %r2, 6; @%p bra AGAIN;"""


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        ("ld.global.u32 %r2, [%rd3];", "reads", [(8 * lane, 4) for lane in range(64)]),
        ("ld.global.u32 %r2, [%rd1 + 20];", "reads", [(20, 4)]),
        ("ld.global.v2.u32 {%r2, %r3}, [%rd3]; ld.global.u8 %h1, [%rd3];", "reads", [(0, 512)]),
        ("st.global.u8 [%rd3 + 3], %r1;", "writes", [(8 * lane + 3, 1) for lane in range(64)]),
        ("st.global.u64 [%rd3], %rd2; ld.global.u64 %rd4, [%rd3];", "writes", [(0, 512)]),
        ("ld.global.u64 %rd4, [%rd3]; st.global.u64 [%rd3], %rd2;", "writes", [(0, 512)]),
        ("atom.global.add.u32 %r2, [%rd1], 1;", "strong_writes", [(0, 4)]),
        ("red.release.cta.global.add.u32 [%rd1], 1;", "writes", [(0, 4)]),
        ("ld.acquire.gpu.global.u32 %r2, [%rd1 + 4];", "strong_reads", [(4, 4)]),
        ("ld.relaxed.cta.global.u32 %r2, [%rd1 + 4];", "reads", [(4, 4)]),
        ("cp.async.ca.shared.global [buffer], [%rd1 + 16], 16; cp.async.wait_all;", "reads", [(16, 16)]),
        (LOOP, "writes", [(512 + 8 * lane, 2) for lane in range(64)]),
        (LOOP, "reads", [(8 * lane, 4) for lane in range(64)]),
    ],
)  # fmt: skip
def test_the_memory_that_a_kernel_accessed(body: str, kind: str, expected: Runs) -> None:
    outcome, low = touch(body)
    ranges = getattr(outcome.find_accessed_memory(), kind)
    assert expand(ranges) == sorted(byte + low for byte in list_bytes(expected))


def test_many_reads_of_the_same_places_take_little_memory() -> None:
    loop = "mov.u32 %r2, 0; AGAIN: ld.global.u32 %r3, [%rd1]; add.u32 %r2, %r2, 1;"
    outcome, low = touch(loop + " .reg .pred %p; setp.lt.u32 %p, %r2, 4000; @%p bra AGAIN;")
    tracemalloc.start()
    ranges = outcome.find_accessed_memory().reads
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert expand(ranges) == list(range(low, low + 4))
    assert peak < 4 << 20, "64 threads read one word 4000 times"
