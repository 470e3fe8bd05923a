"""What instructions leave in a thread's cell and in its registers, and whole warps where lanes share memory.

A function takes the previous contents of the cell, element by element, and then the operands; it returns the
destinations and then the cell. Manual: atom, red, ld, st, ldmatrix, stmatrix, isspacep, cvta. Generic addresses point
to global memory here, so atom.add.f32 flushes as it does there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.warp import Lanes, Warp
from tools.conformance.references.words import Builder, Scalar, bits_of, read

_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda old, b: old + b,
    "and": lambda old, b: old & b,
    "or": lambda old, b: old | b,
    "xor": lambda old, b: old ^ b,
    "min": lambda old, b: min(old, b),
    "max": lambda old, b: max(old, b),
    "inc": lambda old, b: 0 if old >= b else old + 1,
    "dec": lambda old, b: b if old == 0 or old > b else old - 1,
    "exch": lambda old, b: b,
}
_FLOATS = ("f64", "f32", "bf16", "f16")


def shares_cell(case: Case) -> bool:
    """Return whether the lanes of a warp share a cell."""
    return case.opcode == "red" and not any(column.name.startswith("m") for column in case.inputs)


def _make_update(modifiers: tuple[str, ...], name: str) -> Callable[[int, int], int]:
    """Return the function of an operation, which takes the old value and an operand, both codes of one element."""
    operation = next(m for m in modifiers if m in _INTEGERS)
    if operation == "exch" or name not in _FLOATS:
        bits = bits_of(name)
        function = _INTEGERS[operation]
        return lambda old, b: function(read(old, name), read(b, name)) & ((1 << bits) - 1)
    flush = name == "f32" and "noftz" not in modifiers and not any(m.startswith("shared") for m in modifiers)

    def update(old: int, b: int) -> int:
        x, y = f.decode(old, name, flush), f.decode(b, name, flush)
        if operation == "add":
            return f.code(f.add(x, y, "rn"), name, flush=flush)
        present = [number for number in (x, y) if not number.missing]
        pick = max if operation == "max" else min
        return f.code(pick(present, key=lambda n: (n.rank, not n.negative)) if present else f.NAN, name)

    return update


def _lanes(update: Callable[[int, int], int], width: int, count: int) -> Callable[[int, int], int]:
    mask = (1 << width) - 1
    return lambda old, b: sum(update(old >> n * width & mask, b >> n * width & mask) << n * width for n in range(count))


def _atomic(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    if shares_cell(case):
        return None
    name = modifiers[-1]
    if "cas" in modifiers:
        return _exchange
    element = name.removesuffix("x2")
    update = _lanes(_make_update(modifiers, element), bits_of(element), 2 if name.endswith("x2") else 1)
    count = sum(column.name.startswith("m") for column in case.inputs)

    def whole(*words: int) -> tuple[int, ...]:
        old, operands = words[:count], words[count:]
        after = tuple(update(x, y) for x, y in zip(old, operands, strict=True))
        return (*old, *after) if case.opcode == "atom" else after

    return whole


def shared_cell(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Return the result of red by all lanes on the shared cell of a warp, which initially holds 0."""
    if not shares_cell(case):
        return None
    update = _make_update(modifiers, modifiers[-1])
    return lambda lanes: [(reduce(update, (words[0] for words in lanes), 0),)] * 32


def _exchange(old: int, b: int, c: int) -> tuple[int, int]:
    return old, c if old == b else old


def _load(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    name = modifiers[-1]
    width = bits_of(name)
    into = [128 if column.kind == "b128" else max(bits_of(column.kind), 16) for column in case.outputs]

    def whole(*words: int) -> tuple[int, ...]:
        cell = sum(word << 64 * n for n, word in enumerate(words))
        return tuple(read(cell >> n * width, name) & ((1 << bits) - 1) for n, bits in enumerate(into))

    return whole


def _store(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    width = bits_of(modifiers[-1])
    mask = (1 << width) - 1

    def whole(*words: int) -> tuple[int, ...]:
        cell = sum(word << 64 * n for n, word in enumerate(words[:4]))
        for position, value in enumerate(words[4:]):
            cell = cell & ~(mask << position * width) | (value & mask) << position * width
        return tuple(cell >> 64 * n & ((1 << 64) - 1) for n in range(4))

    return whole


def load_matrix(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Rows of 8 halves start at the addresses of lanes, 8 lanes for each matrix; lane `4 * row + n` gets columns 2n and
    2n + 1 of a row, or of the transpose with `.trans`."""
    trans = "trans" in modifiers

    def whole(lanes: Lanes) -> Lanes:
        rows = [[(low | high << 64) >> 16 * n & 0xFFFF for n in range(8)] for low, high in lanes]

        def pair(lane: int, matrix: int) -> int:
            places = [(lane // 4, lane % 4 * 2 + n) for n in (0, 1)]
            low, high = (rows[8 * matrix + (c if trans else r)][r if trans else c] for r, c in places)
            return low | high << 16

        return [tuple(pair(lane, matrix) for matrix in range(len(case.outputs))) for lane in range(32)]

    return whole


def store_matrix(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Return the rows after a store; rows of lanes whose address is not used keep their contents."""
    trans, count = "trans" in modifiers, len(case.inputs) - 2

    def whole(lanes: Lanes) -> Lanes:
        rows = [[(row_words[0] | row_words[1] << 64) >> 16 * n & 0xFFFF for n in range(8)] for row_words in lanes]
        for lane, row_words in enumerate(lanes):
            for matrix in range(count):
                for n in (0, 1):
                    row, column = lane // 4, lane % 4 * 2 + n
                    row, column = (column, row) if trans else (row, column)
                    rows[8 * matrix + row][column] = row_words[2 + matrix] >> 16 * n & 0xFFFF
        words = [sum(half << 16 * n for n, half in enumerate(row)) for row in rows]
        return [(word & ((1 << 64) - 1), word >> 64) for word in words]

    return whole


def _is_in_space(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    return lambda: int(case.outputs[0].name == modifiers[0])


def _convert_and_back(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    return lambda: 0


BUILDERS: dict[str, Builder] = {
    "atom": _atomic, "red": _atomic, "ld": _load, "st": _store, "isspacep": _is_in_space, "cvta": _convert_and_back,
}  # fmt: skip
WARPS: dict[str, Callable[[tuple[str, ...], Case], Warp | None]] = {
    "red": shared_cell, "ldmatrix": load_matrix, "stmatrix": store_matrix,
}  # fmt: skip
