"""Video instructions on whole registers, without selectors. Manual: Scalar Video Instructions, SIMD Video
Instructions."""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case
from tools.conformance.references.words import Builder, Scalar, clamp, read, signed

_INTERMEDIATE = 34
"""Bits of an intermediate result; ptxas keeps the same number for vshl."""
_TESTS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip
_PRIMARY: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": lambda a, b: min(a, b),
    "vmax": lambda a, b: max(a, b),
    "vavrg": lambda a, b: (a + b + 1) >> 1 if a + b >= 0 else -((-(a + b) + 1) >> 1),
}
_SECOND: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
}


def _second(modifiers: tuple[str, ...], value: int, result: str, words: tuple[int, ...]) -> int:
    """Return the result of the second operation; without one, the result is merged into a third operand. ptxas compares
    in 64 bits; the type of the result decides whether signed."""
    operation = next((m for m in modifiers[2:] if m in _SECOND), None)
    if operation is None or len(words) < 3:
        return value & 0xFFFFFFFF
    wide = f"{result[0]}64"
    return _SECOND[operation](read(value, wide), read(read(words[2], result), wide)) & 0xFFFFFFFF


def _scalar(primary: Callable[[int, int], int]) -> Builder:
    """The arithmetic of ptxas's code: unsigned words saturate only at zero, and the low word of a sum or difference is
    passed on as signed."""

    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        result, first, second = modifiers[:3]

        def whole(*words: int) -> int:
            value = primary(read(words[0], first), read(words[1], second))
            if "sat" in modifiers:
                value = clamp(value, result) if result == "s32" else max(value, 0)
            value = read(value, "s32") if case.opcode in ("vadd", "vsub") else value
            return _second(modifiers, value, result, words)

        return whole

    return build


def _shift(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    result, first = modifiers[:2]

    def whole(*words: int) -> int:
        amount = words[1] & 31 if "wrap" in modifiers else min(words[1], 32)
        source = read(words[0], first)
        value = source << amount if case.opcode == "vshl" else source >> amount
        if "sat" in modifiers:
            value = read(clamp(signed(value, _INTERMEDIATE), result), "s32")
        return _second(modifiers, value, result, words)

    return whole


def _vset(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    first, second, test = modifiers[:3]

    def whole(*words: int) -> int:
        value = int(_TESTS[test](read(words[0], first), read(words[1], second)))
        return _second(modifiers, value, first, words)

    return whole


def _multiply_add(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    """vmad as in ptxas's code for sm_90: the words are multiplied as signed (IMAD.WIDE) whatever their types, and c is
    signed. The manual extends words by their types, which differs only for words with their top bit set. The result is
    unsigned, and therefore shifted and saturated as such, only where both factors are; the type of d has no effect."""
    shift = next((int(m[3:]) for m in modifiers if m.startswith("shr")), 0)
    unsigned = modifiers[1][0] == modifiers[2][0] == "u"

    def whole(a: int, b: int, c: int) -> int:
        total = read(a, "s32") * read(b, "s32") + read(c, "s32") + ("po" in modifiers)
        total = signed(read(total, "u64") >> shift, 64) if unsigned else total >> shift
        return (clamp(total, "u32" if unsigned else "s32") if "sat" in modifiers else total) & 0xFFFFFFFF

    return whole


def _simd(primary: Callable[[int, int], int] | None) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        count = int(case.opcode[-1])
        width = 32 // count
        result, first, second = modifiers[:3] if primary else ("u32", *modifiers[:2])

        def whole(*words: int) -> int:
            lanes = [[v >> n * width for v in words[:2]] for n in range(count)]
            results = list[int]()
            for a, b in lanes:
                left, right = read(a, f"{first[0]}{width}"), read(b, f"{second[0]}{width}")
                value = primary(left, right) if primary else int(_TESTS[modifiers[2]](left, right))
                kind = f"{result[0]}{width}"
                results.append(
                    clamp(value, kind) if "sat" in modifiers else value if "add" in modifiers else read(value, kind)
                )
            if "add" in modifiers:
                return (sum(results) + words[2]) & 0xFFFFFFFF
            return sum((value & ((1 << width) - 1)) << n * width for n, value in enumerate(results))

        return whole

    return build


BUILDERS: dict[str, Builder] = {
    **{name: _scalar(function) for name, function in _PRIMARY.items() if name != "vavrg"},
    "vshl": _shift,
    "vshr": _shift,
    "vmad": _multiply_add,
    "vset": _vset,
    **{f"{name}{count}": _simd(function) for name, function in _PRIMARY.items() for count in (2, 4)},
    "vset2": _simd(None),
    "vset4": _simd(None),
}
