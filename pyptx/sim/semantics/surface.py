"""Manual: Surface Instructions. Bytes of a row are counted by `.b`, texels by `.p`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.images.objects import Surface, shape_of
from pyptx.sim.images.storage import Image
from pyptx.sim.rules import faults
from pyptx.sim.semantics import images
from pyptx.sim.semantics.access import as_tuple
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, memory
from pyptx.sim.state.memory import Site

_GEOMETRIES = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2}
_COUNTS = {"v2": 2, "v4": 4}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add.at, "min": np.minimum.at, "max": np.maximum.at, "and": np.bitwise_and.at, "or": np.bitwise_or.at,
}  # fmt: skip


def _build_access(operation: Callable[..., None], match: Match) -> Operation:
    geometry = next(m for m in match.modifiers if m in _GEOMETRIES)
    count = next((_COUNTS[m] for m in match.modifiers if m in _COUNTS), 1)
    return memory(partial(operation, geometry, match.modifiers, count))


def _suld(match: Match, signature: Signature) -> Operation | None:
    return _build_access(_load, match)


def _sust(match: Match, signature: Signature) -> Operation | None:
    return _build_access(_store, match)


def _sured(match: Match, signature: Signature) -> Operation | None:
    return _build_access(_reduce, match)


def _load(
    geometry: str, modifiers: tuple[str, ...], count: int, site: Site, lanes: Lanes, mask: Array | None, space: str,
    address: Value, outs: tuple[Array | None, ...], coordinates: Value,
) -> None:  # fmt: skip
    unit = np.dtype(f"u{int(modifiers[-2][1:]) // 8}")
    for image, positions in _group_by_image(site, geometry, space, address, lanes, mask):
        offsets, inside = _locate_bytes(
            site, image, geometry, modifiers[-1], coordinates, unit.itemsize * count, 1, lanes, positions
        )
        flat = image.levels[0].texels.reshape(-1).view(np.uint8)
        for element, out in enumerate(outs):
            if out is None:
                continue
            values = flat[: len(flat) // unit.itemsize * unit.itemsize].view(unit)[offsets // unit.itemsize + element]
            out[positions] = np.where(inside, values, 0).astype(f"u{out.dtype.itemsize}").view(out.dtype)


def _store(
    geometry: str, modifiers: tuple[str, ...], count: int, site: Site, lanes: Lanes, mask: Array | None, space: str,
    address: Value, outs: Value, coordinates: Value, data: Value,
) -> None:  # fmt: skip
    values = as_tuple(data)
    for image, positions in _group_by_image(site, geometry, space, address, lanes, mask):
        image.levels[0].copy_before_write()
        if modifiers[0] == "p":
            _store_texels(site, image, geometry, modifiers[-1], coordinates, values, lanes, positions)
            continue
        unit = np.dtype(f"u{int(modifiers[-2][1:]) // 8}")
        offsets, inside = _locate_bytes(
            site, image, geometry, modifiers[-1], coordinates, unit.itemsize * count, 1, lanes, positions
        )
        flat = image.levels[0].texels.reshape(-1).view(unit)
        for element, value in enumerate(values):
            column = np.broadcast_to(np.atleast_1d(np.asarray(value)), lanes.n)[positions]
            bits = column.view(f"u{column.dtype.itemsize}").astype(unit)
            flat[(offsets // unit.itemsize + element)[inside]] = bits[inside]


def _store_texels(
    site: Site,
    image: Image,
    geometry: str,
    clamp: str,
    coordinates: Value,
    values: tuple[Array, ...],
    lanes: Lanes,
    positions: Array,
) -> None:
    """Store registers as components of texels, converted to the surface's format."""
    texels = image.levels[0].texels
    channels, dtype = texels.shape[-1], texels.dtype
    size = channels * dtype.itemsize
    offsets, inside = _locate_bytes(site, image, geometry, clamp, coordinates, size, size, lanes, positions)
    flat = texels.reshape(-1, channels)
    for channel, value in enumerate(values[:channels]):
        kind = {"f": "f4", "u": "u4", "i": "i4"}[dtype.kind]
        column = images.read_column(value, kind, lanes, positions)
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            column = np.clip(column, limits.min, limits.max)
        flat[(offsets // size)[inside], channel] = column.astype(dtype)[inside]


def _reduce(
    geometry: str, modifiers: tuple[str, ...], count: int, site: Site, lanes: Lanes, mask: Array | None, space: str,
    address: Value, outs: Value, coordinates: Value, data: Value,
) -> None:  # fmt: skip
    kind, bits = modifiers[-2][0], int(modifiers[-2][1:])
    width = bits // 8
    for image, positions in _group_by_image(site, geometry, space, address, lanes, mask):
        image.levels[0].copy_before_write()
        texels = image.levels[0].texels
        letter = kind if kind != "b" else ("i" if modifiers[0] == "p" and texels.dtype.kind == "i" else "u")
        unit = np.dtype(f"{'i' if letter in 'si' else 'u'}{width}")
        scale = width if modifiers[0] == "p" else 1
        offsets, inside = _locate_bytes(
            site, image, geometry, modifiers[-1], coordinates, width, scale, lanes, positions
        )
        column = np.broadcast_to(np.atleast_1d(np.asarray(data)), lanes.n)[positions]
        column = column.view(f"u{column.dtype.itemsize}").astype(f"u{width}").view(unit)
        _REDUCTIONS[modifiers[1]](texels.reshape(-1).view(unit), (offsets // width)[inside], column[inside])


def _group_by_image(
    site: Site, geometry: str, space: str, address: Value, lanes: Lanes, mask: Array | None
) -> list[tuple[Image, Array]]:
    """Return each surface that lanes name, with those lanes."""
    positions = images.find_positions(lanes, mask)
    numbers = images.read_handles(site, space, address, lanes, positions)
    groups = [(image, positions[part]) for image, part in images.iterate_images(site, Surface, numbers)]
    for image, _ in groups:
        assert isinstance(image.description, Surface)
        if image.description.geometry != geometry:
            text = f"the instruction accesses .{geometry}, but the surface is .{image.description.geometry}"
            raise faults.error(faults.IMAGE, site.origin, text)
    return groups


def _locate_bytes(
    site: Site,
    image: Image,
    geometry: str,
    clamp: str,
    coordinate_operand: Value,
    size: int,
    scale: int,
    lanes: Lanes,
    positions: Array,
) -> tuple[Array, Array]:
    """Return the byte offsets of accesses of `size` bytes and which of them take place; x counts `scale` bytes."""
    layers, depth, height, width, channels = image.levels[0].texels.shape
    row = width * channels * image.levels[0].texels.dtype.itemsize
    parts = list(as_tuple(coordinate_operand))
    layer = np.zeros(len(positions), np.int64)
    inside = np.ones(len(positions), bool)
    if geometry.startswith("a"):
        layer = images.read_column(parts.pop(0), "u4", lanes, positions).astype(np.int64)
        layer = np.minimum(layer, layers - 1)
    coordinates = [
        images.read_column(p, "i4", lanes, positions).astype(np.int64) for p in parts[: _GEOMETRIES[geometry]]
    ]
    coordinates[0] = coordinates[0] * scale
    if (coordinates[0] % min(size, 16)).any():
        raise faults.error(
            faults.IMAGE, site.origin, f"byte coordinate {coordinates[0].max()} is not a multiple of {size}"
        )
    limits = (row - size, height - 1, depth - 1)
    indices = list[Array]()
    for value, limit in zip(coordinates, limits, strict=False):
        inside &= (value >= 0) & (value <= limit)
        indices.append(np.clip(value, 0, limit))
    indices += [np.zeros(len(positions), np.int64)] * (3 - len(indices))
    if clamp == "trap" and not inside.all():
        bad = int(np.flatnonzero(~inside)[0])
        coordinates_text = ", ".join(str(int(v[bad])) for v in coordinates)
        text = f"coordinates ({coordinates_text}) are outside the surface of {width}×{height}×{depth}"
        raise faults.error(
            faults.OUT_OF_BOUNDS, site.origin, text, help="use .clamp or .zero, or check the coordinates"
        )
    offsets = ((layer * depth + indices[2]) * height + indices[1]) * row + indices[0]
    return offsets, np.ones(len(positions), bool) if clamp == "clamp" else inside


def _suq(match: Match, signature: Signature) -> Operation | None:
    return memory(partial(_query, match.chosen["query"]))


def _query(
    query: str,
    site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: tuple[Array | None, ...],
) -> None:  # fmt: skip
    positions = images.find_positions(lanes, mask)
    for image, part in images.iterate_images(
        site, Surface, images.read_handles(site, space, address, lanes, positions)
    ):
        surface = image.description
        assert isinstance(surface, Surface)
        layers, depth, height, width, channels = shape_of(surface.array, surface.geometry)
        data, order = images.find_channel_codes(surface.array.dtype, channels, False)
        number = {
            "width": width, "height": height, "depth": depth if surface.geometry == "3d" else 0,
            "channel_data_type": data, "channel_order": order,
            "array_size": layers if surface.geometry.startswith("a") else 0, "memory_layout": int(surface.linear),
        }[query]  # fmt: skip
        images.write_columns(outs, positions[part], [np.full(len(part), number, np.uint32)])


BUILDERS: dict[str, Builder] = {"suld": _suld, "sust": _sust, "sured": _sured, "suq": _suq}
