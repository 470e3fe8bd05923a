"""Textures and surfaces against a scalar reference: one texel at a time, written from the programming guide."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from tests.messages import raises

HEADER = ".version 8.3\n.target sm_90\n.address_size 64\n"
FRAME = """\
{header}{globals}
.visible .entry k(.param .u64 image, .param .u64 sampler, .param .u64 given, .param .u64 out)
{{
    .reg .pred %p<4>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [image];
    ld.param.u64 %rd2, [sampler];
    ld.param.u64 %rd3, [given];
    ld.param.u64 %rd4, [out];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 16, %rd3;
    mad.wide.u32 %rd4, %r1, 16, %rd4;
    ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%rd3];
    mov.b32 %f2, %r2;
    mov.b32 %f3, %r3;
    mov.b32 %f4, %r4;
    mov.b32 %f5, %r5;
    {body}
    st.global.v4.b32 [%rd4], {{%r10, %r11, %r12, %r13}};
    ret;
}}
"""


def floats(values: Any) -> Any:
    """Return 32-bit floats."""
    return np.array(values, np.float32)


def words(values: Any) -> Any:
    """Return 32-bit words."""
    return np.array(values, np.uint32)


def run(
    body: str, image: Any, source: Any, *, sampler: Any = None, globals: str = "", mode: str = "", images: Any = None
) -> Any:
    """Run one lookup of 64 lanes; `given` is four 32-bit columns. Returns the four columns of results."""
    columns = np.zeros((64, 4), np.uint32)
    columns[: len(source)] = np.asarray(source).view(np.uint32) if np.asarray(source).itemsize == 4 else source
    out = np.zeros((64, 4), np.uint32)
    header = HEADER.replace("sm_90", f"sm_90{mode}")
    module = parse(FRAME.format(header=header, globals=globals, body=body))
    sim.run(module, "k", block=64, args=[image, sampler or 0, columns, out], images=images)
    return out[: len(source)]


def coordinates(rank: int, low: float, high: float, seed: int = 1) -> Any:
    """Return 64 random coordinates, some of them exactly on texel borders and centers."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(low, high, (64, 4)).astype(np.float32)
    points[:16] = np.round(points[:16] * 2) / 2
    points[:, rank:] = 0
    return points


def texel(image: Any, point: tuple[int, ...], modes: tuple[str, ...], border: float = 0.0) -> Any:
    """Return one texel; `at` is x first, the image z y x."""
    index = list[int]()
    for i, size, mode in zip(point, image.shape[::-1], modes, strict=True):
        if mode == "wrap":
            i %= size
        elif mode == "mirror":
            i = i % (2 * size)
            i = i if i < size else 2 * size - 1 - i
        elif mode == "clamp_to_edge":
            i = min(max(i, 0), size - 1)
        elif not 0 <= i < size:
            return border
        index.append(i)
    return image[tuple(index[::-1])]


def bilinear(image: Any, point: Any, modes: tuple[str, ...], border: float = 0.0) -> float:
    """Return a linear lookup at coordinates in texels."""
    low = [math.floor(float(v) - 0.5) for v in point]
    share = [math.floor((float(v) - 0.5 - i) * 256 + 0.5) / 256 for v, i in zip(point, low, strict=True)]
    total = 0.0
    for corner in product((0, 1), repeat=len(low)):
        weight = math.prod(s if c else 1 - s for s, c in zip(share, corner, strict=True))
        if weight:
            total += weight * float(texel(image, tuple(i + c for i, c in zip(low, corner, strict=True)), modes, border))
    return total


