"""spdecompress: kept elements back in their places, among zeros. Elements, indices and groups lie from the lowest bits
of the first register on. What selects elements for spcompress, its descriptor, is not described anywhere."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array
from pyptx.sim.semantics.access import as_tuple
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, value


def _spdecompress(match: Match, signature: Signature) -> Operation | None:
    flat = ".".join(match.modifiers)
    shape_match = re.search(r"x(\d+)\.sp::(\d+):(\d+)\.b(\d+)\.b(\d+)", flat)
    assert shape_match is not None
    groups, nonzeros, size, element, index = map(int, shape_match.groups())
    return value(partial(_decompress, groups, nonzeros, size, element, index))


def _decompress(groups: int, nonzeros: int, size: int, element: int, index: int, metadata: Any, values: Any) -> Any:
    words = [np.asarray(word) for word in as_tuple(metadata)]
    parts = [np.asarray(word) for word in as_tuple(values)]
    lanes = max(word.size for word in (*words, *parts))
    elements = np.zeros((groups * size, lanes), np.uint32)
    lane_index = np.arange(lanes)
    for number in range(groups * nonzeros):
        place = _extract_bits(words, number * index, index).astype(np.int64)
        # An index beyond the group has no meaning: skip its element.
        inside = np.broadcast_to(place < size, lanes)
        row = number // nonzeros * size + np.broadcast_to(np.minimum(place, size - 1), lanes)
        elements[row[inside], lane_index[inside]] = np.broadcast_to(
            _extract_bits(parts, number * element, element), lanes
        )[inside]
    per = 32 // element
    registers = [
        np.bitwise_or.reduce([elements[word * per + n] << np.uint32(n * element) for n in range(per)])
        for word in range(len(elements) // per)
    ]
    return tuple(registers) if len(registers) > 1 else registers[0]


def _extract_bits(words: list[Array], start: int, width: int) -> Array:
    """Return bits of a number in several registers; they never cross registers."""
    return (words[start // 32] >> np.uint32(start % 32)) & np.uint32((1 << width) - 1)


BUILDERS: dict[str, Builder] = {"spdecompress": _spdecompress}
