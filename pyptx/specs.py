"""The description of a kernel's tensor: dimensions (numbers or names), scalar type, memory layout and TMA box.

Knows shapes and dtype names, but no arrays, PTX or instructions that use a tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from keyword import iskeyword

from pyptx.diagnostics import format_count
from pyptx.numbers import FORMATS, Kind, split_packed
from pyptx.types import ALL, PtxType, from_name

Dim = int | str
"""A dimension: a number, or a name that the arguments determine."""

RESHAPED_WIDTH, PADDED_WIDTH = 64, 72
"""Elements of the inner dimension of a rank-3 view, and of its box when stores are padded against bank conflicts."""


class Layout(Enum):
    """The memory layout: row- or column-major, row-major and swizzled by TMA on its way to shared memory, or in slices
    of channels: the last of 4 or more dimensions is a slice of 16 or 32 bytes, as in (N, C/8, H, W, 8) for 16 bits (the
    manual's interleaved layouts NC/8HWC8 and NC/16HWC16). Slices of 32 bytes take the 32-byte swizzle. Coordinates
    leave out the slice: (w, h, c/8, n); a box has one slice of each position."""

    ROW = "row"
    COL = "col"
    TMA_128B = "tma_128b"
    TMA_64B = "tma_64b"
    TMA_32B = "tma_32b"
    INTERLEAVED = "interleaved"

    @property
    def swizzle_bytes(self) -> int:
        """The span of the swizzle in bytes, 0 without one."""
        return _SWIZZLE_BYTES.get(self, 0)


_SWIZZLE_BYTES = {Layout.TMA_128B: 128, Layout.TMA_64B: 64, Layout.TMA_32B: 32}
_LAYOUT_OF_ROW = {16: Layout.ROW, 32: Layout.TMA_32B, 64: Layout.TMA_64B, 128: Layout.TMA_128B}


@dataclass(frozen=True, slots=True, init=False)
class Tile:
    """A tensor of a kernel. `tma_box` is the box of one TMA load, in the tile's own dimensions; `tma_rank` 3 views a
    matrix as (64, rows, columns/64), fastest dimension first, as large Hopper GEMMs do; `tma_padding` widens the inner
    box of such a view to 72. The type is one of `pyptx.types` or its name: `Tile("n", "f32")`; next to another type
    such a name is a dimension."""

    shape: tuple[Dim, ...]
    dtype: PtxType
    layout: Layout
    tma_box: tuple[Dim, ...] | None
    tma_rank: int
    tma_padding: bool

    def __init__(
        self,
        *dims_and_dtype: Dim | PtxType | Layout,
        dtype: PtxType | str | None = None,
        layout: Layout = Layout.ROW,
        tma_box: tuple[Dim, ...] | None = None,
        tma_rank: int = 2,
        tma_padding: bool = False,
    ) -> None:
        dims = [x for x in dims_and_dtype if not isinstance(x, PtxType | Layout)]
        types = [x for x in dims_and_dtype if isinstance(x, PtxType)]
        if dtype is not None:
            types.append(_convert_type(dtype))
        names = [] if types else [x for x in dims if x in _TYPE_NAMES]
        types += [from_name(str(name)) for name in names]
        layouts = {x for x in dims_and_dtype if isinstance(x, Layout)} | ({layout} - {Layout.ROW})
        if len(set(types)) != 1 or len(names) > 1:
            raise ValueError(
                f"Tile takes one scalar type, got {', '.join(map(str, types)) or 'none'}; for example Tile('M', f32)"
            )
        if len(layouts) > 1:
            raise ValueError(f"Tile takes one layout, got {', '.join(sorted(str(x) for x in layouts))}")
        _set(self, "shape", tuple(_check_dim(x) for x in dims if x not in names))
        _set(self, "dtype", types[0])
        _set(self, "layout", next(iter(layouts), Layout.ROW))
        _set(self, "tma_box", None if tma_box is None else tuple(_check_dim(x) for x in tma_box))
        _set(self, "tma_rank", tma_rank)
        _set(self, "tma_padding", tma_padding)
        _check_tma(self)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def symbolic_dims(self) -> tuple[str, ...]:
        """The names among the dimensions, each once, in order."""
        return tuple(dict.fromkeys(dim for dim in self.shape if isinstance(dim, str)))

    def resolve_shape(self, env: dict[str, int]) -> tuple[int, ...]:
        """Return the shape with every name replaced by its number; KeyError if one is not bound."""
        return tuple(_resolve_dim(dim, env) for dim in self.shape)

    def resolve_box(self, env: dict[str, int]) -> tuple[int, ...]:
        """Return the box of one TMA load in the tile's dimensions: the whole tile if none was specified."""
        return tuple(_resolve_dim(dim, env) for dim in (self.shape if self.tma_box is None else self.tma_box))

    def extract_env(self, array_shape: tuple[int, ...]) -> dict[str, int]:
        """Return the value of each name for an array of this shape; ValueError if the shape does not fit."""
        if len(array_shape) != self.rank:
            raise ValueError(
                f"expected {format_count('dimension', self.rank)} {self._format_shape()}, "
                f"got shape {tuple(array_shape)}"
            )
        env: dict[str, int] = {}
        for axis, (dim, size) in enumerate(zip(self.shape, array_shape, strict=True)):
            extent = env.setdefault(dim, size) if isinstance(dim, str) else dim
            if extent != size:
                requirement = f"{dim} = {extent}" if isinstance(dim, str) else str(extent)
                shape_text = f"{size} (shape {tuple(array_shape)} for {self._format_shape()})"
                raise ValueError(f"dimension {axis} must be {requirement}, got {shape_text}")
        return env

    def matches(self, array_shape: tuple[int, ...], array_dtype_name: str) -> bool:
        """Tell whether an array of this shape and dtype name (NumPy's, ml_dtypes', torch's or PTX's) fits."""
        if array_dtype_name.removeprefix("torch.") not in list_array_dtype_names(self.dtype):
            return False
        try:
            self.extract_env(array_shape)
        except ValueError:
            return False
        return True

    @classmethod
    def wgmma_a(
        cls, m: Dim, k: Dim, dtype: PtxType | str, *, tile_m: Dim | None = None, tile_k: Dim | None = None
    ) -> Tile:
        """Return the K-major (M, K) operand: with the swizzle for the tile's row width, and a box one span wide."""
        return cls._make_operand(
            (m, k), _convert_type(dtype), m if tile_m is None else tile_m, k if tile_k is None else tile_k
        )

    @classmethod
    def wgmma_b(
        cls, k: Dim, n: Dim, dtype: PtxType | str, *, tile_k: Dim | None = None, tile_n: Dim | None = None
    ) -> Tile:
        """Return the MN-major (K, N) operand; swizzle and box as for `wgmma_a`, determined by the N of its tile."""
        return cls._make_operand(
            (k, n), _convert_type(dtype), k if tile_k is None else tile_k, n if tile_n is None else tile_n
        )

    @classmethod
    def _make_operand(cls, shape: tuple[Dim, Dim], dtype: PtxType, rows: Dim, width: Dim) -> Tile:
        span = 128 * 8 // dtype.bits
        if isinstance(width, str):
            # A width that only the arguments determine is split into whole spans of the widest swizzle.
            return cls(*shape, dtype=dtype, layout=Layout.TMA_128B, tma_box=(rows, span))
        row_bytes = width * dtype.bits // 8
        layout = Layout.TMA_128B if row_bytes and row_bytes % 128 == 0 else _LAYOUT_OF_ROW.get(row_bytes)
        if layout is None:
            raise ValueError(
                f"{width} elements of {dtype} are rows of {row_bytes} bytes, but a wgmma operand has rows of 16, 32, "
                "64 or a multiple of 128 bytes: choose another tile width"
            )
        return cls(*shape, dtype=dtype, layout=layout, tma_box=(rows, min(width, span)))

    def _format_shape(self) -> str:
        return f"({', '.join(map(str, self.shape))}{',' if self.rank == 1 else ''})"

    def __repr__(self) -> str:
        parts = [*map(repr, self.shape), str(self.dtype)]
        parts += [str(self.layout)] if self.layout is not Layout.ROW else []
        parts += [f"tma_box={self.tma_box}"] if self.tma_box is not None else []
        parts += [f"tma_rank={self.tma_rank}"] if self.tma_rank != 2 else []
        parts += ["tma_padding=True"] if self.tma_padding else []
        return f"Tile({', '.join(parts)})"


def unify_envs(envs: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return all bindings merged; ValueError if two give one name different numbers."""
    union: dict[str, int] = {}
    for env in envs:
        for name, size in env.items():
            if union.setdefault(name, size) != size:
                raise ValueError(f"dimension {name} is {union[name]} in one tensor and {size} in another")
    return union


@cache
def list_array_dtype_names(dtype: PtxType) -> tuple[str, ...]:
    """Return the dtype names of arrays that can hold this type, the one to allocate first. Untyped bits accept anything
    of their width; integers of the same width also hold scale factors, formats smaller than a byte, packed formats and
    those unknown to array libraries."""
    if dtype.kind in ("pred", "opaque"):
        names, alone = (), False
    else:
        element, count = split_packed(dtype.name)
        form = FORMATS[element]
        names = form.arrays if count == 1 else (form.pair,) if form.pair and count == 2 else ()
        alone = count == 1 and bool(names) and form.bits >= 8 and form.kind is not Kind.POWER
    bits = max(dtype.bits, 8)
    containers = () if alone else (f"uint{bits}", f"int{bits}")
    same_width = (name for name, width in _list_array_dtypes() if width == bits) if dtype.kind == "b" else ()
    return tuple(dict.fromkeys((*names, *containers, *same_width, dtype.name)))


def _list_array_dtypes() -> Iterator[tuple[str, int]]:
    """Yield the dtypes of arrays with the bits that an element takes, in formats of less than a byte a whole one."""
    for form in FORMATS.values():
        if form.kind is not Kind.INTEGER or form.bits >= 8:
            yield from ((name, max(form.width, 8)) for name in form.arrays)
            yield from ((name, max(2 * form.lane, 8)) for name in (form.pair,) if name)
    yield from (("complex64", 64), ("complex128", 128))


def _set(tile: Tile, name: str, value: object) -> None:
    object.__setattr__(tile, name, value)


_TYPE_NAMES = frozenset(t.name for t in ALL)


def _convert_type(dtype: PtxType | str) -> PtxType:
    return from_name(dtype) if isinstance(dtype, str) else dtype


def _check_dim(value: object) -> Dim:
    if isinstance(value, str):
        if not value.isidentifier() or iskeyword(value):
            raise ValueError(
                f"{value!r} cannot name a dimension: the name must be usable as a keyword, as in kernel.ptx(M=64)"
            )
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"a dimension must be a number or a name, got {value!r}")
    if value < 1:
        raise ValueError(f"a dimension must be at least 1, got {value}")
    return value


def _resolve_dim(dim: Dim, env: dict[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    if dim not in env:
        raise KeyError(f"dimension {dim} has no value; given: {', '.join(env) or 'none'}")
    return env[dim]


def _check_tma(tile: Tile) -> None:
    if tile.tma_box is not None and len(tile.tma_box) != tile.rank:
        raise ValueError(f"tma_box {tile.tma_box} must have {tile.rank} sizes, one per dimension")
    if tile.tma_rank == 3:
        _check_reshape(tile)
    elif tile.tma_rank != 2:
        raise ValueError(
            f"tma_rank must be 2 (the tensor as it is) or 3 (viewed as 64 x rows x columns/64), not {tile.tma_rank}"
        )
    elif tile.tma_padding:
        raise ValueError("tma_padding widens the inner box of the rank-3 view, so it needs tma_rank=3")


def _check_reshape(tile: Tile) -> None:
    if tile.rank != 2 or tile.layout is Layout.COL:
        raise ValueError(f"tma_rank=3 needs a row-major matrix, not {tile!r}")
    for width in (tile.shape[1], *(tile.tma_box or ())[1:]):
        if isinstance(width, int) and width % RESHAPED_WIDTH:
            raise ValueError(
                f"tma_rank=3 splits columns into groups of {RESHAPED_WIDTH}, but {width} is not a multiple of "
                f"{RESHAPED_WIDTH}"
            )
    if tile.tma_padding and tile.layout.swizzle_bytes:
        raise ValueError("tma_padding and a swizzle cannot be combined: both avoid bank conflicts")
