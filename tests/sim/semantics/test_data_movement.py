"""isspacep at the first and the last byte of variables in every space, and permutations of bytes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from tests.sim.kernels import results
from tests.sim.lanes import compute, integers

SPACES = ("const", "global", "shared", "local")
SIZES = {"first": 4, "second": 12}


def test_each_address_is_in_its_own_space_alone() -> None:
    places = [(s, n, at) for s, (n, size) in product(SPACES, SIZES.items()) for at in (0, size - 1)]
    declared = [f".{s} .align 4 .b8 {s}_{n}[{size}];" for s, (n, size) in product(SPACES, SIZES.items())]
    body = " ".join(text for text in declared if ".local" in text) + "mov.u32 %r0, 0;\n"
    for lane, (space, name, at) in enumerate(places):
        body += f"setp.eq.u32 %p0, %t, {lane}; mov.u64 %rd2, {space}_{name}; cvta.{space}.u64 %rd2, %rd2;\n"
        body += f"@%p0 add.u64 %rd1, %rd2, {at};\n"
    for number, space in enumerate(SPACES):
        body += f"isspacep.{space} %p1, %rd1; selp.u32 %r1, {1 << number}, 0, %p1; add.u32 %r0, %r0, %r1;\n"
    module = " ".join(text for text in declared if ".local" not in text)
    found = results(body + "st.global.u32 [%o], %r0;", len(places), module=module)
    assert found == [1 << SPACES.index(space) for space, _, _ in places]


PERMUTATIONS: dict[str, Callable[[int, int], int]] = {
    "": lambda index, control: control >> 4 * index & 15,
    ".f4e": lambda index, control: (control & 3) + index,
    ".b4e": lambda index, control: ((control & 3) - index) % 8,
    ".rc8": lambda index, control: control & 3,
    ".ecl": lambda index, control: max(control & 3, index),
    ".ecr": lambda index, control: min(control & 3, index),
    ".rc16": lambda index, control: (control & 1) * 2 + index % 2,
}
"""By mode, which byte of b and a becomes a byte of the result; 8 is added for the sign of that byte."""


@pytest.mark.parametrize("mode", PERMUTATIONS)
def test_bytes_are_permuted(mode: str) -> None:
    inputs = {name: integers(np.uint32, seed=seed) for seed, name in enumerate("abc")}
    expected: list[int] = []
    for a, b, control in zip(*(values.tolist() for values in inputs.values()), strict=True):
        selectors = [PERMUTATIONS[mode](index, control) for index in range(4)]
        selection = [(b << 32 | a) >> 8 * (selector & 7) & 0xFF for selector in selectors]
        signs = [
            0xFF * (byte >> 7) if selector & 8 else byte for byte, selector in zip(selection, selectors, strict=True)
        ]
        expected.append(int.from_bytes(signs, "little"))
    assert compute(f"prmt.b32{mode} %d, %a, %b, %c;", inputs, {"d": "u4"})["d"].tolist() == expected
