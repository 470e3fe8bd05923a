"""Every spelling of the tensor-core instructions comes out of a wrapper, and ptxas accepts it on its targets."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache

import pytest

from pyptx.dsl.rewrite import iterate_instructions
from pyptx.ir import Function
from pyptx.isa import lookup
from pyptx.isa.targets import ASSEMBLED
from tests.dsl.tracing import accepted, traced
from tests.ptx.tensor_calls import ROWS, Call, Registers, call_of, calls

NOT_WRAPPED = {
    "wgmma": "without .aligned, which the manual requires",
    "tcgen05.alloc": "with a generic address",
    "tcgen05.commit": ".multicast::cluster::16b, another name of .multicast::cluster",
}


@cache
def everything() -> dict[str, list[Call]]:
    """Return the calls by target."""
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls():
        for name in call.targets:
            found[name].append(call)
    return dict(found)


def body_of(made: Sequence[Call]) -> Callable[[], None]:
    """Return a kernel that makes these calls."""

    def body() -> None:
        registers = Registers()
        for call in made:
            call.make(registers)

    return body


@pytest.mark.parametrize("where", ASSEMBLED)
def test_every_spelling_comes_out_of_its_wrapper_and_assembles(where: str) -> None:
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in everything()[where]:
        groups[call.group].append(call)
    for made in groups.values():
        kernel = traced(body_of(made), arch=where, version=(9, 5))
        module = kernel.module()
        written = [s for part in module.directives if isinstance(part, Function) for s in part.body]
        found = [".".join((i.opcode, *(word[1:] for word in i.modifiers))) for i in iterate_instructions(written)]
        assert found == [call.spelling for call in made] + ["ret"]
        accepted(kernel.ptx())
    sys.stdout.write(f"{where}: {sum(map(len, groups.values()))} wrapper calls, none refused by pyptx or ptxas\n")


def test_what_has_no_wrapper_is_listed() -> None:
    missing: set[str] = set()
    for row in ROWS:
        for bound in lookup.spellings(row):
            match = lookup.match_of(row, bound)
            if all(call_of(match, signature) is None for signature in match.signatures):
                missing.add(row.opcode if row.opcode == "wgmma" else ".".join((row.opcode, match.modifiers[0])))
    assert missing == set(NOT_WRAPPED)


def test_all_of_the_table_is_tried() -> None:
    tried = [call for made in everything().values() for call in made]
    spellings = {call.spelling for call in tried}
    sys.stdout.write(f"{len(spellings)} spellings, {len(tried)} calls on {len(everything())} targets\n")
    assert len(tried) > 30_000