BODY = {
    1: "tex.1d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2}];",
    2: "tex.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3}];",
    3: "tex.3d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3, %f4, %f4}];",
}
MOVED = "".join(f"\n    mov.b32 %r{n}, %f{n};" for n in range(10, 14))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["clamp_to_edge", "clamp_to_border"])
def test_nearest_in_texels(rank: int, mode: str) -> None:
    image = np.random.default_rng(0).standard_normal((3, 5, 7)[3 - rank :]).astype(np.float32)
    source = coordinates(rank, -3, 10)
    texture = sim.Texture(image, f"{rank}d", sim.Sampler(mode, border=(2.0, 0, 0, 0)))
    got = run(BODY[rank] + MOVED, texture, source).view(np.float32)
    modes = (mode,) * rank
    want = [texel(image, tuple(math.floor(float(v)) for v in row[:rank]), modes, 2.0) for row in source]
    assert np.array_equal(got[:, 0], floats(want))
    assert (got[got[:, 0] != 2.0, 3] == 1).all()


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["wrap", "mirror", "clamp_to_edge", "clamp_to_border"])
def test_linear_in_fractions(rank: int, mode: str) -> None:
    image = np.random.default_rng(2).standard_normal((4, 8, 16)[3 - rank :]).astype(np.float32)
    source = coordinates(rank, -1.5, 2.5)
    texture = sim.Texture(image, f"{rank}d", sim.Sampler(mode, "linear"), normalized=True)
    got = run(BODY[rank] + MOVED, texture, source).view(np.float32)[:, 0]
    sizes = image.shape[::-1]
    want = [bilinear(image, [float(v) * n for v, n in zip(row, sizes, strict=False)], (mode,) * rank) for row in source]
    assert np.allclose(got, want, rtol=1e-6, atol=1e-6)


def test_wrap_needs_fractions() -> None:
    image = np.arange(8, dtype=np.float32)
    texture = sim.Texture(image, "1d", sim.Sampler("wrap"))
    got = run(BODY[1] + MOVED, texture, floats([[9, 0, 0, 0], [-4, 0, 0, 0]])).view(np.float32)
    assert got[:, 0].tolist() == [7, 0]


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_integers_channels_and_arrays(channels: int) -> None:
    image = np.random.default_rng(3).integers(0, 255, (3, 5, 6, channels)).astype(np.uint8)
    body = "tex.a2d.v4.u32.s32 {%r10, %r11, %r12, %r13}, [%rd1, {%r2, %r3, %r4, %r4}];"
    source = words([[n % 3, n % 6, n % 5, 0] for n in range(30)])
    got = run(body, sim.Texture(image, "a2d"), source)
    want = np.zeros((30, 4), np.uint32)
    want[:, 3] = 1
    want[:, :channels] = [image[layer, y, x] for layer, x, y, _ in source]
    assert np.array_equal(got, want)


def test_fractions_of_integers_as_halves() -> None:
    image = np.array([0, 64, 128, 255], np.uint8)
    body = "tex.1d.v2.f16x2.s32 {%r10, %r11}, [%rd1, {%r2}];\n mov.b32 %r12, 0;\n mov.b32 %r13, 0;"
    got = run(body, sim.Texture(image, "1d", unorm=True), words([[n, 0, 0, 0] for n in range(4)]))
    assert np.array_equal(got.view(np.float16)[:, 0], (image / 255).astype(np.float16))
    assert (got.view(np.float16)[:, 3] == 1).all()


def test_levels_gradients_and_offsets() -> None:
    levels = [np.full((8 >> n, 8 >> n), float(n), np.float32) for n in range(4)]
    texture = sim.Texture(levels[0], "2d", sim.Sampler(mip_filter="linear"), normalized=True, levels=levels[1:])
    body = "tex.level.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3}], %f4;"
    source = floats([[0.5, 0.5, lod, 0] for lod in (-1, 0, 0.25, 1, 1.5, 3, 9)])
    assert run(body + MOVED, texture, source).view(np.float32)[:, 0].tolist() == [0, 0, 0.25, 1, 1.5, 3, 3]
    body = "tex.grad.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3}], {%f4, %f14}, {%f14, %f5};"
    source = floats([[0.5, 0.5, dx, dy] for dx, dy in ((0.125, 0.125), (0.25, 0.125), (0.125, 0.5))])
    assert run("mov.f32 %f14, 0f00000000;" + body + MOVED, texture, source).view(np.float32)[:, 0].tolist() == [0, 1, 2]
    plain = sim.Texture(np.arange(16, dtype=np.float32).reshape(4, 4), "2d")
    body = (
        "tex.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}|%p1, [%rd1, {%f2, %f3}], {-1, 2};\n selp.f32 %f11, 7.0, 8.0, %p1;"
    )
    assert run(body + MOVED, plain, floats([[2.5, 1.5, 0, 0]])).view(np.float32)[0, :2].tolist() == [13, 7]


