"""Shared parts of texture and surface instructions: handles to images, coordinates of lanes, results to registers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from pyptx.isa.model import Kind
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.base.lanes import Lanes
from pyptx.sim.images.objects import Sampler, Surface, Texture
from pyptx.sim.images.storage import Image
from pyptx.sim.rules import faults
from pyptx.sim.semantics.vocabulary import Signature
from pyptx.sim.state.memory import Site

_PARAMETERS = 1 << 31
"""Numbers below are offsets of parameters, not addresses."""


def list_input_names(signature: Signature) -> tuple[str, ...]:
    """Return the names of the inputs, in the order of a function's arguments: those after the handle, then the other
    operands."""
    names = list[str]()
    for operand in signature:
        if operand.kind is Kind.ADDRESS:
            names += [part.name for part in operand.parts[1:]]
        elif operand.access == "r" and operand.kind is not Kind.PIPE:
            names.append(operand.name)
    return tuple(names)


def find_positions(lanes: Lanes, mask: Array | None) -> Array:
    """Return the positions of the executing lanes."""
    return np.arange(lanes.n) if mask is None else np.flatnonzero(np.broadcast_to(mask, lanes.n))


def read_column(value: Value, dtype: str, lanes: Lanes, positions: Array) -> Array:
    """Return a 32-bit input of the executing lanes, its bits viewed as a dtype."""
    values = np.broadcast_to(np.atleast_1d(np.asarray(value)), lanes.n)[positions]
    target_dtype = np.dtype(dtype)
    return values.view(target_dtype) if values.dtype.itemsize == target_dtype.itemsize else values.astype(target_dtype)


def read_handles(site: Site, space: str, address: Value, lanes: Lanes, positions: Array) -> Array:
    """Return the handle of each executing lane: an address, a parameter's value, or a register."""
    if space == "param" or (np.ndim(address) == 0 and int(address) < _PARAMETERS):
        raw = site.memory.params.data[int(address) : int(address) + 8]
        return np.full(len(positions), int.from_bytes(raw.tobytes(), "little"), np.uint64)
    return np.broadcast_to(np.atleast_1d(np.asarray(address, np.uint64)), lanes.n)[positions]


def iterate_images(site: Site, kind: Any, numbers: Array) -> Iterator[tuple[Image, Array]]:
    """Yield each image that lanes name, with the positions of those lanes."""
    for number in np.unique(numbers):
        image = site.memory.images.by_handle.get(int(number))
        if image is None or not isinstance(image.description, kind):
            kind_name = "nothing" if image is None else f"a {image.kind}"
            text = f"0x{int(number):x} names {kind_name}, expected a {_KINDS[kind]}"
            remedy = (
                "pass sim.Texture, sim.Surface or sim.Sampler as the argument, or bind the variable with images={…}"
            )
            raise faults.error(faults.IMAGE, site.origin, text, help=remedy)
        yield image, np.flatnonzero(numbers == number)


_KINDS: dict[Any, str] = {
    Texture: ".texref", Sampler: ".samplerref", Surface: ".surfref", Texture | Sampler: ".texref or .samplerref",
}  # fmt: skip


def find_sampler(site: Site, image: Image, value: Value, lanes: Lanes, positions: Array) -> Sampler:
    """Return the sampler of a lookup: the operand's, or the texture's own."""
    if value is None:
        assert isinstance(image.description, Texture)
        return image.description.sampler
    numbers = read_handles(site, "", value, lanes, positions)
    samplers = [image_of_sampler.description for image_of_sampler, _ in iterate_images(site, Sampler, numbers)]
    if len(samplers) > 1:
        raise faults.error(faults.IMAGE, site.origin, "lanes that use one texture name different samplers")
    assert isinstance(samplers[0], Sampler)
    return samplers[0]


def write_columns(outs: tuple[Array | None, ...], positions: Array, columns: list[Array]) -> None:
    """Write results to the registers of the executing lanes; there may be fewer registers than columns."""
    for out, values in zip(outs, columns, strict=False):
        if out is not None:
            is_same_size = values.dtype.itemsize == out.dtype.itemsize
            out[positions] = values.view(out.dtype) if is_same_size else values.astype(out.dtype)


_ORDERS = {1: 0x10B0, 2: 0x10B2, 4: 0x10B5}
"""OpenCL's channel orders R, RG, RGBA."""
_DATA = {"i1": 0x10D7, "i2": 0x10D8, "i4": 0x10D9, "u1": 0x10DA, "u2": 0x10DB, "u4": 0x10DC, "f2": 0x10DD, "f4": 0x10DE}
_FRACTIONS = {"i1": 0x10D0, "i2": 0x10D1, "u1": 0x10D2, "u2": 0x10D3}


def find_channel_codes(dtype: np.dtype[Any], channels: int, fractions: bool) -> tuple[int, int]:
    """Return OpenCL's numbers of a channel data type and a channel order."""
    return (_FRACTIONS if fractions else _DATA)[dtype.str[1:]], _ORDERS[channels]
