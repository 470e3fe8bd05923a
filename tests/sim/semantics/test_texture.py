"""Queries of textures and samplers, integer coordinates with offsets, the nearest level, handles in parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.parser import parse
from tests.sim.images.test_lookup import floats, run, words

TEXTURES = {
    "1d": sim.Texture(np.zeros((7, 2), np.int8), "1d", normalized=True),
    "2d": sim.Texture(np.zeros((3, 5), np.uint16), "2d", unorm=True, levels=[np.zeros((1, 2), np.uint16)]),
    "3d": sim.Texture(np.zeros((2, 3, 5, 4), np.float16), "3d"),
    "a1d": sim.Texture(np.zeros((6, 7), np.uint32), "a1d"),
    "a2d": sim.Texture(np.zeros((4, 3, 5), np.int8), "a2d", unorm=True, normalized=True),
    "cube": sim.Texture(np.zeros((6, 8, 8), np.float32), "cube"),
    "acube": sim.Texture(np.zeros((5, 6, 4, 4, 2), np.int32), "acube"),
    "2dms": sim.Texture(np.zeros((3, 5, 8), np.int16), "2dms"),
    "a2dms": sim.Texture(np.zeros((2, 3, 5, 4), np.uint8), "a2dms", unorm=True),
}
SIGNED, UNSIGNED, FRACTIONS, FLOATS = (0x10D7, 0x10D8, 0x10D9), (0x10DA, 0x10DB, 0x10DC), 0x10D0, (0x10DD, 0x10DE)
R, RG, RGBA = 0x10B0, 0x10B2, 0x10B5
"""OpenCL's numbers: integers of 8, 16 and 32 bits, normalized ones from signed 8 bits on, halves and floats."""
QUERIES = {
    "width": {"1d": 7, "2d": 5, "3d": 5, "a1d": 7, "a2d": 5, "cube": 8, "acube": 4, "2dms": 5, "a2dms": 5},
    "height": {"2d": 3, "3d": 3, "a2d": 3, "cube": 8, "acube": 4, "2dms": 3, "a2dms": 3},
    "depth": {"1d": 0, "2d": 0, "3d": 2, "a1d": 0, "cube": 0, "2dms": 0, "a2dms": 0},
    "channel_data_type": {
        "1d": SIGNED[0], "2d": FRACTIONS + 3, "3d": FLOATS[0], "a1d": UNSIGNED[2], "a2d": FRACTIONS, "cube": FLOATS[1],
        "acube": SIGNED[2], "2dms": SIGNED[1], "a2dms": FRACTIONS + 2,
    },
    "channel_order": {"1d": RG, "2d": R, "3d": RGBA, "a1d": R, "acube": RG},
    "normalized_coords": {"1d": 1, "2d": 0, "a2d": 1, "acube": 0},
    "array_size": {"1d": 0, "2d": 0, "3d": 0, "a1d": 6, "a2d": 4, "cube": 0, "acube": 5, "2dms": 0, "a2dms": 2},
    "num_mipmap_levels": {"1d": 0, "2d": 2, "a2d": 0},
    "num_samples": {"1d": 0, "2d": 0, "2dms": 8, "a2dms": 4},
    "memory_layout": {"2d": 0, "3d": 0},
}  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_queries_of_textures(query: str) -> None:
    """Even lanes below 40 ask one texture, odd lanes the next."""
    for first, second in zip(QUERIES[query], [*QUERIES[query]][1:], strict=False):
        body = f"""and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 0; setp.lt.u32 %p2, %r1, 40;
selp.b64 %rd5, %rd1, %rd2, %p1; mov.b32 %r10, 77; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;
@%p2 txq.{query}.b32 %r10, [%rd5];"""
        got = run(body, TEXTURES[first], np.zeros((64, 4), np.uint32), sampler=TEXTURES[second])[:, 0]
        want = [QUERIES[query][second if lane % 2 else first] if lane < 40 else 77 for lane in range(64)]
        assert got.tolist() == want, (first, second)


@pytest.mark.parametrize("query", ["width", "height", "depth"])
def test_queries_of_levels(query: str) -> None:
    """Beyond the last level there is no smaller one."""
    levels = [np.zeros((8 >> n, 16 >> n), np.float32) for n in range(4)]
    body = f"txq.level.{query}.b32 %r10, [%rd1], %r2; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;"
    given = words([[n, 0, 0, 0] for n in range(5)])
    got = run(body, sim.Texture(levels[0], "2d", levels=levels[1:]), given)[:, 0]
    assert got.tolist() == {"width": [16, 8, 4, 2, 2], "height": [8, 4, 2, 1, 1], "depth": [0] * 5}[query]


@pytest.mark.parametrize("is_texture", [False, True])
def test_queries_of_samplers(is_texture: bool) -> None:
    """A texture answers for its own sampler."""
    modes = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")
    for number in range(5):
        addresses = [modes[(number + n) % 5] for n in range(3)]
        sampler = sim.Sampler(addresses, "linear" if number % 2 else "nearest")
        texture = sim.Texture(np.zeros(4, np.float32), "1d", sampler)
        body = "".join(
            f"txq.{query}.b32 %r{10 + n}, [%rd1];"
            for n, query in enumerate(("addr_mode_0", "addr_mode_1", "addr_mode_2", "filter_mode"))
        )
        got = run(body, texture if is_texture else sampler, np.zeros((3, 4), np.uint32))
        assert got.tolist() == [[*((number + n) % 5 for n in range(3)), number % 2]] * 3