@pytest.mark.parametrize(
    ("direction", "face", "s", "t"),
    [((2, 1, 1), 0, 0.25, 0.25), ((-2, 1, 1), 1, 0.75, 0.25), ((1, 2, -1), 2, 0.75, 0.25), ((1, -2, -1), 3, 0.75, 0.75),
     ((1, -1, 2), 4, 0.75, 0.75), ((1, -1, -2), 5, 0.25, 0.75), ((2, -2, 1), 0, 0.25, 0.99),
     ((-2, 1, 2), 1, 0.99, 0.25), ((1, 2, -2), 2, 0.75, 0.0)],
)  # fmt: skip
def test_cube(direction: tuple[int, ...], face: int, s: float, t: float) -> None:
    image = np.arange(2 * 6 * 4 * 4, dtype=np.float32).reshape(2, 6, 4, 4)
    body = "tex.acube.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%r2, %f3, %f4, %f5}];"
    source = np.zeros((1, 4), np.uint32)
    source[0, 0] = 1
    source[0, 1:] = floats(direction).view(np.uint32)
    got = run(body + MOVED, sim.Texture(image, "acube", normalized=True), source).view(np.float32)[0, 0]
    assert got == image[1, face, int(t * 4), int(s * 4)]


def test_samples() -> None:
    image = np.arange(3 * 5 * 4, dtype=np.int32).reshape(3, 5, 4)
    body = "tex.2dms.v4.s32.s32 {%r10, %r11, %r12, %r13}, [%rd1, {%r2, %r3, %r4, %r4}];"
    source = words([[s, x, y, 0] for s in range(4) for x in range(3) for y in range(3)])
    got = run(body, sim.Texture(image, "2dms"), source)[:, 0]
    assert got.tolist() == [image[y, x, s] for s, x, y, _ in source]


def test_signed_texels_and_their_border_are_extended() -> None:
    image = np.array([-128, 127], np.int8)
    texture = sim.Texture(image, "1d", sim.Sampler("clamp_to_border", border=(-3.0, 0, 0, 0)))
    body = "tex.1d.v4.s32.s32 {%r10, %r11, %r12, %r13}, [%rd1, {%r2}];"
    got = run(body, texture, words([[x, 0, 0, 0] for x in (0, 1, 2)]))[:, 0]
    assert got.view(np.int32).tolist() == [-128, 127, -3]


