"""Integer arithmetic and logic. Manual: Integer Arithmetic Instructions, Logic and Shift Instructions."""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case
from tools.conformance.references.words import (
    Binary,
    Builder,
    Function,
    Scalar,
    bits_of,
    clamp,
    read,
    signed,
)  # fmt: skip


def _lanewise(name: str, function: Callable[..., int], saturate: bool) -> Scalar:
    """Apply a function of numbers to each lane of operands of a type: `u16x2` has two."""
    element, _, count = name.partition("x")
    width, lanes = bits_of(element), int(count or 1)
    mask = (1 << width) - 1

    def whole(*operands: int) -> int:
        word = 0
        for lane in range(lanes):
            value = function(*(read(v >> lane * width, element) for v in operands))
            word |= ((clamp(value, element) if saturate else value) & mask) << lane * width
        return word

    return whole


def _positive(function: Function) -> Callable[..., int]:
    whole: Callable[..., int] = function
    return lambda *operands: max(whole(*operands), 0)


def _simple(function: Function) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        name = "b1" if modifiers[-1] == "pred" else modifiers[-1]
        if name[0] not in "usb" or not name[1].isdigit():
            return None
        if "relu" in modifiers:
            return _lanewise(name, _positive(function), False)
        return _lanewise(name, function, "sat" in modifiers)

    return build


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _mul(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    if modifiers[0] not in ("lo", "hi", "wide") or name[0] not in "us":
        return None
    return _product(modifiers[0], name, None)


def _mad(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    if modifiers[0] not in ("lo", "hi", "wide") or name[0] not in "us":
        return None
    return _product(modifiers[0], name, clamp if "sat" in modifiers else _keep)


def _keep(value: int, name: str) -> int:
    return value


def _product(part: str, name: str, finish: Callable[[int, str], int] | None) -> Scalar:
    bits = bits_of(name)
    result = f"{name[0]}{2 * bits}" if part == "wide" else name
    mask = (1 << bits_of(result)) - 1

    def whole(a: int, b: int, c: int = 0) -> int:
        product = read(a, name) * read(b, name)
        value = product >> bits if part == "hi" else product if part == "wide" else read(product, name)
        return (value if finish is None else finish(value + read(c, result), result)) & mask

    return whole


def _mad24(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    half, name = modifiers[0], modifiers[-1]

    def whole(a: int, b: int, c: int | None = None) -> int:
        product = read(a, f"{name[0]}24") * read(b, f"{name[0]}24")
        value = read(product if half == "lo" else product >> 16, name)
        if c is not None:
            value += read(c, name)
            value = clamp(value, name) if "sat" in modifiers else value
        return value & 0xFFFFFFFF

    return whole


def _sad(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    mask = (1 << bits_of(name)) - 1

    def whole(a: int, b: int, c: int) -> int:
        return (abs(read(a, name) - read(b, name)) + c) & mask

    return whole


def _shift_right(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    bits = bits_of(name)

    def whole(a: int, b: int) -> int:
        return (read(a, name) >> min(b & 0xFFFFFFFF, bits)) & ((1 << bits) - 1)

    return whole


def _shift_left(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    bits = bits_of(modifiers[-1])

    def whole(a: int, b: int) -> int:
        return (a << min(b & 0xFFFFFFFF, bits)) & ((1 << bits) - 1)

    return whole


def _funnel(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    direction, mode = modifiers[:2]

    def whole(a: int, b: int, c: int) -> int:
        amount = c & 31 if mode == "wrap" else min(c, 32)
        pair = b << 32 | a
        return (pair << amount >> 32 if direction == "l" else pair >> amount) & 0xFFFFFFFF

    return whole


def _count(function: Binary) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        bits = bits_of(modifiers[-1])

        def whole(a: int) -> int:
            return function(a & ((1 << bits) - 1), bits)

        return whole

    return build


def _reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _bfind(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    bits = bits_of(name)

    def whole(a: int) -> int:
        value = read(a, name)
        value = ~value if value < 0 else value
        if not value:
            return 0xFFFFFFFF
        position = value.bit_length() - 1
        return bits - 1 - position if "shiftamt" in modifiers else position

    return whole


def _places(bits: int) -> int:
    """Return the mask for a position or length: ptxas reduces those of 32-bit fields only."""
    return 0xFF if bits == 32 else 0xFFFFFFFF


def _extract(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    bits = bits_of(name)
    mask = _places(bits)

    def whole(a: int, b: int, c: int) -> int:
        start, length = b & mask, c & mask
        if not length:
            return 0
        sign = name[0] == "s" and a >> min(start + length - 1, bits - 1) & 1
        result = 0
        for position in range(bits):
            source = start + position
            bit = a >> source & 1 if position < length and source < bits else sign
            result |= bit << position
        return result

    return whole


def _insert(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    bits = bits_of(modifiers[-1])
    mask = _places(bits)

    def whole(a: int, b: int, c: int, d: int) -> int:
        start, length = c & mask, d & mask
        for position in range(min(length, bits)):
            if start + position < bits:
                b = b & ~(1 << start + position) | (a >> position & 1) << start + position
        return b

    return whole


def _mask(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    mode = modifiers[0]

    def whole(a: int, b: int) -> int:
        start, length = (a & 31, b & 31) if mode == "wrap" else (min(a, 32), min(b, 32))
        return sum(1 << position for position in range(start, min(start + length, 32)))

    return whole


def _extend(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    mode, name = modifiers

    def whole(a: int, b: int) -> int:
        width = b & 31 if mode == "wrap" else min(b, 32)
        if not width:
            return 0
        low = a & ((1 << width) - 1)
        return (signed(low, width) if name == "s32" else low) & 0xFFFFFFFF

    return whole


def _dot(sizes: tuple[int, int]) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        names = [m for m in modifiers if m[0] in "us" and m[1].isdigit()]
        first, second = names[0], names[1]
        count, width = (4, 8) if sizes == (8, 8) else (2, 16)
        base = 2 if "hi" in modifiers else 0

        def whole(a: int, b: int, c: int) -> int:
            total = c
            for n in range(count):
                left = read(a >> n * width, f"{first[0]}{width}")
                total += left * read(b >> (base + n) * 8, f"{second[0]}8")
            return total & 0xFFFFFFFF

        return whole

    return build


def _logic3(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    table = int(case.text.rstrip(";").split(", ")[4 if len(case.inputs) == 4 else -1])
    uses_or = modifiers[0] == "or"

    def logic(a: int, b: int, c: int) -> int:
        return sum((table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n for n in range(32))

    def whole(a: int, b: int, c: int, q: int | None = None) -> int | tuple[int, ...]:
        result = logic(a, b, c)
        if q is None:
            return result
        return result, (result != 0) | q if uses_or else (result != 0) & q

    return whole


def _carryless(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    """Half of the product of polynomials over GF(2); signedness has no effect on it."""

    def whole(a: int, b: int, c: int) -> int:
        product = 0
        for position in range(64):
            product ^= (a << position) * (b >> position & 1)
        return ((product >> 64 if modifiers[0] == "hi" else product) ^ c) & ((1 << 64) - 1)

    return whole


def _permute(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    mode = modifiers[1] if len(modifiers) > 1 else ""

    def whole(a: int, b: int, c: int) -> int:
        source = [(b << 32 | a) >> 8 * n & 0xFF for n in range(8)]
        if mode:
            selection = [source[n] for n in _SELECTIONS[mode](c & 3)]
        else:
            picks = [c >> 4 * n & 0xF for n in range(4)]
            selection = [(0xFF if source[p & 7] & 0x80 else 0) if p & 8 else source[p & 7] for p in picks]
        return sum(byte << 8 * n for n, byte in enumerate(selection))

    return whole


_SELECTIONS: dict[str, Callable[[int], list[int]]] = {
    "f4e": lambda n: [n, n + 1, n + 2, n + 3],
    "b4e": lambda n: [n, (n - 1) % 8, (n - 2) % 8, (n - 3) % 8],
    "rc8": lambda n: [n] * 4,
    "ecl": lambda n: [max(n, k) for k in range(4)],
    "ecr": lambda n: [min(n, k) for k in range(4)],
    "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2,
}

BUILDERS: dict[str, Builder] = {
    "add": _simple(lambda a, b: a + b),
    "sub": _simple(lambda a, b: a - b),
    "min": _simple(lambda a, b: min(a, b)),
    "max": _simple(lambda a, b: max(a, b)),
    "neg": _simple(lambda a: -a),
    "abs": _simple(lambda a: abs(a)),
    "div": _simple(_divide),
    "rem": _simple(lambda a, b: a - b * _divide(a, b)),
    "and": _simple(lambda a, b: a & b),
    "or": _simple(lambda a, b: a | b),
    "xor": _simple(lambda a, b: a ^ b),
    "not": _simple(lambda a: ~a),
    "cnot": _simple(lambda a: int(a == 0)),
    "mul": _mul,
    "mad": _mad,
    "clmad": _carryless,
    "mul24": _mad24,
    "mad24": _mad24,
    "sad": _sad,
    "shr": _shift_right,
    "shl": _shift_left,
    "shf": _funnel,
    "popc": _count(lambda a, bits: a.bit_count()),
    "clz": _count(lambda a, bits: bits - a.bit_length()),
    "brev": _count(_reverse),
    "bfind": _bfind,
    "bfe": _extract,
    "bfi": _insert,
    "bmsk": _mask,
    "szext": _extend,
    "dp4a": _dot((8, 8)),
    "dp2a": _dot((16, 8)),
    "lop3": _logic3,
    "prmt": _permute,
}
