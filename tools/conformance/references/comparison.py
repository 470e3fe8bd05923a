"""Comparison and selection. Manual: Comparison and Selection Instructions; Half Precision Comparison Instructions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.floating_point import lanes_of
from tools.conformance.references.words import Builder, Scalar, bits_of, read

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip
_BOOLEANS: dict[str, Callable[[int, int], int]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _make_comparison(relation: str, name: str, flush: bool) -> Callable[[int, int], bool]:
    """Return the comparison of two codes of a type."""
    if name not in f.WIDTHS:
        kind = name.replace("b", "u") if relation not in ("lo", "ls", "hi", "hs") else f"u{bits_of(name)}"
        test = _ORDERED[relation]
        return lambda a, b: test(read(a, kind), read(b, kind))

    def floats(a: int, b: int) -> bool:
        left, right = f.decode(a, name, flush), f.decode(b, name, flush)
        missing = left.missing or right.missing
        if relation in ("num", "nan"):
            return missing == (relation == "nan")
        accepts_nan = relation.endswith("u") and len(relation) == 3
        if missing:
            return accepts_nan
        return _ORDERED[relation[:2]](left.rank, right.rank)

    return floats


def _parts(modifiers: tuple[str, ...]) -> tuple[str, str | None, bool]:
    return modifiers[0], next((m for m in modifiers[1:] if m in _BOOLEANS), None), "ftz" in modifiers


def _setp(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    relation, boolean, flush = _parts(modifiers)
    name, count = lanes_of(modifiers[-1])
    test = _make_comparison(relation, name, flush)
    two = len(case.outputs) == 2

    def whole(a: int, b: int, c: int = 1) -> int | tuple[int, ...]:
        join = _BOOLEANS[boolean or "and"]
        if count == 2:
            return tuple(int(join(test(a >> n * 16 & 0xFFFF, b >> n * 16 & 0xFFFF), c)) for n in (0, 1))
        holds = test(a, b)
        results = int(join(holds, c)), int(join(not holds, c))
        return results if two else results[0]

    return whole


def _set(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    relation, boolean, flush = _parts(modifiers)
    result, (name, count) = modifiers[-2], lanes_of(modifiers[-1])
    test = _make_comparison(relation, name, flush)
    true_code = {"f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "f16x2": 0x3C00, "bf16x2": 0x3F80}.get(
        result, (1 << bits_of(result)) - 1
    )
    width = 16 if count == 2 else bits_of(result)
    if count == 2 and result in ("u32", "s32"):
        true_code = 0xFFFF
    if count == 2 and result[-2:] != "x2" and result not in ("u32", "s32"):
        return None

    def whole(a: int, b: int, c: int = 1) -> int:
        result = 0
        for lane in range(count):
            left, right = (v >> lane * 16 & 0xFFFF if count == 2 else v for v in (a, b))
            result |= (true_code if _BOOLEANS[boolean or "and"](test(left, right), c) else 0) << lane * width
        return result

    return whole


def _selp(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    def whole(a: int, b: int, c: int) -> int:
        return a if c else b

    return whole


def _slct(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    flush = "ftz" in modifiers

    def whole(a: int, b: int, c: int) -> int:
        if modifiers[-1] == "s32":
            return a if read(c, "s32") >= 0 else b
        number = f.decode(c, "f32", flush)
        return a if not number.missing and number.rank >= 0 else b

    return whole


BUILDERS: dict[str, Builder] = {"setp": _setp, "set": _set, "selp": _selp, "slct": _slct}
