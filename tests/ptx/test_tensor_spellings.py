"""A wrapper emits every spelling of the tensor-core instructions, and ptxas accepts it on its targets; the
operands are the reviewed ones."""

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
from tests.digests import assert_digest
from tests.dsl.tracing import assert_accepted, make_kernel
from tests.ptx.tensor_calls import ROWS, Call, Registers, call_of, calls

NOT_WRAPPED = {
    "wgmma": "without .aligned, which the manual requires",
    "tcgen05.alloc": "with a generic address",
    "tcgen05.commit": ".multicast::cluster::16b, another name of .multicast::cluster",
}


@cache
def group_by_target() -> dict[str, list[Call]]:
    """Return the calls by target."""
    by_target: dict[str, list[Call]] = defaultdict(list)
    for call in calls():
        for name in call.targets:
            by_target[name].append(call)
    return dict(by_target)


def body_of(group: Sequence[Call]) -> Callable[[], None]:
    """Return a kernel that makes these calls."""

    def body() -> None:
        registers = Registers()
        for call in group:
            call.make(registers)

    return body


@pytest.mark.parametrize("target", ASSEMBLED)
def test_every_spelling_comes_out_of_its_wrapper_and_assembles(target: str) -> None:
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in group_by_target()[target]:
        groups[call.group].append(call)
    texts: list[str] = []
    for group in groups.values():
        kernel = make_kernel(body_of(group), arch=target, version=(9, 5))
        module = kernel.module()
        statements = [s for part in module.directives if isinstance(part, Function) for s in part.body]
        emissions = [
            ".".join((i.opcode, *(word[1:] for word in i.modifiers))) for i in iterate_instructions(statements)
        ]
        assert emissions == [call.spelling for call in group] + ["ret"]
        texts.append(kernel.ptx())
        assert_accepted(texts[-1])
    assert_digest("calls", f"tensor {target}", "\n".join(texts))
    sys.stdout.write(f"{target}: {sum(map(len, groups.values()))} wrapper calls, none refused by pyptx or ptxas\n")


def test_what_has_no_wrapper_is_listed() -> None:
    missing: set[str] = set()
    for row in ROWS:
        for binding in lookup.spellings(row):
            match = lookup.match_of(row, binding)
            if all(call_of(match, signature) is None for signature in match.signatures):
                missing.add(row.opcode if row.opcode == "wgmma" else ".".join((row.opcode, match.modifiers[0])))
    assert missing == set(NOT_WRAPPED)


def test_all_of_the_table_is_tried() -> None:
    all_calls = [call for target_calls in group_by_target().values() for call in target_calls]
    spellings = {call.spelling for call in all_calls}
    sys.stdout.write(f"{len(spellings)} spellings, {len(all_calls)} calls on {len(group_by_target())} targets\n")
    assert len(all_calls) > 30_000
