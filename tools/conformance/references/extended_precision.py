"""Arithmetic with the carry flag: every function gets the flag first and returns it last.

As ptxas makes it: a difference adds the complement, so that the flag is set where nothing is borrowed.
"""

from __future__ import annotations

from collections.abc import Callable

from tools.conformance.forms import Case
from tools.conformance.references.words import Builder, Scalar, bits_of, clamped, read


def _builder(exact: Callable[[tuple[str, ...], str, tuple[int, ...], int], int]) -> Builder:
    def build(modifiers: tuple[str, ...], case: Case) -> Scalar | None:
        name = modifiers[-1]
        if not case.carries:
            return None
        bits = bits_of(name)
        takes = case.opcode.endswith("c")

        def whole(carry: int, *given: int) -> tuple[int, int]:
            total = exact(modifiers, name, given, carry if takes else int(case.opcode == "sub"))
            if "sat" in modifiers:
                return clamped(_signed(modifiers, name, given) + carry, name) & ((1 << bits) - 1), carry
            after = total >> bits & 1 if "cc" in modifiers else carry
            return total & ((1 << bits) - 1), after

        return whole

    return build


def _signed(modifiers: tuple[str, ...], name: str, given: tuple[int, ...]) -> int:
    """Return what the forms with `.sat` clamp: a signed sum, or the upper half of a product and a summand."""
    first, second = read(given[0], name), read(given[1], name)
    if "hi" in modifiers:
        return (first * second >> bits_of(name)) + read(given[2], name)
    return first + second


def _add(modifiers: tuple[str, ...], name: str, given: tuple[int, ...], carry: int) -> int:
    return given[0] + given[1] + carry


def _sub(modifiers: tuple[str, ...], name: str, given: tuple[int, ...], carry: int) -> int:
    return given[0] + (given[1] ^ ((1 << bits_of(name)) - 1)) + carry


def _mad(modifiers: tuple[str, ...], name: str, given: tuple[int, ...], carry: int) -> int:
    """Return the sum with a half of the product; of 16-bit numbers ptxas takes what is above 32 bits for the upper."""
    bits = bits_of(name)
    product = read(given[0], name) * read(given[1], name)
    part = product >> max(bits, 32) if "hi" in modifiers else product
    return (part & ((1 << bits) - 1)) + given[2] + carry


BUILDERS: dict[str, Builder] = {
    "add": _builder(_add),
    "addc": _builder(_add),
    "sub": _builder(_sub),
    "subc": _builder(_sub),
    "mad": _builder(_mad),
    "madc": _builder(_mad),
}
