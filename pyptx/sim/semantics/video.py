"""Manual: Video Instructions, scalar and SIMD. Operands arrive selected and extended; the rest is done in 64 bits."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false
# Bodies are lambdas of arrays, as many as the instruction has operands: their parameters have no types of their own.

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyptx.isa.model import Match
from pyptx.sim.base.formats import Array, Value
from pyptx.sim.semantics.bits import find_limits
from pyptx.sim.semantics.vocabulary import Builder, Operation, Selected, Signature, parts, value

Function = Callable[..., Array]

_COMPARE: dict[str, Function] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_SECOND: dict[str, Function] = {"add": np.add, "min": np.minimum, "max": np.maximum}
_OPEN_ABOVE = frozenset(("vadd", "vsub", "vabsdiff", "vmin", "vmax"))
"""ptxas saturates unsigned words of these at zero only, not at the maximum; in a part of a word it compares without a
sign, so negative numbers become the maximum. Shifts saturate as words in a part, too."""
_BASIC: dict[str, Function] = {
    "vadd": np.add, "vsub": np.subtract, "vabsdiff": lambda a, b: np.abs(a - b), "vmin": np.minimum, "vmax": np.maximum,
    "vavrg": lambda a, b: _halve(a + b),
}  # fmt: skip


def _halve(total: Array) -> Array:
    """Return half of a sum, rounded away from zero."""
    return np.where(total >= 0, (total + 1) >> 1, -((1 - total) >> 1))


def _finish(result: Array, kind: str, sat: bool) -> Array:
    """Saturate to a type, or wrap to 32 bits."""
    dtype = np.dtype("i4" if kind == "s32" else "u4")
    return np.clip(result, *find_limits(dtype)).astype(dtype) if sat else result.astype(dtype)


def _build_scalar(match: Match, signature: Signature) -> Operation | None:
    name = match.form.opcode
    kind, sat = match.chosen["dtype"], "sat" in match.modifiers
    if name in ("vshl", "vshr"):
        return _combine(match, signature, _build_shift(name, match.chosen["mode"], sat), kind, sat)
    return _combine(match, signature, _BASIC[name], kind, sat)


def _build_shift(name: str, mode: str, sat: bool) -> Function:
    """Return a shift. ptxas lowers vshl to one that saturates an intermediate result of 34 bits."""
    spare = 64 - 34

    def shift(a: Array, b: Array) -> Array:
        count = np.minimum(b, 32) if mode == "clamp" else b & 31
        if name == "vshr":
            return a >> count
        return a << count << spare >> spare if sat else a << count

    return shift


def _combine(match: Match, signature: Signature, function: Function, kind: str, sat: bool) -> Operation:
    """Return the operation with its second part: add, min or max with c, or insertion of the result into a part of
    c."""
    name, second = match.form.opcode, match.chosen.get("op2", "")

    def compute_exact(a: Array, b: Array) -> Array:
        return function(a.astype(np.int64), b.astype(np.int64))

    def compute_word(a: Array, b: Array) -> Array:
        result = compute_exact(a, b)
        if sat and kind == "u32" and name in _OPEN_ABOVE:
            return np.maximum(result, 0)
        return np.clip(result, *find_limits(np.dtype("i4" if kind == "s32" else "u4"))) if sat else result

    if len(signature) == 3:
        return value(lambda a, b: _finish(compute_word(a, b), kind, False))
    if second:
        narrow = name in ("vadd", "vsub") or (sat and name in ("vshl", "vshr"))
        return value(lambda a, b, c: _finish(_join(second, compute_word(a, b), c, kind, narrow), kind, False))

    def merge(a: Array, b: Array, c: Array, into: Selected | None) -> Array:
        if not sat or into is None or name not in _OPEN_ABOVE:
            return insert_part(_finish(compute_word(a, b), kind, False), c, into)
        result, limit = (
            compute_exact(a, b),
            find_limits(np.dtype(f"{kind[0].replace('s', 'i')}{1 if into.unit == 'b' else 2}"))[1],
        )
        result = np.where((result < 0) | (result > limit), limit, result)
        return insert_part(_finish(result, kind, False), c, into)

    return parts(merge, "into")


def _join(name: str, result: Array, c: Array, kind: str, narrow: bool) -> Array:
    """Return the result of the second operation as ptxas lowers it, in 64 bits: of a sum, a difference and a saturated
    shift it reads the low word as signed, and it compares by the signedness of the result type."""
    result = result.astype(np.int32).astype(np.int64) if narrow else result
    if kind == "s32":
        return _SECOND[name](result, c.astype(np.int32).astype(np.int64))
    return _SECOND[name](result.view(np.uint64), c.astype(np.uint32).astype(np.uint64)).view(np.int64)


def insert_part(result: Array, c: Array, into: Selected | None) -> Array:
    """Return c with a byte or half replaced by the low bits of a value; without a part the value itself."""
    if into is None:
        return result
    bits, digit = (8 if into.unit == "b" else 16), into.digits[0]
    mask = ((1 << bits) - 1) << bits * digit
    old, new = c.astype(np.int64), result.astype(np.int64)
    return ((old & ~mask) | ((new << bits * digit) & mask)).astype(np.int64).astype(result.dtype)


def _vmad(match: Match, signature: Signature) -> Operation | None:
    """Return the operation of vmad as ptxas lowers it: words are multiplied as signed ones and c is signed, whatever
    the types say (the manual extends words by their types). The result is unsigned if both factors are; the type of d
    does not matter. A shift of an unsigned result fills with zeros."""
    sat, plus_one = "sat" in match.modifiers, "po" in match.modifiers
    scale = int(match.chosen.get("scale", "shr0")[3:])
    unsigned = match.chosen["atype"] == match.chosen["btype"] == "u32"
    kind = "u32" if unsigned else "s32"

    def vmad(a: Array, b: Array, c: Array) -> Array:
        x, y, z = (v.astype(np.int32).astype(np.int64) for v in (a, b, c))
        total = x * y + z + int(plus_one)
        if unsigned:
            total = (total.view(np.uint64) >> np.uint64(scale)).view(np.int64)
        else:
            total = total >> scale
        return _finish(total, kind, sat).view("i4" if match.chosen["dtype"] == "s32" else "u4")

    return value(vmad)


def _vset(match: Match, signature: Signature) -> Operation | None:
    """Return the operation of vset; ptxas compares its result with `c` as numbers of the first operand's type."""
    compare = _COMPARE[match.chosen["cmp"]]
    return _combine(match, signature, lambda a, b: compare(a, b).astype(np.int64), match.chosen["atype"], False)


