"""The limits of loops over repeated statements: the whole text at each limit, and one beyond it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.codegen.sugared import find_difference, statements

VALUES = tuple(random.Random(0).sample(range(1000, 10000), 400))
"""Numbers of four digits in no order."""


def write(values: Sequence[object]) -> tuple[str, str]:
    """Return a store of numbers in PTX and in Python."""
    if len(values) == 1:
        return f"st.global.u32 [%rd1], {values[0]};\n", f"ptx.st(u32, rd[1], {values[0]})"
    text = ", ".join(map(str, values))
    return f"st.global.v{len(values)}.u32 [%rd1], {{{text}}};\n", f"ptx.st(u32, rd[1], [{text}])"


def roll(*stores: Sequence[object]) -> list[str]:
    """Return the Python lines of stores, one header per loop."""
    ptx = "".join(write(values)[0] for values in stores)
    assert find_difference(ptx) is None
    lines = " ".join(statements(ptx)).replace("( ", "(").replace(", )", ")").replace(" )", ")")
    return lines.replace(" ptx.", "\nptx.").replace(" for", "\nfor").split("\n")


def calls(*stores: Sequence[object]) -> list[str]:
    return [write(values)[1] for values in stores]


def table(values: Sequence[object]) -> str:
    return f"for x in ({', '.join(map(str, values))}):"


def test_a_loop_has_at_least_three_iterations() -> None:
    pairs = [[(VALUES[index],), (index, 0)] for index in range(3)]
    assert roll(*pairs[0], *pairs[1]) == calls(*pairs[0], *pairs[1])
    header = f"for j, x in enumerate(({', '.join(map(str, VALUES[:3]))})):"
    assert roll(*pairs[0], *pairs[1], *pairs[2]) == [header, *calls(("x",), ("j", 0))]


def test_a_loop_replaces_at_least_four_statements() -> None:
    assert roll((0,), (1,), (2,)) == calls((0,), (1,), (2,))
    assert roll((0,), (1,), (2,), (3,)) == ["for j in range(4):", *calls(("j",))]


@pytest.mark.parametrize(("length", "is_loop"), [(24, True), (25, False)])
def test_an_iteration_has_at_most_24_statements(length: int, is_loop: bool) -> None:
    stores = [*(VALUES[4 * index : 4 * index + 4] for index in range(length - 1)), (0,)]
    assert roll(*stores * 3) == (["for _ in range(3):", *calls(*stores)] if is_loop else calls(*stores * 3))


def test_a_loop_has_at_most_256_iterations() -> None:
    stores = [(index,) for index in range(257)]
    assert roll(*stores[:256]) == ["for j in range(256):", *calls(("j",))]
    assert roll(*stores) == ["for j in range(256):", *calls(("j",), (256,))]


@pytest.mark.parametrize(("fifth", "is_loop"), [([7, 7, 7], True), ([3, 1, 4], False)])
def test_an_iteration_has_at_most_four_varying_values(fifth: list[int], is_loop: bool) -> None:
    rows = [VALUES[4 * index : 4 * index + 4] for index in range(3)]
    stores = [store for row, number in zip(rows, fifth, strict=True) for store in (row, (number, 0), (0, 0))]
    header = f"for x, y, z, w in ({', '.join(map(str, rows))}):"
    assert roll(*stores) == ([header, *calls([*"xyzw"], (7, 0), (0, 0))] if is_loop else calls(*stores))


@pytest.mark.parametrize(("last", "counts"), [(VALUES[79], [80]), (12345, [40, 40])])
def test_a_table_has_at_most_480_characters(last: int, counts: list[int]) -> None:
    values = [*VALUES[:79], last]
    loops = [values[:80]] if counts == [80] else [values[:40], values[40:]]
    assert roll(*((value,) for value in values)) == [line for part in loops for line in (table(part), *calls(("x",)))]


def test_six_lengths_are_tried_at_each_place() -> None:
    """The lengths with the most statements come first, the shorter ones before the longer ones."""
    stores = [VALUES[4 * index : 4 * index + 4] for index in range(10)]
    assert roll(*stores * 3) == ["for _ in range(3):", *calls(*stores)]  # after 1, 2, 3, 5 and 6
    start = stores[9:] + stores[:9]
    assert roll(*stores * 6) == [*calls(*stores[:9]), "for _ in range(5):", *calls(*start), *calls(stores[9])]
