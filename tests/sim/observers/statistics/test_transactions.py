"""Bank conflicts and coalescing, compared with counts by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.parts.example import find_example
from pyptx import sim
from pyptx.parser import parse
from pyptx.sim.observers.statistics.report import LineAccess
from pyptx.sim.observers.statistics.transactions import count_sectors, count_wavefronts

HEAD = """\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %t, %a, %x<4>, %y<4>;
    .reg .b64 %d, %w;
    .reg .pred %p;
    .shared .align 1024 .b8 box[16384];
    ld.param.u64 %d, [data];
    mov.u32 %t, %tid.x;
    mov.u32 %a, box;
"""


def count_accesses(body: str, space: str = "shared", threads: int = 32) -> LineAccess:
    """Run a body and return the counts of its last instruction that accesses a space."""
    text = f"{HEAD}{body}\n    ret;\n}}\n"
    args = [np.zeros(1 << 16, "u4")]
    stats = sim.run(parse(text), block=threads, args=args, check="none", statistics=True).stats.statistics
    assert stats is not None
    return [item for item in stats.accesses if item.space == space][-1]


CONFLICTS: dict[str, tuple[str, int, int, float]] = {
    # body, wavefronts of the warp, ideal
    "neighbors": ("mad.lo.u32 %a, %t, 4, %a;\nld.shared.f32 %x0, [%a];", 1, 1, 1.0),
    "every second word: 2-way": ("mad.lo.u32 %a, %t, 8, %a;\nld.shared.f32 %x0, [%a];", 2, 1, 2.0),
    "every fourth word: 4-way": ("mad.lo.u32 %a, %t, 16, %a;\nst.shared.f32 [%a], %x0;", 4, 1, 4.0),
    "a column of 32 x 32: 32-way": ("mad.lo.u32 %a, %t, 128, %a;\nld.shared.f32 %x0, [%a];", 32, 1, 32.0),
    "a column of 32 x 33: padded, free": ("mad.lo.u32 %a, %t, 132, %a;\nld.shared.f32 %x0, [%a];", 1, 1, 1.0),
    "one word for all: broadcast": ("ld.shared.f32 %x0, [%a];", 1, 1, 1.0),
    "two words of one bank": ("and.b32 %t, %t, 1;\nmad.lo.u32 %a, %t, 128, %a;\nld.shared.f32 %x0, [%a];", 2, 1, 2.0),
    "halves of words": ("mad.lo.u32 %a, %t, 2, %a;\nld.shared.u16 %x0, [%a];", 1, 1, 1.0),
    "8 bytes each: two halves": ("mad.lo.u32 %a, %t, 8, %a;\nld.shared.v2.f32 {%x0, %x1}, [%a];", 2, 2, 1.0),
    "8 bytes each, 16 apart": ("mad.lo.u32 %a, %t, 16, %a;\nld.shared.v2.f32 {%x0, %x1}, [%a];", 4, 2, 2.0),
    "16 bytes each: four quarters": (
        "mad.lo.u32 %a, %t, 16, %a;\nld.shared.v4.f32 {%x0, %x1, %x2, %x3}, [%a];", 4, 4, 1.0,
    ),
    "16 bytes each, rows of 128": (
        "mad.lo.u32 %a, %t, 128, %a;\nst.shared.v4.f32 [%a], {%x0, %x1, %x2, %x3};", 32, 4, 8.0,
    ),
    "ldmatrix, rows of 128 bytes: 8-way": (
        "mad.lo.u32 %a, %t, 128, %a;\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x0, %x1, %x2, %x3}, [%a];", 32, 4,
        8.0,
    ),
    "ldmatrix, rows of 128 bytes, 128B swizzle: free": (
        "and.b32 %x0, %t, 7;\nshl.b32 %x0, %x0, 4;\nmad.lo.u32 %a, %t, 128, %a;\nxor.b32 %a, %a, %x0;\n"
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%x0, %x1, %x2, %x3}, [%a];", 4, 4, 1.0,
    ),
    "ldmatrix of one matrix": (
        "mad.lo.u32 %a, %t, 16, %a;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%x0}, [%a];", 1, 1, 1.0,
    ),
    "stmatrix, rows of 64 bytes: 4-way": (
        "mad.lo.u32 %a, %t, 64, %a;\nstmatrix.sync.aligned.m8n8.x4.shared.b16 [%a], {%x0, %x1, %x2, %x3};", 16, 4, 4.0,
    ),
}  # fmt: skip


def widen_load(body: str) -> str:
    """Return a body in which a 16-bit load has a register of its own size."""
    return body.replace("ld.shared.u16 %x0", "ld.shared.u16 %h").replace(
        "mad.lo.u32 %a, %t, 2", ".reg .b16 %h;\nmad.lo.u32 %a, %t, 2"
    )


@pytest.mark.parametrize(("body", "pieces", "ideal", "factor"), list(CONFLICTS.values()), ids=list(CONFLICTS))
def test_wavefronts_of_shared_memory(body: str, pieces: int, ideal: int, factor: float) -> None:
    access = count_accesses(widen_load(body))
    assert (access.requests, access.pieces, access.ideal, access.factor) == (1, pieces, ideal, factor)
    assert access.most == pieces


COALESCING: dict[str, tuple[str, int, int]] = {
    "neighbors: 128 bytes": ("mad.wide.u32 %w, %t, 4, %d;\nld.global.f32 %x0, [%w];", 4, 4),
    "every second word": ("mad.wide.u32 %w, %t, 8, %d;\nld.global.f32 %x0, [%w];", 8, 4),
    "a sector for each": ("mad.wide.u32 %w, %t, 1024, %d;\nst.global.f32 [%w], %x0;", 32, 4),
    "one word for all": ("ld.global.f32 %x0, [%d];", 1, 1),
    "one word too far": ("mad.wide.u32 %w, %t, 4, %d;\nld.global.f32 %x0, [%w+4];", 5, 4),
    "16 bytes each": ("mad.wide.u32 %w, %t, 16, %d;\nld.global.v4.f32 {%x0, %x1, %x2, %x3}, [%w];", 16, 16),
    "bytes": (".reg .b16 %h;\nmad.wide.u32 %w, %t, 1, %d;\nld.global.u8 %h, [%w];", 1, 1),
}


@pytest.mark.parametrize(("body", "pieces", "ideal"), list(COALESCING.values()), ids=list(COALESCING))
def test_sectors_of_global_memory(body: str, pieces: int, ideal: int) -> None:
    access = count_accesses(body, "global")
    assert (access.requests, access.pieces, access.ideal) == (1, pieces, ideal)


def test_guarded_lanes_are_not_counted() -> None:
    access = count_accesses("setp.lt.u32 %p, %t, 8;\nmad.lo.u32 %a, %t, 128, %a;\n@%p ld.shared.f32 %x0, [%a];")
    assert (access.requests, access.pieces, access.ideal, access.bytes) == (1, 8, 1, 32)


def test_warps_and_ctas_are_apart() -> None:
    text = f"{HEAD}    mad.lo.u32 %a, %t, 8, %a;\n    ld.shared.f32 %x0, [%a];\n    ret;\n}}\n"
    result = sim.run(parse(text), grid=3, block=128, args=[np.zeros(4, "u4")], check="none", statistics=True)
    assert result.stats.statistics is not None
    access = result.stats.statistics.at(14, "shared")
    assert (access.requests, access.pieces, access.ideal, access.most) == (12, 24, 12, 2)
    with pytest.raises(KeyError, match="line 13 does not access shared"):
        result.stats.statistics.at(13, "shared")


def slow_wavefronts(offsets: list[int], size: int) -> int:
    """Count by the manual's rule: in phases of lanes that access 128 bytes together, words per bank."""
    lanes = 32 // max(1, size // 4)
    total = 0
    for first in range(0, 32, lanes):
        words = {w for o in offsets[first : first + lanes] for w in range(o // 4, (o + max(size, 4)) // 4)}
        total += max(sum(w % 32 == bank for w in words) for bank in range(32))
    return total


PLACES: dict[str, Callable[[int], int]] = {
    "mul.lo.u32 %x0, %t, %t;": lambda t: t * t, "mul.lo.u32 %x0, %t, 3;": lambda t: 3 * t,
    "shr.u32 %x0, %t, 1;": lambda t: t >> 1, "and.b32 %x0, %t, 31;": lambda t: t & 31,
}  # fmt: skip


@pytest.mark.parametrize("address_code", list(PLACES))
def test_many_warps_equal_each_warp_by_itself(address_code: str) -> None:
    body = f"{address_code}\nand.b32 %x0, %x0, 4095;\nmad.lo.u32 %a, %x0, 4, %a;\nld.shared.f32 %x1, [%a];"
    places = [(PLACES[address_code](t) & 4095) * 4 for t in range(256)]
    wavefronts = [slow_wavefronts(places[first : first + 32], 4) for first in range(0, 256, 32)]
    access = count_accesses(body, threads=256)
    assert (access.requests, access.pieces, access.ideal, access.most) == (8, sum(wavefronts), 8, max(wavefronts))


@given(st.sampled_from([1, 2, 4, 8, 16]), st.lists(st.integers(0, 255), min_size=32, max_size=32))
def test_wavefronts_equal_a_count_bank_by_bank(size: int, places: list[int]) -> None:
    offsets = np.array(places) * size
    lines = np.zeros(32, np.int64)
    count, ideal, most = count_wavefronts(offsets, lines, np.arange(32), size)
    assert count == most == slow_wavefronts(offsets.tolist(), size)
    assert ideal == max(1, size // 4)
    repeated = np.concatenate([offsets, offsets])
    two_lines = count_wavefronts(repeated, np.repeat([3, 9], 32), np.tile(np.arange(32), 2), size)
    assert two_lines == (2 * count, 2 * ideal, most)


@given(st.sampled_from([1, 4, 16]), st.lists(st.integers(0, 300), min_size=1, max_size=32))
def test_sectors_equal_a_set_of_sectors(size: int, places: list[int]) -> None:
    offsets = np.array(places) * size
    count, ideal, _ = count_sectors(offsets, np.zeros(len(places), np.int64), size)
    assert count == len({o // 32 for o in offsets.tolist()})
    assert ideal == -(-len(set(places)) * size // 32)


def test_the_swizzled_transpose_is_free_of_conflicts() -> None:
    kernel = find_example("any/transpose").make()
    matrix = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    counts = kernel.simulate(matrix, statistics=True).stats.statistics
    assert counts is not None
    assert counts.conflicts == ()
    assert counts.uncoalesced == ()
    lines = {Path(name).name for name, _ in counts.by_source("shared")}
    assert lines == {"02_transpose.py"}
    assert all(requests == ideal for requests, ideal in counts.by_source("shared").values())
    assert all(requests == ideal for requests, ideal in counts.by_source("global").values())
    pieces = sum(requests for requests, _ in counts.by_source("global").values())
    assert pieces == 2 * 64 * 96 * 4 // 32


def test_the_tiles_of_the_hopper_gemm_are_stored_without_conflicts() -> None:
    import ml_dtypes

    random = np.random.default_rng(0)
    a, b = (random.standard_normal((rows, 128)).astype(ml_dtypes.bfloat16) for rows in (256, 256))
    counts = (
        find_example("hopper/cluster_gemm").make().simulate(a, b, statistics=True, schedule="lazy").stats.statistics
    )
    assert counts is not None
    assert counts.conflicts == ()
    assert counts.tensor_flops == 2 * 256 * 256 * 128
    assert counts.bytes["TMA stores"] == 256 * 256 * 2
    # Two CTAs: each loads its rows of a and half of the rows of b, which it multicasts.
    assert counts.bytes["TMA loads"] == (256 + 256) * 128 * 2
    assert counts.overlap.both > 0
