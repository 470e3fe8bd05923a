"""isspacep at the first and the last byte of variables in every space."""

from __future__ import annotations

from itertools import product

from tests.sim.kernels import results

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
