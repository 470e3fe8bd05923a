"""Manual: Texture Instructions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.images import lookup
from pyptx.sim.images.objects import ADDRESSES, FILTERS, Sampler, Texture, shape_of
from pyptx.sim.images.storage import Image, Level
from pyptx.sim.rules import faults
from pyptx.sim.semantics import images
from pyptx.sim.semantics.access import as_tuple
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, lanes, memory
from pyptx.sim.state.memory import Site

Outputs = tuple[Array | None, ...]
_RANK = {"1d": 1, "2d": 2, "3d": 3, "a1d": 1, "a2d": 2, "cube": 2, "acube": 2, "2dms": 2, "a2dms": 2}
_COMPONENTS = ("r", "g", "b", "a")
_CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))
"""The texels of `tld4`, counter-clockwise from the lower left."""


def _tex(match: Match, signature: Signature) -> Operation | None:
    geometry = match.chosen.get("geom") or next(m for m in match.modifiers if m in _RANK)
    return memory(partial(_lookup, geometry, match.modifiers, images.list_input_names(signature)))


def _lookup(
    geometry: str, modifiers: tuple[str, ...], names: tuple[str, ...],
    site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Outputs, *ins: Value,
) -> None:  # fmt: skip
    """Look up a texture, or fetch the footprint of a component (`tld4`)."""
    positions = images.find_positions(lanes, mask)
    if not len(positions):
        return
    operands = dict(zip(names, ins, strict=False))
    integers = modifiers[-1] == "s32"
    numbers = images.read_handles(site, space, address, lanes, positions)
    texels: Array | None = None
    for image, part in images.iterate_images(site, Texture, numbers):
        image_positions = positions[part]
        _check_geometry(site, image, geometry)
        sampler = images.find_sampler(site, image, operands.get("b"), lanes, image_positions)
        layer, coordinates = _read_coordinates(geometry, integers, operands["c"], lanes, image_positions)
        request = _Request(image, sampler, geometry, layer, coordinates, integers, operands, lanes, image_positions)
        values = request.fetch_footprint(modifiers[0]) if modifiers[0] in _COMPONENTS else request.sample()
        texels = np.zeros((len(positions), 4), values.dtype) if texels is None else texels
        texels[part] = values
    assert texels is not None
    _write_results(site, modifiers, outs, positions, texels)


def _check_geometry(site: Site, image: Image, geometry: str) -> None:
    assert isinstance(image.description, Texture)
    if image.description.geometry != geometry:
        text = f"the instruction reads .{geometry}, but the texture is .{image.description.geometry}"
        raise faults.error(faults.IMAGE, site.origin, text)


def _read_coordinates(
    geometry: str, integers: bool, value: Value, lanes: Lanes, positions: Array
) -> tuple[Array, list[Array]]:
    """Return the layer and x, y, z of each lane; the sample number is in z."""
    parts = list(as_tuple(value))
    dtype = "i4" if integers else "f4"
    nothing = np.zeros(len(positions), np.int64)
    layer = nothing
    if geometry.startswith("a"):
        layer = images.read_column(parts.pop(0), "u4", lanes, positions).astype(np.int64)
    sample = images.read_column(parts.pop(0), "u4", lanes, positions) if geometry.endswith("2dms") else None
    if geometry.endswith("cube"):
        face, s, t = lookup.select_cube_face(*(images.read_column(p, "f4", lanes, positions) for p in parts[:3]))
        return layer * 6 + face, [s, t, nothing]
    columns = [images.read_column(p, dtype, lanes, positions) for p in parts[: _RANK[geometry]]]
    columns += [nothing] * (3 - len(columns))
    if sample is not None:
        columns[2] = sample
    return layer, columns


class _Request:
    """One lookup of lanes that name the same texture."""

    def __init__(
        self, image: Image, sampler: Sampler, geometry: str, layer: Array, coordinates: list[Array], integers: bool,
        operands: dict[str, Value], lanes: Lanes, positions: Array,
    ) -> None:  # fmt: skip
        self.image, self.sampler, self.geometry = image, sampler, geometry
        self.layer, self.coordinates, self.integers = layer, coordinates, integers
        self.operands, self.lanes, self.positions = operands, lanes, positions
        self.rank = _RANK[geometry]
        self.offset = self._read_vector("e", "i4")
        depth = operands.get("f")
        self.compare = None if depth is None else images.read_column(depth, "f4", lanes, positions)

    def _read_vector(self, name: str, dtype: str) -> list[Array] | None:
        value = self.operands.get(name)
        if value is None:
            return None
        columns = [images.read_column(p, dtype, self.lanes, self.positions) for p in as_tuple(value)[: self.rank]]
        return columns + [np.zeros(len(self.positions), columns[0].dtype)] * (3 - len(columns))

    def sample(self) -> Array:
        """Return the filtered texels, at the mipmap level of the instruction."""
        levels = self.image.levels
        detail = self._compute_level()
        if detail is None or len(levels) == 1:
            return self._sample_at(levels[0], np.arange(len(self.positions)))
        detail = np.clip(np.nan_to_num(detail), 0, len(levels) - 1)
        if self.sampler.mip_filter == "nearest":
            return self._sample_by_level(np.floor(detail + 0.5).astype(np.int64))
        low = np.floor(detail).astype(np.int64)
        first = self._sample_by_level(low)
        second = self._sample_by_level(np.minimum(low + 1, len(levels) - 1))
        share = (np.floor((detail - low) * 256 + 0.5) / 256)[:, None]
        return (first * (1 - share) + second * share).astype(first.dtype)

    def _sample_by_level(self, levels: Array) -> Array:
        texels: Array | None = None
        for number in np.unique(levels):
            part = np.flatnonzero(levels == number)
            values = self._sample_at(self.image.levels[int(number)], part)
            texels = np.zeros((len(levels), 4), values.dtype) if texels is None else texels
            texels[part] = values
        assert texels is not None
        return texels

    def _sample_at(self, level: Level, part: Array) -> Array:
        layer, coordinates = self.layer[part], [c[part] for c in self.coordinates]
        offset = None if self.offset is None else [o[part] for o in self.offset]
        compare = None if self.compare is None else self.compare[part]
        if self.integers:
            indices = [c.astype(np.int64) for c in coordinates]
            if offset is not None:
                indices = [i + o for i, o in zip(indices, offset, strict=True)]
            return lookup.look_up_texels(self.image, level, self.sampler, layer, indices, compare)
        texel_positions = lookup.compute_positions(self.image, level, self.sampler, coordinates, self.rank)
        return lookup.sample(self.image, level, self.sampler, layer, texel_positions, self.rank, offset, compare)

    def _compute_level(self) -> Array | None:
        level = self.operands.get("lod")
        if level is not None:
            return images.read_column(level, "i4" if self.integers else "f4", self.lanes, self.positions).astype(
                np.float64
            )
        if "dPdx" not in self.operands:
            return None
        sizes = lookup.level_size(self.image.levels[0])
        lengths = list[Array]()
        for name in ("dPdx", "dPdy"):
            vector = self._read_vector(name, "f4") or []
            gradient = [
                v.astype(np.float64) * (1 if lookup.is_unnormalized(self.image, self.sampler) else size)
                for v, size in zip(vector, sizes, strict=True)
            ]
            lengths.append(np.sqrt(sum(np.square(v) for v in gradient[: self.rank])))
        with np.errstate(divide="ignore"):
            return np.log2(np.maximum(*lengths))

    def fetch_footprint(self, component: str) -> Array:
        """Return one component of the four texels that bilinear filtering would mix."""
        level = self.image.levels[0]
        texel_positions = lookup.compute_positions(self.image, level, self.sampler, self.coordinates, self.rank)
        low = [np.floor(p - 0.5).astype(np.int64) for p in texel_positions]
        shift = self.offset or [np.zeros(len(self.positions), np.int64)] * 3
        columns = list[Array]()
        for dx, dy in _CORNERS:
            indices = [low[0] + dx + shift[0], low[1] + dy + shift[1], np.zeros(len(self.positions), np.int64)]
            texels = lookup.look_up_texels(self.image, level, self.sampler, self.layer, indices, self.compare)
            columns.append(texels[:, 0 if self.compare is not None else "rgba".index(component)])
        return np.stack(columns, axis=1)


def _write_results(site: Site, modifiers: tuple[str, ...], outs: Outputs, positions: Array, texels: Array) -> None:
    kind = modifiers[-2]
    columns = [np.ascontiguousarray(texels[:, n]) for n in range(4)]
    if kind in ("f16", "f16x2"):
        if texels.dtype.kind != "f":
            raise faults.error(
                faults.IMAGE, site.origin, f".{kind} results need a texture of floats or normalized integers"
            )
        halves = [c.astype(np.float16).view(np.uint16) for c in columns]
        columns = halves
        if kind == "f16x2":
            columns = [a.astype(np.uint32) | b.astype(np.uint32) << 16 for a, b in (halves[:2], halves[2:])]
    registers = outs[: len(columns)]
    images.write_columns(registers, positions, columns)
    for resident in outs[len(columns) :]:
        if resident is not None:
            resident[positions] = True


def _txq(match: Match, signature: Signature) -> Operation | None:
    return memory(partial(_query, match.chosen["query"]))


def _query(
    query: str,
    site: Site, lanes: Lanes, mask: Array | None, space: str, address: Value, outs: Outputs, *ins: Value,
) -> None:  # fmt: skip
    positions = images.find_positions(lanes, mask)
    numbers = images.read_handles(site, space, address, lanes, positions)
    for image, part in images.iterate_images(site, Texture | Sampler if query in _OF_SAMPLER else Texture, numbers):
        image_positions = positions[part]
        level = (
            np.zeros(len(image_positions), np.int64)
            if not ins
            else images.read_column(ins[0], "u4", lanes, image_positions).astype(np.int64)
        )
        images.write_columns(outs, image_positions, [_query_attribute(image, query, level).astype(np.uint32)])


def _query_attribute(image: Image, query: str, level: Array) -> Array:
    view = image.description
    if isinstance(view, Texture) and query not in _OF_SAMPLER:
        widths = [lookup.level_size(image_level) for image_level in image.levels]
        axis = {"width": 0, "height": 1, "depth": 2}.get(query)
        if axis is not None:
            flat = axis == 2 and view.geometry != "3d"
            return np.array([0 if flat else size[axis] for size in widths])[np.minimum(level, len(widths) - 1)]
        return np.full(len(level), _query_texture(view, query))
    sampler = view.sampler if isinstance(view, Texture) else view
    assert isinstance(sampler, Sampler)
    if query == "filter_mode":
        number = FILTERS.index(sampler.filter)
    elif query == "force_unnormalized_coords":
        number = int(sampler.force_unnormalized)
    else:
        number = ADDRESSES.index(sampler.addresses[int(query[-1])])
    return np.full(len(level), number)


_OF_SAMPLER = ("filter_mode", "addr_mode_0", "addr_mode_1", "addr_mode_2", "force_unnormalized_coords")


def _query_texture(view: Texture, query: str) -> int:
    layers, samples, _, _, channels = shape_of(view.array, view.geometry)
    data, order = images.find_channel_codes(view.array.dtype, channels, view.unorm)
    arrays = layers if view.geometry.startswith("a") else 0
    return {
        "channel_data_type": data,
        "channel_order": order,
        "normalized_coords": int(view.normalized),
        "array_size": arrays // 6 if view.geometry == "acube" else arrays,
        "num_mipmap_levels": len(view.levels) + 1 if view.levels else 0,
        "num_samples": samples if view.geometry.endswith("2dms") else 0,
        "memory_layout": 0,
    }[query]


def _istypep(match: Match, signature: Signature) -> Operation | None:
    return lanes(partial(_is_kind, match.chosen["kind"]))


def _is_kind(kind: str, machine: Any, lanes: Lanes, handle: Value) -> Array:
    images_by_handle = machine.memory.images.by_handle
    numbers = np.broadcast_to(np.atleast_1d(handle), lanes.n)
    return np.array([int(n) in images_by_handle and images_by_handle[int(n)].kind == kind for n in numbers])


BUILDERS: dict[str, Builder] = {"tex": _tex, "tld4": _tex, "txq": _txq, "istypep": _istypep}