def test_footprint_and_depth() -> None:
    image = np.arange(16, dtype=np.float32).reshape(4, 4)
    body = "tld4.r.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3}];"
    got = run(body + MOVED, sim.Texture(image, "2d"), floats([[2.0, 1.0, 0, 0]])).view(np.float32)[0]
    assert got.tolist() == [image[1, 1], image[1, 2], image[0, 2], image[0, 1]]
    smaller = np.full((2, 2), 99, np.float32)
    again = run(body + MOVED, sim.Texture(image, "2d", levels=[smaller]), floats([[2.0, 1.0, 0, 0]]))
    assert again.view(np.float32)[0].tolist() == got.tolist()
    sampler = sim.Sampler(compare="less")
    body = "tex.2d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, {%f2, %f3}], %f4;"
    source = floats([[1.5, 1.5, depth, 0] for depth in (4.5, 5.0, 5.5)])
    got = run(body + MOVED, sim.Texture(image, "2d", sampler), source).view(np.float32)
    assert got.tolist() == [[1, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]


def test_variables_independent_samplers_and_queries() -> None:
    declarations = (
        ".global .texref t;\n.global .samplerref s = { addr_mode_0 = clamp_to_border, filter_mode = linear };\n"
    )
    body = """tex.1d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [t, s, {%f2}];
    mov.b32 %r10, %f10;
    txq.width.b32 %r11, [t];
    txq.filter_mode.b32 %r12, [s];
    txq.addr_mode_0.b32 %r13, [s];"""
    image = floats([10, 20, 30])
    source = floats([[0.0, 0, 0, 0], [1.0, 0, 0, 0], [3.0, 0, 0, 0]])
    images = {"t": sim.Texture(image, "1d")}
    got = run(body, 0, source, globals=declarations, mode=", texmode_independent", images=images)
    assert got[:, 0].view(np.float32).tolist() == [5, 15, 15]
    assert got[0, 1:].tolist() == [3, 1, 4]
    body = "tex.1d.v4.f32.f32 {%f10, %f11, %f12, %f13}, [%rd1, %rd2, {%f2}];" + MOVED
    got = run(body, sim.Texture(image, "1d"), source, sampler=sim.Sampler(), mode=", texmode_independent")
    assert got[:, 0].view(np.float32).tolist() == [10, 20, 30]


def test_kinds_and_predicated_lanes() -> None:
    body = """istypep.texref %p1, %rd1;
    istypep.surfref %p2, %rd1;
    selp.b32 %r10, 1, 0, %p1;
    selp.b32 %r11, 1, 0, %p2;
    setp.lt.u32 %p3, %r1, 2;
    mov.b32 %r12, 9;
    mov.b32 %r13, 9;
    @%p3 tex.1d.v4.u32.s32 {%r12, %r14, %r15, %r15}, [%rd1, {%r1}];"""
    got = run(body, sim.Texture(words([3, 4, 5, 6]), "1d"), np.zeros((4, 4), np.uint32))
    assert got.tolist() == [[1, 0, 3, 9], [1, 0, 4, 9], [1, 0, 9, 9], [1, 0, 9, 9]]


def surface(body: str, array: Any, inputs: Any, geometry: str = "2d") -> Any:
    return run(body, sim.Surface(array, geometry), inputs)


def test_surface_bytes() -> None:
    array = np.arange(24, dtype=np.uint32).reshape(4, 6) + 0x10000
    body = """suld.b.2d.v2.b32.trap {%r10, %r11}, [%rd1, {%r2, %r3}];
    suld.b.2d.b16.zero %h1, [%rd1, {%r4, %r3}];
    cvt.u32.u16 %r12, %h1;
    suld.b.2d.b32.clamp %r13, [%rd1, {%r4, %r5}];"""
    source = np.array([[8, 1, 4, -3], [16, 3, 400, 99]], np.int32).view(np.uint32)
    assert surface(body, array, source).tolist() == [
        [array[1, 2], array[1, 3], array[1, 1] & 0xFFFF, array[0, 1]], [array[3, 4], array[3, 5], 0, array[3, 5]],
    ]  # fmt: skip


def test_surface_stores_and_reductions() -> None:
    array = np.zeros((4, 8), np.int16)
    body = """mul.lo.u32 %r6, %r2, 2;
    cvt.u16.u32 %h1, %r4;
    sust.b.2d.b16.zero [%rd1, {%r6, %r3}], %h1;
    mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;"""
    source = np.array([[n % 9, n // 9, n + 1, 0] for n in range(64)], np.int32)
    surface(body, array, source)
    want = np.array([[9 * y + x + 1 for x in range(8)] for y in range(4)])
    assert np.array_equal(array, want)
    counts = np.zeros(4, np.uint32)
    body = "and.b32 %r6, %r1, 3;\n sured.p.add.1d.b32.trap [%rd1, {%r6}], %r2;\n mov.b32 %r10, 0;\n" + "".join(
        f"mov.b32 %r{n}, 0;" for n in (11, 12, 13)
    )
    surface(body, counts, np.ones((64, 4), np.uint32), "1d")
    assert counts.tolist() == [16] * 4
    lowest = np.full(4, 3, np.int32), np.full(4, 3, np.uint32)
    for values in lowest:
        surface(body.replace("add", "min"), values, np.full((64, 4), 0xFFFF_FFFE, np.uint32), "1d")
    assert [values.tolist() for values in lowest] == [[-2] * 4, [3] * 4]
    colors = np.zeros((2, 3, 4), np.float16)
    body = "sust.p.2d.v4.b32.trap [%rd1, {%r2, %r3}], {%r4, %r5, %r4, %r5};\n" + "".join(
        f"mov.b32 %r{n}, 0;" for n in range(10, 14)
    )
    pixels = np.zeros((6, 4), np.uint32)
    pixels[:, :2] = [[x, y] for y in range(2) for x in range(3)]
    pixels[:, 2:] = floats([1.5, -2.0]).view(np.uint32)
    surface(body + "\n", colors, np.concatenate([pixels] * 11)[:64])
    assert (colors == np.array([1.5, -2, 1.5, -2], np.float16)).all()


@pytest.mark.parametrize(
    ("operation", "dtype", "expected"),
    [
        ("add.u32", np.uint32, 0x60 + 16 * 0x3C), ("min.s32", np.int32, 0x3C), ("max.s32", np.int32, 0x60),
        ("min.u32", np.uint32, 0x3C), ("max.u32", np.uint32, 0x60), ("and.b32", np.uint32, 0x20),
        ("or.b32", np.uint32, 0x7C),
    ],
)  # fmt: skip
def test_surface_reductions(operation: str, dtype: Any, expected: int) -> None:
    """Sixteen lanes reduce 0x3C into each element, which starts with 0x60."""
    word, kind = operation.split(".")
    body = f"and.b32 %r6, %r1, 3; shl.b32 %r6, %r6, 2;\n sured.b.{word}.1d.{kind}.trap [%rd1, {{%r6}}], %r2;\n"
    values = np.full(4, 0x60, dtype)
    zeros = "".join(f"mov.b32 %r{n}, 0;" for n in range(10, 14))
    surface(body + zeros, values, np.full((64, 4), 0x3C, np.uint32), "1d")
    assert values.tolist() == [expected] * 4


@pytest.mark.parametrize(
    ("body", "image", "message"),
    [
        ("suld.b.2d.b32.trap %r10, [%rd1, {%r2, %r3}];", sim.Surface(np.zeros((2, 2), np.uint32)), "are outside"),
        ("suld.b.1d.b32.trap %r10, [%rd1, {%r2}];", sim.Surface(np.zeros((2, 2), np.uint32)), "the surface is .2d"),
        (BODY[2], sim.Texture(np.zeros(4, np.float32), "1d"), "the texture is .1d"),
        (BODY[1], 12345678901, "names nothing, expected a .texref"),
        (BODY[1], sim.Surface(np.zeros(4, np.float32), "1d"), "names a surfref, expected a .texref"),
        (BODY[1], sim.Sampler(), "names a samplerref, expected a .texref"),
    ],
)
def test_errors(body: str, image: Any, message: str) -> None:
    with raises(PtxError, match=message) as excinfo:
        run(body, image, np.full((64, 4), 100, np.uint32))
    assert excinfo.value.diagnostics[0].line == 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sim.Texture(np.zeros((2, 2), np.float64)), "8-, 16- or 32-bit"),
        (lambda: sim.Texture(np.zeros((2, 2, 3), np.float32)), "1, 2 or 4 channels"),
        (lambda: sim.Texture(np.zeros((5, 4, 4), np.float32), "cube"), "six square faces"),
        (lambda: sim.Texture(np.zeros(4, np.float32), "2d"), "2 dimensions, or 3"),
        (lambda: sim.Texture(np.zeros(4, np.float32), "1d", unorm=True), "unorm requires"),
        (lambda: sim.Sampler("repeat"), "expected one of wrap"),
        (lambda: sim.Sampler(filter="best"), "filter"),
        (lambda: sim.Sampler(mip_filter="best"), "mip_filter"),
        (lambda: sim.Sampler(compare="never"), "compare"),
        (lambda: sim.Surface(np.zeros((2, 2), np.uint32), "5d"), "expected one of 1d"),
    ],
)
def test_descriptions(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_failed_launch_leaves_the_surface() -> None:
    array = np.zeros(4, np.uint32)
    body = "sust.b.1d.b32.zero [%rd1, {0}], %r2;\n trap;"
    with raises(PtxError, match="trap"):
        run(body, sim.Surface(array, "1d"), np.ones((1, 4), np.uint32))
    assert not array.any()
