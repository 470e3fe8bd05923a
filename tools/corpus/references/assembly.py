"""Single instructions that C++ has no word for: the manual's definitions over Python integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results

MASK = (1 << 32) - 1
LOW, HIGH = -(1 << 31), (1 << 31) - 1


def _rows(rows: Iterable[Iterable[int]]) -> NDArray[np.int32]:
    return np.array([[value & MASK for value in row] for row in rows], np.uint32).view(np.int32)


def _per_thread(args: Args, names: str, function: Callable[..., list[int]]) -> NDArray[np.int32]:
    columns = [[int(value) for value in args[name]] for name in names]
    return _rows(zip(*(function(*values) for values in zip(*columns, strict=True)), strict=True))


def _signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _clamp(value: int, low: int = LOW, high: int = HIGH) -> int:
    return max(low, min(high, value))


def _parts(value: int, bits: int, signed: bool) -> list[int]:
    parts = [value >> i & (1 << bits) - 1 for i in range(0, 32, bits)]
    return [_signed(part, bits) for part in parts] if signed else parts


def _join_parts(parts: Iterable[int], bits: int) -> int:
    return sum((part & (1 << bits) - 1) << i * bits for i, part in enumerate(parts))


def video_scalar(args: Args) -> Results:
    def values(a: int, b: int, c: int) -> list[int]:
        return [
            (a >> 8) + (b >> 8) + c,
            min(_clamp((a & MASK) - (b & MASK)), c),
            max(abs((a >> 2) - (b >> 2)), c),
            min(a, b) + c,
            min(max(a, b), c),
            (a << (b & 31)) + c,
            (a >> min(b & 63, 32)) + c,
            int(a < b) + c,
        ]

    return {"y": _per_thread(args, "abc", values)}


def video_selectors(args: Args) -> Results:
    def values(a: int, b: int, c: int) -> list[int]:
        return [
            (a & 255) + _signed(b >> 16, 16),
            _signed(a, 16) - (b >> 24 & 255) + c,
            _signed(a, 16) * _signed(b >> 16, 16) + c,
            ((a >> 16 & 0xFFFF) * (b >> 16 & 255) + (c & 1023)) >> 7,
        ]

    return {"y": _per_thread(args, "abc", values)}


def video_simd(args: Args) -> Results:
    def values(a: int, b: int) -> list[int]:
        ua, ub, sa, sb = (_parts(v, 8, signed) for signed in (False, True) for v in (a, b))
        ha, hb, wa, wb = (_parts(v, 16, signed) for signed in (False, True) for v in (a, b))
        pairs, halves = list(zip(ua, ub, strict=True)), list(zip(ha, hb, strict=True))
        signed_pairs, signed_halves = list(zip(sa, sb, strict=True)), list(zip(wa, wb, strict=True))
        return [
            _join_parts((x + y for x, y in pairs), 8),
            _join_parts((_clamp(x - y, -128, 127) for x, y in signed_pairs), 8),
            _join_parts(((x + y + 1) >> 1 for x, y in pairs), 8),
            sum(abs(x - y) for x, y in pairs) + 100,
            _join_parts((min(pair) for pair in signed_halves), 16),
            _join_parts((max(pair) for pair in halves), 16),
            _join_parts((int(x < y) for x, y in pairs), 8),
            _join_parts((_clamp(x + y, -32768, 32767) for x, y in signed_halves), 16),
        ]

    return {"y": _per_thread(args, "ab", values)}


def bit_fields(args: Args) -> Results:
    def values(a: int, b: int) -> list[int]:
        position, length = b & 31, b >> 5 & 31
        unsigned, field = a & MASK, (1 << length) - 1
        insertion = (b & ~(field << position)) | ((unsigned & field) << position)
        top = min(position + length - 1, 31)
        sign = (unsigned >> top & 1) if length else 0
        field_bits = unsigned >> position & field
        fill = -1 << length if sign else 0
        low_bits = (1 << (32 - position)) - 1
        signed_field = field_bits | fill if position + length <= 32 else _signed(unsigned) >> position
        mask = (((1 << length) - 1) << position) & MASK
        window = (((1 << (b >> 8 & 31)) - 1) << (b & 31)) & MASK
        extension = _signed(unsigned, length) if length else 0
        magnitude = a if a >= 0 else ~a
        return [
            insertion,
            field_bits & low_bits,
            signed_field if length else 0,
            unsigned.bit_length() - 1,
            magnitude.bit_length() - 1,
            32 - (unsigned | 1).bit_length(),
            mask,
            window,
            extension,
            unsigned & field,
        ]

    return {"y": _per_thread(args, "ab", values)}


def three_input_logic(args: Args) -> Results:
    def table(a: int, b: int, c: int, lut: int) -> int:
        minterms = [
            (a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c) for i in range(8) if lut >> i & 1
        ]
        return sum(term & MASK for term in minterms)

    def values(a: int, b: int, c: int) -> list[int]:
        return [*(table(a, b, c, lut) for lut in (0x96, 0xE8, 0x1B)), int(a & 1 == 0)]

    return {"y": _per_thread(args, "abc", values)}


def permute_modes(args: Args) -> Results:
    def pick(a: int, b: int, selectors: Iterable[int]) -> int:
        pool = ((b & MASK) << 32 | a & MASK).to_bytes(8, "little")
        picks = [(pool[s & 7] >> 7) * 255 if s & 8 else pool[s & 7] for s in selectors]
        return int.from_bytes(bytes(picks), "little")

    def values(a: int, b: int, s: int) -> list[int]:
        modes = [
            (0x0, 0x4, 0xE, 0x9),
            tuple(s + i for i in range(4)),
            tuple((s - i) % 8 for i in range(4)),
            (s,) * 4,
            tuple(max(s, i) for i in range(4)),
            tuple(min(s, i) for i in range(4)),
            (2 * (s & 1), 2 * (s & 1) + 1) * 2,
        ]
        return [pick(a, b, mode) for mode in modes]

    return {"y": _per_thread(args, "abs", values)}


def _limbs(value: int, count: int) -> list[int]:
    return [value >> 32 * i & MASK for i in range(count)]


def carry_chains(args: Args) -> Results:
    rows = [[int.from_bytes(row.tobytes(), "little") for row in args[name]] for name in "ab"]
    pairs = list(zip(*rows, strict=True))
    outputs = {
        "sum": [_limbs(a + b, 5) for a, b in pairs],
        "difference": [_limbs((a - b) % (1 << 160), 5) for a, b in pairs],
        "product": [_limbs(a * (b & MASK), 5) for a, b in pairs],
    }
    return {name: np.array(values, np.uint32) for name, values in outputs.items()}


def wide_by_64(args: Args) -> Results:
    wide = [int.from_bytes(row.tobytes(), "little") * int(b) for row, b in zip(args["a"], args["b"], strict=True)]
    return {"y": np.array([[v >> 64 * i & (1 << 64) - 1 for i in range(3)] for v in wide], np.uint64)}


def integer_corners(args: Args) -> Results:
    def values(a: int, b: int, c: int) -> list[int]:
        product24 = _signed(a, 24) * _signed(b, 24)
        unsigned24 = (a & 0xFFFFFF) * (b & 0xFFFFFF)
        halves, bytes_b = _parts(a, 16, True), _parts(b, 8, False)
        return [
            product24 + c,
            _clamp((a * b >> 32) + c),
            _clamp(a + b),
            _clamp(a - b),
            a if c >= 0 else b,
            abs((a & MASK) - (b & MASK)) + c,
            unsigned24 >> 16,
            c + halves[0] * bytes_b[0] + halves[1] * bytes_b[1],
            c + sum(x * y for x, y in zip(_parts(a, 8, False), _parts(b, 8, True), strict=True)),
            (unsigned24 >> 16) + c,
        ]

    return {"y": _per_thread(args, "abc", values)}


def float_corners(args: Args) -> Results:
    a, b = args["a"].astype(float), args["b"].astype(float)
    widest = np.maximum(np.abs(a), np.abs(b)) * np.where(np.signbit(a) != np.signbit(b), -1, 1)
    rows = [
        np.copysign(b, a),
        np.minimum(a, b),
        widest,
        a / b,
        np.clip(a + b, 0, 1),
        a * b,
        1 / b,
        2**a,
        np.sqrt(np.abs(b)),
        np.rint(args["a"] * np.float32(10)),
        np.clip(a, 0, 1),
        np.full(32, 2.0),
    ]
    return {"y": np.stack(rows).astype(np.float32)}


def predicates(args: Args) -> Results:
    a, b, c = args["a"], args["b"], args["c"]
    low = c.view(np.uint32) < 2
    are_true = low & ((c.view(np.uint32) >= 1) ^ low)
    rows = [
        -(a < b).astype(int),
        a > b,
        (a > b) & (c < 0),
        (a == b) | (c != 1),
        np.where(are_true, 4, 3),
        -(c == 1).astype(int),
    ]
    return {"y": np.stack([np.asarray(row).astype(np.int32) for row in rows])}


def reversed_halves(args: Args) -> Results:
    halves = args["a"].view(np.uint16).reshape(-1, 4)
    return {"y": halves[:, ::-1].copy().view(np.uint64).ravel()}


def special_registers(args: Args) -> Results:
    y = np.zeros_like(args["y"])
    lane = np.arange(32, dtype=np.uint64)
    bit = np.uint64(1) << lane
    y[:, :, :, 0] = lane
    y[:, :, :, 1] = np.arange(2)[:, None, None]
    y[:, :, :, 2] = (np.uint64(1 << 32) - bit).astype(np.uint32)
    y[:, :, :, 3] = (bit - np.uint64(1)).astype(np.uint32)
    y[:, :, :, 4] = bit.astype(np.uint32)
    y[:, :, :, 5] = 2
    return {"y": y}
