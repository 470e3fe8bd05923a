"""The images of a launch by handle, and their texels, which are copied before the first write."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.images.objects import Sampler, Surface, Texture, shape_of

HANDLE_BASE = 0x5_0000_0000
"""The first image handle: a generic address at which no memory lies."""
_STEP = 64


@dataclass(slots=True)
class Level:
    """One level of an image: `texels[layer, depth, y, x, channel]`."""

    source: Array
    texels: Array
    has_writes: bool = False

    def copy_before_write(self) -> None:
        """Copy the texels before the first write."""
        if not self.has_writes:
            self.texels, self.has_writes = self.texels.copy(), True


@dataclass(slots=True)
class Image:
    """A texture, surface or sampler with a handle; a sampler has no levels."""

    description: Texture | Surface | Sampler
    levels: list[Level]

    @property
    def kind(self) -> str:
        """The type that `istypep` tests for."""
        if isinstance(self.description, Sampler):
            return "samplerref"
        return "texref" if isinstance(self.description, Texture) else "surfref"


@dataclass(slots=True)
class Images:
    """Every image of a launch; a texture and a surface of one array share their texels."""

    by_handle: dict[int, Image] = field(default_factory=dict[int, Image])
    _levels: dict[tuple[int, str], Level] = field(default_factory=dict["tuple[int, str]", Level])
    _handles: dict[int, int] = field(default_factory=dict[int, int])

    def get_handle(self, image: Texture | Surface | Sampler) -> int:
        """Return the handle of an image, creating it on first use."""
        number = self._handles.get(id(image))
        if number is None:
            number = self._handles[id(image)] = HANDLE_BASE + _STEP * len(self._handles)
            self.bind(number, image)
        return number

    def bind(self, handle: int, image: Texture | Surface | Sampler) -> None:
        """Bind a handle, such as the address of a `.texref` variable, to an image."""
        arrays = [] if isinstance(image, Sampler) else [image.array, *getattr(image, "levels", ())]
        geometry = "" if isinstance(image, Sampler) else image.geometry
        self.by_handle[handle] = Image(image, [self._make_level(array, geometry) for array in arrays])

    def _make_level(self, array: Array, geometry: str) -> Level:
        key = id(array), geometry
        level = self._levels.get(key)
        if level is None:
            layers, depth, height, width, channels = shape_of(array, geometry)
            if geometry.endswith("2dms"):
                texels = array.reshape(layers, height, width, depth, channels).transpose(0, 3, 1, 2, 4)
            else:
                texels = array.reshape(layers, depth, height, width, channels)
            level = self._levels[key] = Level(array, np.ascontiguousarray(texels))
        return level

    def write_back(self) -> None:
        """Copy texels that kernels changed to the caller's arrays."""
        for level in self._levels.values():
            if level.has_writes:
                level.source[...] = level.texels.reshape(level.source.shape)
