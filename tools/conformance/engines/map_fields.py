"""Tensor maps themselves: what the driver encodes or refuses, and the bits that `tensormap.replace` writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Any

from pyptx.tensormap import ElementType, Fill, Im2col, Im2colMode, Interleave, L2Promotion, Swizzle, TensorMap, encode
from tools.conformance.engines.cases import Case, Entry, Inputs
from tools.conformance.engines.tensor_maps import draw_im2col, draw_tiled
from tools.conformance.engines.text import make_entry

_WIDE_FIELDS = ("box_dim", "global_dim", "element_stride")
_CHOICES = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "fill_mode": 2}


def list_cases() -> Iterator[Case]:
    """Yield maps to encode, valid and not, and replacements."""
    for number in range(1500):
        yield Case(f"map/{number}", None, _draw_map)
    for field in _WIDE_FIELDS:
        for axis in range(5):
            yield from _list_replacements(f"{field}_{axis}", f"{field}.global.b1024.b32 [%out], {axis}, %c0")
    for axis in range(4):
        yield from _list_replacements(f"stride_{axis}", f"global_stride.global.b1024.b64 [%out], {axis}, %x")
    yield from _list_replacements("address", "global_address.global.b1024.b64 [%out], %x")
    yield from _list_replacements("rank", "rank.global.b1024.b32 [%out], %c0")
    for field, count in _CHOICES.items():
        for value in range(count):
            yield from _list_replacements(f"{field}_{value}", f"{field}.global.b1024.b32 [%out], {value}")


def _list_replacements(name: str, text: str) -> Iterator[Case]:
    entry = _make_entry(f"replace_{name}", text)
    for number in range(2):
        yield Case(f"replace/{name}/{number}", entry, partial(_draw_replacement, name))


def _make_entry(name: str, text: str) -> Entry:
    body = f"""ld.global.u32 %c0, [%table]; ld.global.u64 %x, [%table];
@%first tensormap.replace.tile.{text};"""
    return make_entry(name, body, size=16, threads=32)


def _draw_replacement(name: str, random: Random) -> Inputs:
    tensor = replace(draw_tiled(random, random.randint(1, 5)), address=16 * random.getrandbits(40))
    limits = {"box_dim": (1, 256), "element_stride": (1, 8), "rank": (0, 4), "global_dim": (1, 2**32 - 1)}
    low, high = next((value for key, value in limits.items() if name.startswith(key)), (0, 2**36))
    value = random.randint(low, high)
    if name.startswith(("stride", "address")):
        value *= 16
    # The driver's sums, in the second half, have no instruction.
    return Inputs(value.to_bytes(8, "little") + bytes(8), bytes(16), encode(tensor)[:64] + bytes(64))


def _draw_map(random: Random) -> Inputs:
    """Return a map that is valid, or has one or two fields changed to anything near a limit."""
    rank = random.randint(1, 5)
    tensor = (
        draw_im2col(random, max(rank, 3))
        if random.random() < 0.3
        else draw_tiled(random, rank, interleaved=rank > 2 and random.random() < 0.25)
    )
    for _ in range(random.choice((0, 1, 1, 2))):
        tensor = _change(random, tensor)
    return Inputs(b"", b"", b"", tensor)


def _change(random: Random, tensor: TensorMap) -> TensorMap:
    """Return the map with one field changed."""
    axis = random.randrange(tensor.rank)
    changes: list[dict[str, Any]] = [
        {"dtype": random.choice(list(ElementType))},
        {"address": random.choice((8, 16, 32, 48, 1 << 40))},
        {"dims": _put(tensor.dims, axis, random.choice((1, 2, 255, 65536, 2**31, 2**32 - 1, 2**32)))},
        {"element_strides": _put(tensor.element_strides, axis, random.choice((1, 2, 7, 8, 9)))},
        {"swizzle": random.choice([s for s in Swizzle if s.driver_value is not None])},
        {"interleave": random.choice(list(Interleave))},
        {"fill": random.choice(list(Fill))},
        {"l2_promotion": random.choice(list(L2Promotion))},
    ]
    if tensor.strides:
        index = random.randrange(len(tensor.strides))
        value = random.choice((0, 8, 16, 32, 48, 2**36, 2**40 - 16, 2**40 - 32, 2**40))
        changes.append({"strides": _put(tensor.strides, index, value)})
    if tensor.im2col is None:
        changes += [{"box": _put(tensor.box, axis, random.choice((1, 4, 8, 16, 32, 64, 128, 255, 256)))}] * 3
    else:
        changes += [{"im2col": _change_corners(random, tensor.im2col)}] * 4
    return replace(tensor, **random.choice(changes))


def _change_corners(random: Random, box: Im2col) -> Im2col:
    index = random.randrange(len(box.lower))
    corner = random.choice((-32768, -129, -128, -17, -16, -2, 0, 3, 15, 16, 127, 128, 32767))
    return random.choice(
        (
            replace(box, lower=_put(box.lower, index, corner)),
            replace(box, upper=_put(box.upper, index, corner)),
            replace(box, channels=random.choice((1, 4, 8, 16, 32, 64, 128, 256, 257))),
            replace(box, pixels=random.choice((1, 2, 255, 256, 257, 1023, 1024, 1025))),
            replace(box, lower=box.lower[:1], upper=box.upper[:1], mode=Im2colMode.W),
        )
    )


def _put(values: tuple[int, ...], index: int, value: int) -> tuple[int, ...]:
    return (*values[:index], value, *values[index + 1 :])
