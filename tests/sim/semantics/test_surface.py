"""Queries of surfaces, and layers of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from pyptx import sim
from tests.sim.images.test_lookup import run

SURFACES = {
    "1d": sim.Surface(np.zeros((7, 2), np.int8), "1d", linear=True),
    "2d": sim.Surface(np.zeros((3, 5), np.uint16), "2d"),
    "3d": sim.Surface(np.zeros((2, 3, 5, 4), np.float16), "3d"),
    "a1d": sim.Surface(np.zeros((6, 7), np.uint32), "a1d"),
    "a2d": sim.Surface(np.zeros((4, 3, 5), np.float32), "a2d"),
}
QUERIES = {
    "width": {"1d": 7, "2d": 5, "3d": 5, "a1d": 7, "a2d": 5},
    "height": {"2d": 3, "3d": 3, "a2d": 3},
    "depth": {"1d": 0, "2d": 0, "3d": 2, "a1d": 0},
    "channel_data_type": {"1d": 0x10D7, "2d": 0x10DB, "3d": 0x10DD, "a1d": 0x10DC, "a2d": 0x10DE},
    "channel_order": {"1d": 0x10B2, "2d": 0x10B0, "3d": 0x10B5, "a1d": 0x10B0},
    "array_size": {"1d": 0, "2d": 0, "3d": 0, "a1d": 6, "a2d": 4},
    "memory_layout": {"1d": 1, "2d": 0, "3d": 0},
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str) -> None:
    """Even lanes below 40 ask one surface, odd lanes the next; types and orders are OpenCL's numbers."""
    for first, second in zip(QUERIES[query], [*QUERIES[query]][1:], strict=False):
        body = f"""and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r1, 40;
selp.b64 %rd5, %rd1, %rd2, %p1; mov.b32 %r10, 77; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;
@%p2 suq.{query}.b32 %r10, [%rd5];"""
        got = run(body, SURFACES[first], np.zeros((64, 4), np.uint32), sampler=SURFACES[second])[:, 0]
        want = [QUERIES[query][second if lane % 2 else first] if lane < 40 else 77 for lane in range(64)]
        assert got.tolist() == want, (first, second)


def test_a_layer_beyond_the_last_one_is_the_last_one() -> None:
    array = np.random.default_rng(2).integers(0, 1 << 32, (3, 4, 6), np.uint32)
    before = array.copy()
    given = np.array([[lane % 5, lane % 6 * 4, lane % 4, lane] for lane in range(60)], np.uint32)
    body = """suld.b.a2d.b32.trap %r10, [%rd1, {%r2, %r3, %r4, %r4}]; setp.eq.u32 %p1, %r2, 1;
@%p1 sust.b.a2d.b32.trap [%rd1, {%r2, %r3, %r4, %r4}], %r5; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;"""
    found = run(body, sim.Surface(array, "a2d"), given)[:, 0]
    for lane, (layer, x, y, value) in enumerate(given.astype(int).tolist()):
        assert found[lane] == before[min(layer, 2), y, x // 4]
        if layer == 1:
            before[layer, y, x // 4] = value
    np.testing.assert_array_equal(array, before)
