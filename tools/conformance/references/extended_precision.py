"""Arithmetic with the carry flag: every function takes the flag first and returns it last. A difference adds the
complement, as in ptxas's code, so the flag is set where nothing is borrowed."""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case
from tools.conformance.references.words import Builder, Scalar, bits_of, clamp, read


def _builder(exact: Callable[[tuple[str, ...], str, tuple[int, ...], int], int]) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        name = modifiers[-1]
        if not case.carries:
            return None
        bits = bits_of(name)
        takes = case.opcode.endswith("c")

        def whole(carry: int, *operands: int) -> tuple[int, int]:
            total = exact(modifiers, name, operands, carry if takes else int(case.opcode == "sub"))
            # ptxas ignores the `.sat` of a product.
            if "sat" in modifiers and "hi" not in modifiers:
                return clamp(read(operands[0], name) + read(operands[1], name) + carry, name) & ((1 << bits) - 1), carry
            after = total >> bits & 1 if "cc" in modifiers else carry
            return total & ((1 << bits) - 1), after

        return whole

    return build


def _add(modifiers: tuple[str, ...], name: str, operands: tuple[int, ...], carry: int) -> int:
    return operands[0] + operands[1] + carry


def _sub(modifiers: tuple[str, ...], name: str, operands: tuple[int, ...], carry: int) -> int:
    return operands[0] + (operands[1] ^ ((1 << bits_of(name)) - 1)) + carry


def _mad(modifiers: tuple[str, ...], name: str, operands: tuple[int, ...], carry: int) -> int:
    """Return the sum with half of the product. For 16-bit numbers ptxas takes the bits above 32 as the upper half."""
    bits = bits_of(name)
    product = read(operands[0], name) * read(operands[1], name)
    part = product >> max(bits, 32) if "hi" in modifiers else product
    return (part & ((1 << bits) - 1)) + operands[2] + carry


BUILDERS: dict[str, Builder] = {
    "add": _builder(_add),
    "addc": _builder(_add),
    "sub": _builder(_sub),
    "subc": _builder(_sub),
    "mad": _builder(_mad),
    "madc": _builder(_mad),
}
