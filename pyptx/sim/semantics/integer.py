"""Manual: Integer Arithmetic Instructions. Registers wrap, so signedness matters only where a body says so."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value, dtype_of
from pyptx.sim.semantics.bits import (
    apply_to_packed,
    count_leading,
    count_ones,
    divide_toward_zero,
    extract_field,
    multiply_carryless,
    multiply_high,
    reverse_bits,
    saturate_to,
    to_int64,
)
from pyptx.sim.semantics.vocabulary import Builder, Operation, Signature, find_type, into, value  # fmt: skip


def _add(match: Match, signature: Signature) -> Operation | None:
    return _sum(np.add, match)


def _sub(match: Match, signature: Signature) -> Operation | None:
    return _sum(np.subtract, match)


def _sum(function: Value, match: Match) -> Operation | None:
    kind = find_type(match)
    if kind[-2:] in ("x2", "x4"):
        saturates = "sat" in match.modifiers
        return value(lambda a, b: apply_to_packed(kind, function, a, b, saturates=saturates))
    if "sat" in match.modifiers:
        return value(lambda a, b: saturate_to(function(to_int64(a), to_int64(b)), dtype_of(kind)))
    return into(function)


def _mul(match: Match, signature: Signature) -> Operation | None:
    kind, mode = match.modifiers[-1], match.modifiers[0]
    if mode == "lo":
        return into(np.multiply)
    if mode == "hi":
        return value(multiply_high)
    target = np.dtype(f"{dtype_of(kind).kind}{2 * dtype_of(kind).itemsize}")
    return value(lambda a, b: np.multiply(a.astype(target), b.astype(target)))


def _mad(match: Match, signature: Signature) -> Operation | None:
    kind, mode = match.modifiers[-1], match.modifiers[0]
    if mode == "lo":
        return value(lambda a, b, c: np.add(a * b, c))
    if mode == "hi" and "sat" in match.modifiers:
        return value(lambda a, b, c: saturate_to(to_int64(multiply_high(a, b)) + to_int64(c), dtype_of(kind)))
    if mode == "hi":
        return value(lambda a, b, c: multiply_high(a, b) + c)
    target = np.dtype(f"{dtype_of(kind).kind}{2 * dtype_of(kind).itemsize}")
    return value(lambda a, b, c: a.astype(target) * b.astype(target) + c)


def _mul24(match: Match, signature: Signature) -> Operation | None:
    return value(_make_product24(match.modifiers[0]))


def _mad24(match: Match, signature: Signature) -> Operation | None:
    product = _make_product24(match.modifiers[0])
    if "sat" in match.modifiers:
        return value(lambda a, b, c: saturate_to(to_int64(product(a, b)) + to_int64(c), np.dtype("i4")))
    return value(lambda a, b, c: product(a, b) + c)


def _make_product24(mode: str) -> Value:
    """Return the product of the low 24 bits: its low 32 bits, or bits 16 to 47."""
    shift = 0 if mode == "lo" else 16

    def product(a: Array, b: Array) -> Array:
        small = [(x << np.array(8, x.dtype)).astype(f"{x.dtype.kind}8") >> 8 for x in (a, b)]
        return ((small[0] * small[1]) >> np.array(shift, small[0].dtype)).astype(a.dtype)

    return product


def _sad(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b, c: c + np.where(a < b, b - a, a - b))


def _div(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: divide_toward_zero(a, b)[0])


def _rem(match: Match, signature: Signature) -> Operation | None:
    return value(lambda a, b: divide_toward_zero(a, b)[1])


def _abs(match: Match, signature: Signature) -> Operation | None:
    return into(np.abs)


def _neg(match: Match, signature: Signature) -> Operation | None:
    kind = find_type(match)
    return value(lambda a: apply_to_packed(kind, np.negative, a)) if kind == "s8x4" else into(np.negative)


def _min(match: Match, signature: Signature) -> Operation | None:
    return _build_extreme(np.minimum, match)


def _max(match: Match, signature: Signature) -> Operation | None:
    return _build_extreme(np.maximum, match)


def _build_extreme(function: Value, match: Match) -> Operation | None:
    kind, relu = find_type(match), "relu" in match.modifiers
    pick = (lambda a, b: np.maximum(function(a, b), a.dtype.type(0))) if relu else function
    if kind[-2:] in ("x2", "x4"):
        return value(lambda a, b: apply_to_packed(kind, pick, a, b))
    return value(pick)


def _popc(match: Match, signature: Signature) -> Operation | None:
    return value(count_ones)


def _clz(match: Match, signature: Signature) -> Operation | None:
    return value(count_leading)


def _bfind(match: Match, signature: Signature) -> Operation | None:
    bits = 8 * dtype_of(find_type(match)).itemsize
    shift = "shiftamt" in match.modifiers

    def bfind(a: Array) -> Array:
        plain = a.view(f"u{bits // 8}")
        bare = np.where(a < 0, ~plain, plain) if a.dtype.kind == "i" else plain
        leading = count_leading(bare).astype("i4")
        return np.where(bare == 0, -1, leading if shift else bits - 1 - leading).astype("i4").view("u4")

    return value(bfind)


def _fns(match: Match, signature: Signature) -> Operation | None:
    return value(_find_nth_set)


def _find_nth_set(mask: Array, base: Array, offset: Array) -> Array:
    """Find the n-th set bit from a position, upward or downward (manual: fns). For the least offset, whose absolute
    value is not a signed number, code from ptxas returns position 0."""
    step = np.where(offset.astype("i4") < 0, -1, 1)
    target_count = np.where(offset.astype("i4") == 0, 1, np.abs(offset.astype("i4")))
    shape = np.broadcast(mask, base, offset).shape
    bit, count = np.full(shape, 0xFFFFFFFF, np.uint32), np.zeros(shape, np.int64)
    for move in range(32):
        position = base.astype("i4") + step * move
        valid = (base < 32) & (position >= 0) & (position < 32) & ((offset != 0) | (move == 0))
        is_set = valid & ((mask >> (position & 31).astype("u4")) & np.uint32(1)).astype(bool)
        count = count + is_set
        bit = np.where(is_set & (count == target_count) & (bit == np.uint32(0xFFFFFFFF)), position.astype("u4"), bit)
    return np.where(offset.view("u4") == 0x80000000, np.uint32(0), bit)


def _brev(match: Match, signature: Signature) -> Operation | None:
    return value(reverse_bits)


def _bfe(match: Match, signature: Signature) -> Operation | None:
    """Build bfe. Positions and lengths count modulo 256; for 64-bit fields ptxas uses all their bits."""
    dtype = dtype_of(find_type(match))
    bits = 8 * dtype.itemsize
    operand_mask = np.uint32(0xFF if bits == 32 else 0xFFFFFFFF)

    def bfe(a: Array, b: Array, c: Array) -> Array:
        start, length = (b & operand_mask).astype("i8"), (c & operand_mask).astype("i8")
        return extract_field(a, start, length, bits)

    return value(bfe)


def _bfi(match: Match, signature: Signature) -> Operation | None:
    """Build bfi, with positions and lengths as in `_bfe`."""
    dtype = dtype_of(find_type(match))
    bits = 8 * dtype.itemsize
    operand_mask = np.uint32(0xFF if bits == 32 else 0xFFFFFFFF)

    def bfi(a: Array, b: Array, c: Array, d: Array) -> Array:
        start, length = (c & operand_mask).astype("u8"), (d & operand_mask).astype("u8")
        ones = np.uint64(0xFFFFFFFFFFFFFFFF)
        field = np.where(length >= 64, ones, (np.uint64(1) << np.minimum(length, np.uint64(63))) - np.uint64(1))
        start_in = np.minimum(start, np.uint64(63))
        mask = np.where(start >= bits, np.uint64(0), field << start_in)
        field_bits = np.where(start >= bits, np.uint64(0), a.astype("u8") << start_in)
        return ((b.astype("u8") & ~mask) | (field_bits & mask)).astype(dtype)

    return value(bfi)


def _szext(match: Match, signature: Signature) -> Operation | None:
    clamp = match.chosen["mode"] == "clamp"

    def szext(a: Array, b: Array) -> Array:
        width = b.astype("i8") if clamp else (b & np.uint32(31)).astype("i8")
        return np.where(width >= 32, a, extract_field(a, np.zeros_like(width), np.minimum(width, 32), 32))

    return value(szext)


def _bmsk(match: Match, signature: Signature) -> Operation | None:
    clamp = match.chosen["mode"] == "clamp"

    def bmsk(a: Array, b: Array) -> Array:
        start, width = a.astype("u8"), b.astype("u8")
        if clamp:
            start, width = np.minimum(start, np.uint64(32)), np.minimum(width, np.uint64(32))
        else:
            start, width = start & np.uint64(31), width & np.uint64(31)
        return ((((np.uint64(1) << width) - np.uint64(1)) << start) & np.uint64(0xFFFFFFFF)).astype("u4")

    return value(bmsk)


def _dp4a(match: Match, signature: Signature) -> Operation | None:
    return value(_make_dot(match.modifiers[-2], match.modifiers[-1], 8, 0))


def _dp2a(match: Match, signature: Signature) -> Operation | None:
    return value(_make_dot(match.modifiers[-2], match.modifiers[-1], 16, 0 if match.modifiers[0] == "lo" else 2))


def _make_dot(atype: str, btype: str, bits: int, first: int) -> Value:
    """Return the dot product of a's parts of `bits` bits with bytes of b, added to c."""

    def dot(a: Array, b: Array, c: Array) -> Array:
        total = c.astype("i8")
        for index in range(32 // bits):
            x = (a >> np.uint32(bits * index)).astype(f"{'i' if atype[0] == 's' else 'u'}{bits // 8}")
            y = (b >> np.uint32(8 * (index + first))).astype("i1" if btype[0] == "s" else "u1")
            total = total + x.astype("i8") * y.astype("i8")
        return total.astype(c.dtype)

    return dot


def _clmad(match: Match, signature: Signature) -> Operation | None:
    half = match.chosen["mode"]
    return value(lambda a, b, c: multiply_carryless(a, b, half) ^ c)


BUILDERS: dict[str, Builder] = {
    "add": _add, "sub": _sub, "mul": _mul, "mad": _mad, "clmad": _clmad, "mul24": _mul24, "mad24": _mad24, "sad": _sad,
    "div": _div, "rem": _rem, "abs": _abs, "neg": _neg, "min": _min, "max": _max, "popc": _popc, "clz": _clz,
    "bfind": _bfind, "fns": _fns, "brev": _brev, "bfe": _bfe, "bfi": _bfi, "szext": _szext, "bmsk": _bmsk,
    "dp4a": _dp4a, "dp2a": _dp2a,
}  # fmt: skip
