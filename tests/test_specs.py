"""Tiles: the shapes they accept and bind, and the TMA layout of wgmma operands."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyptx import types
from pyptx.specs import Dim, Layout, Tile, list_array_dtype_names, unify_envs
from pyptx.types import b8, b32, bf16, e2m1x2, e4m3, f16, f32, f64, s32, tf32, u8, u32


def test_dimensions_dtype_and_layout_come_in_any_order() -> None:
    tile = Tile("M", bf16, 64, Layout.TMA_128B, tma_box=("tile_m", 64))
    assert (tile.shape, tile.dtype, tile.layout, tile.rank) == (("M", 64), bf16, Layout.TMA_128B, 2)
    assert tile == Tile("M", 64, dtype=bf16, layout=Layout.TMA_128B, tma_box=("tile_m", 64))
    assert hash(tile) == hash(Tile("M", 64, bf16, Layout.TMA_128B, tma_box=("tile_m", 64)))
    assert tile != Tile("M", 64, bf16)
    assert (Tile("M", f32).layout, Tile("M", f32).tma_rank, Tile("M", f32).tma_padding) == (Layout.ROW, 2, False)


def test_a_type_is_named_by_a_string() -> None:
    assert Tile("n", "f32") == Tile("f32", "n") == Tile("n", dtype="f32") == Tile("n", f32)
    assert Tile("f16", f32).shape == Tile("f16", dtype="f32").shape == ("f16",)
    assert Tile.wgmma_a(64, 64, "bf16") == Tile.wgmma_a(64, 64, bf16)
    assert Tile.wgmma_b("K", "N", "bf16") == Tile.wgmma_b("K", "N", bf16)


def test_a_tile_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Tile("M", f32).dtype = f16  # type: ignore[misc]


def test_repr_makes_the_same_tile() -> None:
    names = {"Tile": Tile, "Layout": Layout, "bf16": bf16}
    for tile in (
        Tile("M", 64, bf16),
        Tile("M", 64, bf16, Layout.TMA_128B, tma_box=("t", 64)),
        Tile("M", 128, bf16, tma_rank=3, tma_padding=True, tma_box=(128, 64)),
    ):
        assert eval(repr(tile), names) == tile


BAD: dict[str, tuple[Callable[[], Tile], str]] = {
    "no type": (lambda: Tile("M", 4), "one scalar type, got none"),
    "two types": (lambda: Tile("M", f32, dtype=f16), "got f32, f16"),
    "two names of types": (lambda: Tile("M", "f32", "f32"), "got f32, f32"),
    "no such type": (lambda: Tile("M", dtype="f31"), "no scalar type 'f31'"),
    "two layouts": (lambda: Tile("M", f32, Layout.COL, layout=Layout.TMA_64B), "one layout"),
    "zero": (lambda: Tile(0, f32), "at least 1, got 0"),
    "not a name": (lambda: Tile("M*2", f32), "'M\\*2' cannot name a dimension"),
    "a keyword": (lambda: Tile("lambda", f32), "cannot name a dimension"),
    "box of another rank": (lambda: Tile("M", "N", f32, tma_box=(64,)), "must have 2 sizes, one per dimension"),
    "rank 4": (lambda: Tile("M", "N", f32, tma_rank=4), "not 4"),
    "reshape of a vector": (lambda: Tile("M", f32, tma_rank=3), "row-major matrix"),
    "reshape of columns": (lambda: Tile("M", "N", f32, Layout.COL, tma_rank=3), "row-major matrix"),
    "uneven reshape": (lambda: Tile("M", 96, f16, tma_rank=3), "96 is not a multiple of 64"),
    "uneven box": (lambda: Tile("M", "N", f16, tma_rank=3, tma_box=(64, 32)), "32 is not a multiple of 64"),
    "padding alone": (lambda: Tile("M", "N", f16, tma_padding=True), "needs tma_rank=3"),
    "padding and swizzle": (
        lambda: Tile("M", "N", f16, Layout.TMA_128B, tma_rank=3, tma_padding=True),
        "tma_padding and a swizzle cannot be combined",
    ),
    "96-byte rows": (lambda: Tile.wgmma_a(64, 48, bf16), "rows of 96 bytes, but .* 16, 32, 64 or a multiple of 128"),
    "192-byte rows": (lambda: Tile.wgmma_b(16, 96, bf16), "rows of 192 bytes"),
}


@pytest.mark.parametrize(("make", "message"), list(BAD.values()), ids=list(BAD))
def test_a_wrong_tile_says_what_is_wrong(make: Callable[[], Tile], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_dimension_that_is_no_dimension_is_a_type_error() -> None:
    for value in (True, 2.0, None):
        with pytest.raises(TypeError, match="a number or a name"):
            Tile(value, f32)  # type: ignore[arg-type]


def test_names_are_bound_once_and_resolved() -> None:
    tile = Tile("M", "K", "M", 4, f32)
    assert tile.symbolic_dims == ("M", "K")
    assert tile.extract_env((8, 3, 8, 4)) == {"M": 8, "K": 3}
    assert tile.resolve_shape({"M": 8, "K": 3, "other": 1}) == (8, 3, 8, 4)
    with pytest.raises(KeyError, match="K has no value; given: M"):
        tile.resolve_shape({"M": 8})
    assert Tile("M", "K", f32, tma_box=("M", 16)).resolve_box({"M": 4}) == (4, 16)
    assert Tile("M", 8, f32).resolve_box({"M": 4}) == (4, 8)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((8, 3, 8), "expected 4 dimensions \\(M, K, M, 4\\), got shape \\(8, 3, 8\\)"),
        ((8, 3, 9, 4), "dimension 2 must be M = 8, got 9"),
        ((8, 3, 8, 5), "dimension 3 must be 4, got 5"),
    ],
)
def test_a_shape_that_does_not_fit_names_the_dimension(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Tile("M", "K", "M", 4, f32).extract_env(shape)
    assert not Tile("M", "K", "M", 4, f32).matches(shape, "float32")


NAMES = st.sampled_from(["M", "N", "K"])


@given(st.lists(st.integers(1, 9) | NAMES, max_size=5), st.fixed_dictionaries({n: st.integers(1, 99) for n in "MNK"}))
def test_extracting_undoes_resolving(dims: list[Dim], env: dict[str, int]) -> None:
    tile = Tile(*dims, f32)
    shape = tile.resolve_shape(env)
    assert tile.extract_env(shape) == {name: env[name] for name in tile.symbolic_dims}
    assert tile.matches(shape, "float32")


def test_bindings_are_merged_or_refused() -> None:
    assert unify_envs([{"M": 1, "K": 2}, {}, {"K": 2, "N": 3}]) == {"M": 1, "K": 2, "N": 3}
    assert unify_envs([]) == {}
    with pytest.raises(ValueError, match="dimension K is 2 in one tensor and 4 in another"):
        unify_envs([{"K": 2}, {"K": 4}])


MATCHES = [
    (f32, "float32", True), (f32, "torch.float32", True), (f32, "f32", True), (f32, "int32", False),
    (tf32, "float32", True), (bf16, "bfloat16", True), (bf16, "float16", False), (f64, "float64", True),
    (s32, "int32", True), (s32, "uint32", False), (u32, "int32", False), (u8, "bool", True),
    (b32, "float32", True), (b32, "int32", True), (b32, "int64", False), (b8, "float8_e4m3fn", True),
    (e4m3, "float8_e4m3fn", True), (e4m3, "float8_e5m2", False), (e4m3, "uint8", False),
    (e2m1x2, "uint8", True), (e2m1x2, "float4_e2m1fn_x2", True), (types.f16x2, "int32", True),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "name", "fits"), MATCHES, ids=str)
def test_array_dtypes(dtype: types.PtxType, name: str, fits: bool) -> None:
    assert Tile("M", dtype).matches((3,), name) is fits


def test_outputs_of_bit_types_are_allocated_as_unsigned_integers() -> None:
    first = {t: list_array_dtype_names(t)[0] for t in (b8, b32, types.b64, e2m1x2, types.f16x2, f16, bf16, e4m3)}
    assert list(first.values()) == [
        "uint8", "uint32", "uint64", "float4_e2m1fn_x2", "uint32", "float16", "bfloat16", "float8_e4m3fn",
    ]  # fmt: skip


def test_bit_types_hold_every_dtype_of_their_width() -> None:
    numbers = ("uint", "int", "float")
    for bits, extras in ((16, {"bfloat16"}), (32, set[str]()), (64, {"complex64"})):
        dtype_names = {
            n for n in list_array_dtype_names(types.from_name(f"b{bits}")) if not n.startswith("b") or n == "bfloat16"
        }
        assert dtype_names == {f"{name}{bits}" for name in numbers} | extras
    eight = list_array_dtype_names(b8)
    assert {"bool", "int8", "float8_e5m2", "float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn_x2"} <= set(eight)
    assert "complex128" in list_array_dtype_names(types.b128)


OPERANDS = [
    (Tile.wgmma_a(64, 8, bf16), Layout.ROW, (64, 8)),
    (Tile.wgmma_a(64, 16, bf16), Layout.TMA_32B, (64, 16)),
    (Tile.wgmma_a(64, 32, bf16), Layout.TMA_64B, (64, 32)),
    (Tile.wgmma_a(64, 64, bf16), Layout.TMA_128B, (64, 64)),
    (Tile.wgmma_a("M", "K", bf16, tile_m=128, tile_k=64), Layout.TMA_128B, (128, 64)),
    (Tile.wgmma_a("M", "K", bf16, tile_m=128, tile_k=128), Layout.TMA_128B, (128, 64)),
    (Tile.wgmma_a("M", "K", e4m3, tile_m=128, tile_k=128), Layout.TMA_128B, (128, 128)),
    (Tile.wgmma_a("M", "K", tf32, tile_m="tile_m", tile_k=8), Layout.TMA_32B, ("tile_m", 8)),
    (Tile.wgmma_a("M", "K", bf16), Layout.TMA_128B, ("M", 64)),
    (Tile.wgmma_a("M", "K", types.b1), Layout.TMA_128B, ("M", 1024)),
    (Tile.wgmma_b(16, 8, f16), Layout.ROW, (16, 8)),
    (Tile.wgmma_b("K", "N", bf16, tile_k=64, tile_n=256), Layout.TMA_128B, (64, 64)),
    (Tile.wgmma_b("K", "N", bf16, tile_k=64, tile_n=32), Layout.TMA_64B, (64, 32)),
]


@pytest.mark.parametrize(("tile", "layout", "box"), OPERANDS, ids=repr)
def test_wgmma_operands_get_the_swizzle_their_rows_fill(tile: Tile, layout: Layout, box: tuple[Dim, ...]) -> None:
    assert (tile.layout, tile.tma_box) == (layout, box)
    assert tile.dtype.bits * (box[1] if isinstance(box[1], int) else 0) // 8 <= max(layout.swizzle_bytes, 16)
