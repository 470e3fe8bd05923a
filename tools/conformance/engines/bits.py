"""Random bits of number formats, of several kinds that show how numbers are summed and rounded."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from pyptx.numbers import FORMATS, is_float

Array = np.ndarray[Any, Any]
KINDS = ("near", "wide", "few", "ties", "tiny", "huge", "specials", "bits")
_LAYOUTS = {"f16": (16, 10), "bf16": (16, 7), "tf32": (32, 23), "f32": (32, 23), "f64": (64, 52), "e4m3": (8, 3),
            "e5m2": (8, 2)}  # fmt: skip
"""Bits of storage and of the fraction."""


def draw_words(random: Random, name: str, kind: str, count: int) -> Array:
    """Return `count` numbers of a format as their bits."""
    if name == "b1":
        return np.frombuffer(random.randbytes(count), "u1").copy()
    width = _LAYOUTS[name][0] if name in _LAYOUTS else FORMATS[name].width
    raw = np.frombuffer(random.randbytes(count * width // 8), f"u{width // 8}").copy()
    if not is_float(name):
        return _draw_integers(random, name, kind, raw)
    if kind == "bits":
        return raw
    fraction_bits = _LAYOUTS[name][1]
    one = raw.dtype.type(1)
    bias = (1 << width - fraction_bits - 2) - 1
    low, high = _choose_exponents(name, kind, bias)
    span = np.frombuffer(random.randbytes(count * 4), "u4")
    field = (low + span % np.uint32(high - low + 1)).astype(raw.dtype)
    fraction = raw & raw.dtype.type((1 << fraction_bits) - 1)
    if name == "tf32":
        fraction &= ~raw.dtype.type((1 << 13) - 1)
    if kind == "ties":
        unit = 1 << 13 if name == "tf32" else 1
        choices = np.array([0, unit, (1 << fraction_bits) - unit, 1 << fraction_bits - 1], raw.dtype)
        fraction = choices[(span >> 20) % 4]
    sign = raw >> raw.dtype.type(width - 1) << raw.dtype.type(width - 1)
    words: Array = sign | field << raw.dtype.type(fraction_bits) | fraction
    if kind in ("few", "void"):
        words = np.where((span >> 16) % 8 == 0, words, sign)
    if kind == "specials":
        top = (one << raw.dtype.type(width - 1 - fraction_bits)) - one
        infinity = top << raw.dtype.type(fraction_bits)
        rare = np.array([infinity, infinity | one, 0, 1, infinity - one, raw[0] & infinity - one], raw.dtype)
        words = np.where((span >> 16) % 48 == 0, sign | rare[(span >> 24) % len(rare)], words)
    return words.astype(raw.dtype)


def _draw_integers(random: Random, name: str, kind: str, raw: Array) -> Array:
    if kind in ("bits", "near", "wide"):
        return raw
    width = raw.dtype.itemsize * 8
    low, high = (1 << width - 1, (1 << width - 1) - 1) if name.startswith("s") else (0, (1 << width) - 1)
    edges = np.array([low, high, 0, 1, high - 1, low + 1], raw.dtype)
    choice = np.frombuffer(random.randbytes(len(raw)), "u1")
    return np.where(choice % 8 < 6, edges[choice // 8 % len(edges)], raw)


def _choose_exponents(name: str, kind: str, bias: int) -> tuple[int, int]:
    """Return the smallest and the largest exponent field."""
    most = 2 * bias
    wide = {"f16": 12, "bf16": 16, "tf32": 16, "f32": 16, "f64": 40}.get(name, bias - 1)
    match kind:
        case "wide" | "few":
            return max(1, bias - wide), min(most, bias + wide)
        case "tiny":
            return (0, 3) if bias < 100 else (bias // 3, bias * 2 // 3)
        case "low":
            return bias // 4, bias // 2
        case "void":
            return 5, 20
        case "up":
            return bias - 10, most
        case "huge":
            return (most - 4, most) if bias < 100 else (bias * 4 // 3, bias * 5 // 3)
        case _:
            return bias - 2, bias + 1