def _wrap_as_number(compare: Function) -> Function:
    return lambda x, y: compare(x, y).astype(np.int64)


def _build_simd(unit: str) -> Builder:
    """Return the builder of the instructions on halves (`h`) or bytes (`b`) of a word."""
    count, bits = (2, 16) if unit == "h" else (4, 8)

    def build(match: Match, signature: Signature) -> Operation | None:
        name = match.form.opcode[:-1]
        if name == "vset":
            compare = _COMPARE[match.chosen["cmp"]]
            kind = "u32"
            function = _wrap_as_number(compare)
        else:
            kind, function = match.chosen["dtype"], _BASIC[name]
        signed = [match.chosen[t][0] == "s" for t in ("atype", "btype")]
        narrow = np.dtype(f"{'i' if kind[0] == 's' else 'u'}{bits // 8}")
        sat, adds = "sat" in match.modifiers, "add" in match.modifiers

        def apply(a: Value, b: Value, c: Array, into: Selected | None, *selections: Selected | None) -> Array:
            lanes_in = range(count) if into is None else into.digits
            word, total = c.astype(np.int64) & 0xFFFFFFFF, c.astype(np.int64)
            for lane in lanes_in:
                x, y = (
                    _build_pick(selections[n], lane + count * n, lane, bits, count, signed[n])(a, b) for n in (0, 1)
                )
                result = function(x, y)
                if adds:
                    total = total + result
                    continue
                result = np.clip(result, *find_limits(narrow)) if sat else result
                mask = ((1 << bits) - 1) << bits * lane
                word = (word & ~mask) | ((result << bits * lane) & mask)
            return (total if adds else word).astype("i4" if kind == "s32" else "u4")

        return parts(apply)

    return build


def _build_pick(selection: Selected | None, own: int, lane: int, bits: int, count: int, signed: bool) -> Function:
    """Return a function that reads a lane's element. Selectors count over both words, a's elements first; without one,
    the lane reads its element of the operand's own word."""
    digit = own if selection is None else selection.digits[lane]

    def read(a: Array, b: Array) -> Array:
        word = (a if digit < count else b).astype(np.int64)
        element = (word >> bits * (digit % count)) & ((1 << bits) - 1)
        return np.where(element >> (bits - 1) & 1, element - (1 << bits), element) if signed else element

    return read


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr"), _build_scalar),
    "vmad": _vmad, "vset": _vset,
    **dict.fromkeys(("vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2"), _build_simd("h")),
    **dict.fromkeys(("vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"), _build_simd("b")),
}  # fmt: skip
