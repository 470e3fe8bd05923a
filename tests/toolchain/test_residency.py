"""Occupancy by hand. Each case was computed from the rules and agrees with NVIDIA's `cuda_occupancy.h`."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx.isa.limits import KIB, sm_limits
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import occupancy

CASES = [
    # 32 registers: 64 warps of 1024 registers fill 65,536; 256 threads are 8 warps, 2048 / 256 = 8.
    ("sm_90a", 256, 32, 0, 0, 8, ("threads", "registers")),
    # 33 registers round up to 40 (1280 a warp): 16384 // 1280 = 12 warps a partition, 48 in all, 48 // 8 = 6.
    ("sm_90", 256, 33, 0, 0, 6, ("registers",)),
    # 168 registers: 5376 a warp, 3 a partition, 12 in all: one CTA of 12 warps.
    ("sm_90a", 384, 168, 200 * KIB, 3, 1, ("registers", "shared")),
    # 227 KiB and the reserved one: exactly the SM's 228.
    ("sm_90a", 128, 32, 227 * KIB, 0, 1, ("shared",)),
    ("sm_90a", 128, 32, 227 * KIB + 1, 0, 0, ("shared",)),
    # 113 + 1 KiB twice.
    ("sm_100a", 128, 32, 113 * KIB, 0, 2, ("shared",)),
    ("sm_100a", 128, 32, 113 * KIB + 1, 0, 1, ("shared",)),
    # 48 + 1 KiB: two in 100 KiB; one in 64 KiB of Turing, which reserves none.
    ("sm_86", 128, 32, 48 * KIB, 0, 2, ("shared",)),
    ("sm_75", 128, 32, 48 * KIB, 0, 1, ("shared",)),
    ("sm_75", 128, 32, 32 * KIB, 0, 2, ("shared",)),
    # CTAs of one warp: only their number limits them.
    ("sm_80", 32, 16, 0, 0, 32, ("ctas",)),
    ("sm_86", 32, 16, 0, 0, 16, ("ctas",)),
    ("sm_89", 32, 16, 0, 0, 24, ("ctas",)),
    ("sm_120", 32, 16, 0, 0, 24, ("ctas",)),
    # 1536 threads: one CTA of 1024.
    ("sm_89", 1024, 32, 0, 0, 1, ("threads",)),
    ("sm_80", 1024, 32, 0, 0, 2, ("threads", "registers")),
    # 64 barriers on sm_90, one for each CTA on sm_103 and sm_120, no limit before sm_90.
    ("sm_90", 64, 32, 0, 16, 4, ("barriers",)),
    ("sm_103a", 64, 32, 0, 16, 2, ("barriers",)),
    ("sm_80", 64, 32, 0, 16, 32, ("threads", "ctas", "registers")),
    # 176 registers: 5632 a warp. The file holds 11 such warps, but each of four partitions only 2.
    ("sm_90", 288, 176, 0, 0, 0, ("registers",)),
    ("sm_90", 288, 168, 0, 0, 1, ("registers",)),
    ("sm_90", 1025, 32, 0, 0, 0, ("threads",)),
]


@pytest.mark.parametrize(("target", "threads", "registers", "shared", "barriers", "ctas", "by"), CASES)
def test_ctas_on_one_sm(
    target: str, threads: int, registers: int, shared: int, barriers: int, ctas: int, by: tuple[str, ...]
) -> None:
    result = occupancy(target, threads, registers=registers, shared=shared, barriers=barriers)
    assert (result.ctas, result.limited_by) == (ctas, by)
    assert result.warps == ctas * -(-threads // 32)


def test_the_fraction_is_of_the_sms_warps() -> None:
    assert occupancy("sm_90", 384, registers=168).fraction == 12 / 64


@pytest.mark.parametrize("target", ASSEMBLED)
def test_every_assembled_target_has_limits(target: str) -> None:
    assert sm_limits(target).shared == sm_limits(target).shared_per_cta + sm_limits(target).reserved_shared


@pytest.mark.parametrize("target", ["sm_52", "hopper"])
def test_a_target_without_limits_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match=r"sm_|hopper"):
        occupancy(target, 32, registers=16)


@pytest.mark.parametrize(("threads", "registers"), [(0, 1), (-1, 1), (32, -1)])
def test_impossible_amounts_are_refused(threads: int, registers: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        occupancy("sm_90", threads, registers=registers)


@given(st.sampled_from(ASSEMBLED), st.integers(1, 1024), st.integers(1, 255), st.integers(0, 227 * KIB))
def test_more_of_anything_never_lets_more_fit(target: str, threads: int, registers: int, shared: int) -> None:
    base = occupancy(target, threads, registers=registers, shared=shared).ctas
    assert occupancy(target, threads + 1, registers=registers, shared=shared).ctas <= base
    assert occupancy(target, threads, registers=registers + 1, shared=shared).ctas <= base
    assert occupancy(target, threads, registers=registers, shared=shared + 1).ctas <= base
