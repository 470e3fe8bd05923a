"""Instructions among all 32 lanes of a warp. A function takes the operands of every lane."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from tools.conformance.forms import Case
from tools.conformance.references import floats as f
from tools.conformance.references.words import Binary, read

Lanes = list[tuple[int, ...]]
Warp = Callable[[Lanes], Lanes]
"""Takes the inputs of each of 32 lanes and returns the outputs of each."""
Builder = Callable[[tuple[str, ...], Case], "Warp | None"]
_ALL = 0xFFFFFFFF


def _shuffle(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    mode = next(m for m in modifiers if m in ("up", "down", "bfly", "idx"))

    def find_source(lane: int, b: int, c: int) -> tuple[int, bool]:
        segment, limit, distance = c >> 8 & 31, c & 31, b & 31
        last = (lane & segment) | (limit & ~segment)
        first = lane & segment
        if mode == "up":
            return lane - distance, lane - distance >= last
        source = {"down": lane + distance, "bfly": lane ^ distance, "idx": first | (distance & ~segment)}[mode]
        return source, source <= last

    def whole(lanes: Lanes) -> Lanes:
        results: Lanes = []
        for lane, (_, b, c) in enumerate(lanes):
            source, valid = find_source(lane, b, c)
            results.append((lanes[source if valid else lane][0], int(valid)))
        return results

    return whole


def _vote(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    mode = next(m for m in modifiers if m in ("all", "any", "uni", "ballot"))

    def whole(lanes: Lanes) -> Lanes:
        ballot = sum(words[0] << lane for lane, words in enumerate(lanes))
        answers = {"all": ballot == _ALL, "any": ballot != 0, "uni": ballot in (0, _ALL), "ballot": ballot}
        return [(int(answers[mode]),)] * 32

    return whole


def _match(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    def whole(lanes: Lanes) -> Lanes:
        values = [words[0] for words in lanes]
        if "all" in modifiers:
            is_uniform = len(set(values)) == 1
            return [(_ALL * is_uniform, int(is_uniform))] * 32
        return [(sum((peer == mine) << lane for lane, peer in enumerate(values)),) for mine in values]

    return whole


_INTEGERS: dict[str, Binary] = {
    "add": lambda a, b: a + b,
    "min": lambda a, b: min(a, b),
    "max": lambda a, b: max(a, b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _reduction(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    operation, name = modifiers[1], modifiers[-1]
    if name == "f32":
        return lambda lanes: [(_extreme(modifiers, [words[0] for words in lanes]),)] * 32

    def whole(lanes: Lanes) -> Lanes:
        total = reduce(_INTEGERS[operation], (read(words[0], name) for words in lanes))
        return [(total & _ALL,)] * 32

    return whole


def _extreme(modifiers: tuple[str, ...], codes: list[int]) -> int:
    numbers = [f.decode(code, "f32") for code in codes]
    present = [f.Number(n.negative and "abs" not in modifiers, n.size) for n in numbers if not n.missing]
    if not present or ("NaN" in modifiers and len(present) < len(numbers)):
        return f.code(f.NAN, "f32")
    return f.code((max if "max" in modifiers else min)(present, key=lambda n: (n.rank, not n.negative)), "f32")


def _transpose(modifiers: tuple[str, ...], case: Case) -> Warp | None:
    """Lane `4 * row + n` holds columns 2n and 2n + 1 of a row."""

    def whole(lanes: Lanes) -> Lanes:
        halves = [words[0] >> 16 * n & 0xFFFF for words in lanes for n in (0, 1)]
        rows = [halves[8 * row : 8 * row + 8] for row in range(8)]
        columns = list(zip(*rows, strict=True))
        return [(columns[lane // 4][lane % 4 * 2] | columns[lane // 4][lane % 4 * 2 + 1] << 16,) for lane in range(32)]

    return whole


BUILDERS: dict[str, Builder] = {
    "shfl": _shuffle, "vote": _vote, "match": _match, "redux": _reduction, "movmatrix": _transpose,
}  # fmt: skip
