"""Frozen descriptions of the caller's images: `Texture`, `Sampler`, `Surface`. `storage` holds the texels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.base.formats import Array

GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 2, "a2d": 3, "cube": 3, "acube": 4, "2dms": 3, "a2dms": 4}
"""The number of array dimensions per geometry, without channels: layers, faces, depth, height, width, samples."""
ADDRESSES = ("wrap", "mirror", "clamp_ogl", "clamp_to_edge", "clamp_to_border")
"""Address modes in the order of the values that `txq` returns."""
FILTERS = ("nearest", "linear")
_CHANNELS = (1, 2, 4)
_FORMATS = ("u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4")
_FACES = 6


@dataclass(frozen=True)
class Sampler:
    """How coordinates select texels. `address` is one mode for all dimensions, or one for each."""

    address: str | Sequence[str] = "clamp_to_edge"
    filter: str = "nearest"
    mip_filter: str = "nearest"
    border: Sequence[float] = (0.0, 0.0, 0.0, 0.0)
    force_unnormalized: bool = False
    compare: str = "less_equal"
    """The comparison of a depth reference with a texel, as a NumPy function; the reference comes first."""

    def __post_init__(self) -> None:
        for mode in self.addresses:
            _check_choice("address", mode, ADDRESSES)
        _check_choice("filter", self.filter, FILTERS)
        _check_choice("mip_filter", self.mip_filter, FILTERS)
        _check_choice("compare", self.compare, ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"))

    @property
    def addresses(self) -> tuple[str, str, str]:
        """The address mode of each dimension, x first."""
        modes = [self.address] * 3 if isinstance(self.address, str) else [*self.address, *["clamp_to_edge"] * 3][:3]
        return modes[0], modes[1], modes[2]


@dataclass(frozen=True)
class Surface:
    """An image that kernels read and write. If the array has one dimension more than the geometry, the last one is the
    channels (1, 2 or 4). `linear` is the memory layout that `suq` returns."""

    array: Array
    geometry: str = "2d"
    linear: bool = False

    def __post_init__(self) -> None:
        _check_choice("geometry", self.geometry, tuple(GEOMETRIES))
        _check_image(self.array, self.geometry)


@dataclass(frozen=True)
class Texture:
    """An image that kernels read through a sampler (unified mode). `levels` are the smaller mipmap levels; `normalized`
    coordinates range from 0 to 1; `unorm` reads 8- and 16-bit integers as fractions."""

    array: Array
    geometry: str = "2d"
    sampler: Sampler = field(default_factory=Sampler)
    normalized: bool = False
    unorm: bool = False
    levels: Sequence[Array] = ()

    def __post_init__(self) -> None:
        _check_choice("geometry", self.geometry, tuple(GEOMETRIES))
        for array in (self.array, *self.levels):
            _check_image(array, self.geometry)
            if array.dtype != self.array.dtype:
                raise ValueError(f"a level has dtype {array.dtype}, level 0 has {self.array.dtype}")
        if self.unorm and self.array.dtype.str[1:] not in ("u1", "i1", "u2", "i2"):
            raise ValueError(f"unorm requires 8- or 16-bit integers, the array has dtype {self.array.dtype}")


def shape_of(array: Array, geometry: str) -> tuple[int, int, int, int, int]:
    """Return layers, depth, height, width and channels. Cube faces count as layers, samples as depth."""
    rank = GEOMETRIES[geometry]
    channels = array.shape[rank] if array.ndim > rank else 1
    sizes = array.shape[:rank]
    if geometry == "1d":
        return 1, 1, 1, sizes[0], channels
    if geometry == "a1d":
        return sizes[0], 1, 1, sizes[1], channels
    if geometry == "3d":
        return 1, sizes[0], sizes[1], sizes[2], channels
    if geometry in ("2dms", "a2dms"):
        return (sizes[0] if rank == 4 else 1), sizes[-1], sizes[-3], sizes[-2], channels
    layers = int(np.prod(sizes[:-2]))
    return layers, 1, sizes[-2], sizes[-1], channels


def _check_image(array: Array, geometry: str) -> None:
    rank = GEOMETRIES[geometry]
    if array.ndim not in (rank, rank + 1):
        raise ValueError(
            f"an image of geometry {geometry} must be an array of {rank} dimensions, or {rank + 1} with channels; "
            f"got {array.ndim}"
        )
    if array.ndim > rank and array.shape[rank] not in _CHANNELS:
        raise ValueError(f"an image must have 1, 2 or 4 channels, got {array.shape[rank]}")
    if array.dtype.str[1:] not in _FORMATS or 0 in array.shape:
        raise ValueError(f"an image must hold 8-, 16- or 32-bit integers or floats, got {array.dtype} of {array.shape}")
    if geometry in ("cube", "acube") and (
        array.shape[rank - 3] != _FACES or array.shape[rank - 2] != array.shape[rank - 1]
    ):
        raise ValueError(f"an image of geometry {geometry} must have six square faces, got shape {array.shape}")


def _check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise ValueError(f"{name} {value!r}: expected one of {', '.join(choices)}")