@pytest.mark.parametrize("is_forced", [False, True])
def test_a_sampler_says_whether_it_forces_texel_coordinates(is_forced: bool) -> None:
    body = """txq.force_unnormalized_coords.b32 %r10, [%rd1]; istypep.samplerref %p1, %rd1; selp.b32 %r11, 1, 0, %p1;
istypep.texref %p1, %rd1; selp.b32 %r12, 1, 0, %p1; mov.b32 %r13, 0;"""
    got = run(body, sim.Sampler(force_unnormalized=is_forced), np.zeros((2, 4), np.uint32))
    assert got.tolist() == [[is_forced, 1, 0, 0]] * 2


@pytest.mark.parametrize("value", [0, 1])
def test_a_variable_says_whether_it_forces_texel_coordinates(value: int) -> None:
    declarations = f".global .samplerref s = {{ force_unnormalized_coords = {value} }};\n"
    body = """txq.force_unnormalized_coords.b32 %r10, [s]; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;"""
    got = run(body, 0, np.zeros((1, 4), np.uint32), globals=declarations, mode=", texmode_independent")
    assert got.tolist() == [[value, 0, 0, 0]]


def test_offsets_of_integer_coordinates() -> None:
    """Offsets are added before the address mode applies, here to the edge."""
    image = np.random.default_rng(1).integers(0, 1 << 32, (2, 6, 9), np.uint32)
    given = words([[lane % 2, lane % 9, lane % 6, 0] for lane in range(64)])
    body = "tex.a2d.v4.u32.s32 {%r10, %r11, %r12, %r13}, [%rd1, {%r2, %r3, %r4, %r4}], {-2, 3};"
    got = run(body, sim.Texture(image, "a2d"), given)[:, 0]
    assert got.tolist() == [image[layer, min(y + 3, 5), max(x - 2, 0)] for layer, x, y, _ in given.astype(int).tolist()]


@pytest.mark.parametrize(("name", "operand"), [("level", "%f3"), ("grad", "{%f4}, {%f4}")])
def test_the_nearest_level(name: str, operand: str) -> None:
    """Half way between two levels is the smaller one; a gradient of one texel is level 0."""
    levels = [np.full(16 >> n, 10.0 + n, np.float32) for n in range(5)]
    texture = sim.Texture(levels[0], "1d", sim.Sampler(mip_filter="nearest"), normalized=True, levels=levels[1:])
    nearest = {-3.0: 0, 0.0: 0, 0.25: 0, 0.499: 0, 1.0: 1, 1.499: 1, 2.75: 3, 3.52: 4, 4.0: 4, 9.0: 4}
    nearest |= {0.5: 1, 1.5: 2} if name == "level" else {}
    body = f"tex.{name}.1d.v4.f32.f32 {{%f10, %f11, %f12, %f13}}, [%rd1, {{%f2}}], {operand};"
    given = floats([[0.3, detail, 2.0**detail / 16, 0] for detail in nearest])
    moved = "".join(f"mov.b32 %r{n}, %f{n};" for n in range(10, 14))
    got = run(body + moved, texture, given).view(np.float32)[:, 0]
    assert got.tolist() == [10 + level for level in nearest.values()]


def test_handles_in_parameters() -> None:
    text = """.version 8.3
.target sm_90, texmode_independent
.address_size 64
.visible .entry k(.param .texref t, .param .samplerref s, .param .surfref f, .param .u64 out)
{
.reg .b32 %t, %r<8>; .reg .f32 %f<8>; .reg .b64 %o; .reg .pred %p;
mov.u32 %t, %tid.x; ld.param.u64 %o, [out]; mad.wide.u32 %o, %t, 16, %o; cvt.rn.f32.u32 %f1, %t;
mov.b32 %r1, 9; setp.ne.u32 %p, %t, 3; shl.b32 %r5, %t, 2;
@%p tex.1d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [t, s, {%f1}];
@%p mov.b32 %r1, %f2;
txq.width.b32 %r2, [t]; txq.addr_mode_0.b32 %r3, [s]; suq.width.b32 %r4, [f];
sust.b.1d.b32.zero [f, {%r5}], %t;
st.global.v4.b32 [%o], {%r1, %r2, %r3, %r4};
ret;
}
"""
    image, surface, out = floats([5, 6, 7, 8]), np.zeros(6, np.uint32), np.zeros((8, 4), np.uint32)
    sampler = sim.Sampler("clamp_to_border", border=(2.5, 0, 0, 0))
    arguments: list[Any] = [sim.Texture(image, "1d"), sampler, sim.Surface(surface, "1d"), out]
    sim.run(parse(text), block=8, args=arguments)
    expected = floats([5, 6, 7, 0, 2.5, 2.5, 2.5, 2.5]).view(np.uint32)
    expected[3] = 9
    assert out[:, 0].tolist() == expected.tolist()
    assert out[:, 1:].tolist() == [[4, 4, 6]] * 8
    assert surface.tolist() == [0, 1, 2, 3, 4, 5]
