"""Moves of whole registers and of their parts. Manual: Data Movement and Conversion Instructions: mov."""

from __future__ import annotations

from tools.conformance.forms import Case
from tools.conformance.references.words import Builder, Scalar, bits_of


def _mov(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
    if len(case.inputs) == len(case.outputs):
        return lambda *operands: operands
    count = max(len(case.inputs), len(case.outputs))
    width = bits_of(modifiers[-1]) // count

    def pack(*operands: int) -> int:
        return sum((part & ((1 << width) - 1)) << n * width for n, part in enumerate(operands))

    def unpack(a: int) -> tuple[int, ...]:
        return tuple(a >> n * width & ((1 << width) - 1) for n in range(count))

    return pack if len(case.inputs) == count else unpack


BUILDERS: dict[str, Builder] = {"mov": _mov}
