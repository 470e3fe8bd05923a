"""Texture lookups: address modes, texel fetches and filtering.

CUDA programming guide, "Texture Fetching". Weights of linear filtering have eight fraction bits.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from pyptx.sim.base.formats import Array
from pyptx.sim.images.objects import Sampler, Texture
from pyptx.sim.images.storage import Image, Level

_WEIGHT = 256.0


def level_size(level: Level) -> tuple[int, int, int]:
    """Return width, height and depth."""
    _, depth, height, width, _ = level.texels.shape
    return width, height, depth


def is_unnormalized(image: Image, sampler: Sampler) -> bool:
    """Return whether coordinates are in texels."""
    assert isinstance(image.description, Texture)
    return sampler.force_unnormalized or not image.description.normalized


def fetch(image: Image, level: Level, sampler: Sampler, layer: Array, indices: list[Array], inside: Array) -> Array:
    """Return texels as `[lane, channel]` with four channels; lanes that are not `inside` get the border color."""
    texels = level.texels
    layer = np.minimum(layer, texels.shape[0] - 1)
    x, y, z = (np.clip(i, 0, size - 1) for i, size in zip(indices, level_size(level), strict=True))
    values = _convert(image, texels[layer, z, y, x])
    channels = np.zeros((len(values), 4), values.dtype)
    channels[:, 3] = 1
    channels[:, : values.shape[1]] = values
    channels[~inside] = np.asarray(sampler.border, np.float64).astype(channels.dtype)
    return channels


def _convert(image: Image, raw: Array) -> Array:
    """Convert texels to what registers receive: f32 for floats and `unorm`, else 32-bit integers."""
    assert isinstance(image.description, Texture)
    if raw.dtype.kind == "f":
        return raw.astype(np.float32)
    if not image.description.unorm:
        return raw.astype(np.uint32 if raw.dtype.kind == "u" else np.int32)
    maximum = np.iinfo(raw.dtype).max
    return np.maximum(raw.astype(np.float64) / maximum, -1.0).astype(np.float32)


def apply_address_mode(index: Array, size: int, mode: str) -> tuple[Array, Array]:
    """Return texel indices, which `fetch` clamps to the image, and which lanes do not get the border color."""
    everywhere = np.ones(len(index), bool)
    if mode == "wrap":
        return index % size, everywhere
    if mode == "mirror":
        offset = index % (2 * size)
        return np.where(offset < size, offset, 2 * size - 1 - offset), everywhere
    if mode == "clamp_to_edge":
        return index, everywhere
    return index, (index >= 0) & (index < size)


def _select_modes(image: Image, sampler: Sampler) -> tuple[str, str, str]:
    """Return the effective address modes; wrap and mirror need normalized coordinates."""
    if not is_unnormalized(image, sampler):
        return sampler.addresses
    x, y, z = ("clamp_to_edge" if mode in ("wrap", "mirror") else mode for mode in sampler.addresses)
    return x, y, z


def look_up_texels(
    image: Image, level: Level, sampler: Sampler, layer: Array, indices: list[Array], compare: Array | None = None
) -> Array:
    """Return the texels at integer coordinates, after applying the address mode of each dimension."""
    inside, texel_indices = np.ones(len(layer), bool), list[Array]()
    for index, size, mode in zip(indices, level_size(level), _select_modes(image, sampler), strict=True):
        texel_index, within = apply_address_mode(index, size, mode)
        texel_indices.append(texel_index)
        inside &= within
    values = fetch(image, level, sampler, layer, texel_indices, inside)
    return values if compare is None else _compare(values, sampler, compare)


def _compare(texels: Array, sampler: Sampler, reference: Array) -> Array:
    results = np.zeros(texels.shape, np.float32)
    results[:, 3] = 1
    results[:, 0] = getattr(np, sampler.compare)(reference, texels[:, 0])
    return results


def compute_positions(image: Image, level: Level, sampler: Sampler, coordinates: list[Array], rank: int) -> list[Array]:
    """Return coordinates in texels, as float64; dimensions that the geometry lacks are 0.5."""
    axes = list[Array]()
    for axis, size in enumerate(level_size(level)):
        if axis >= rank:
            axes.append(np.full(len(coordinates[0]), 0.5))
            continue
        position = coordinates[axis].astype(np.float64)
        position = position if is_unnormalized(image, sampler) else position * size
        axes.append(np.clip(position, 0, size) if sampler.addresses[axis] == "clamp_ogl" else np.nan_to_num(position))
    return axes


def sample(
    image: Image, level: Level, sampler: Sampler, layer: Array, positions: list[Array], rank: int,
    offset: list[Array] | None, compare: Array | None,
) -> Array:  # fmt: skip
    """Return the filtered texels at positions in texels."""
    shift = offset or [np.zeros(len(layer), np.int64)] * 3
    if sampler.filter == "nearest" or not _is_filterable(image):
        indices = [np.floor(p).astype(np.int64) + s for p, s in zip(positions, shift, strict=True)]
        return look_up_texels(image, level, sampler, layer, indices, compare)
    low = [np.floor(p - 0.5) for p in positions]
    weights = [np.floor((p - 0.5 - i) * _WEIGHT + 0.5) / _WEIGHT for p, i in zip(positions, low, strict=True)]
    total = np.zeros((len(layer), 4))
    for corner in product((0, 1), repeat=rank):
        steps = (*corner, 0, 0)[:3]
        indices = [i.astype(np.int64) + d + s for i, d, s in zip(low, steps, shift, strict=True)]
        indices[rank:] = [np.zeros(len(layer), np.int64)] * (3 - rank)
        weight = np.ones(len(layer))
        for axis, step in enumerate(corner):
            weight = weight * (weights[axis] if step else 1 - weights[axis])
        texels = look_up_texels(image, level, sampler, layer, indices, compare).astype(np.float64)
        total += np.where(weight[:, None] > 0, texels, 0) * weight[:, None]
    return total.astype(np.float32)


def _is_filterable(image: Image) -> bool:
    """Return whether texels are read as floats; integers cannot be filtered linearly."""
    assert isinstance(image.description, Texture)
    return image.description.unorm or image.description.array.dtype.kind == "f"


def select_cube_face(x: Array, y: Array, z: Array) -> tuple[Array, Array, Array]:
    """Return the face of a direction and its s and t, from 0 to 1. Faces 0 to 5 are +x, -x, +y, -y, +z, -z."""
    x, y, z = (v.astype(np.float64) for v in (x, y, z))
    ax, ay, az = abs(x), abs(y), abs(z)
    along_x, along_y = (ax >= ay) & (ax >= az), ay >= az
    face = np.where(along_x, x < 0, np.where(along_y, 2 + (y < 0), 4 + (z < 0))).astype(np.int64)
    major = np.choose(face // 2, [ax, ay, az])
    s = np.choose(face, [-z, z, x, x, x, -x])
    t = np.choose(face, [-y, -y, z, -z, -y, -y])
    with np.errstate(invalid="ignore", divide="ignore"):
        return face, (s / major + 1) / 2, (t / major + 1) / 2
