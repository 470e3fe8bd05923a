"""Every wrapper with every value of its options assembles on its targets, emits the reviewed text, and is one
instruction or a named scope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any

import pytest

from pyptx import PtxError, ptx
from pyptx.dsl.rewrite import iterate_instructions
from pyptx.ir import Function, IntrinsicScope
from pyptx.toolchain import judge
from tests.digests import assert_digest
from tests.dsl.tracing import make_kernel
from tests.ptx.async_calls import GROUPS, SEVERAL, Call, Operands

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
ELSEWHERE = "PTX03"
"""Codes that name another target or a newer PTX version start with these digits."""
COUNTED = {
    ("mbarrier.arrive", "sm_80"): "a count came with sm_90",
    ("mbarrier.arrive_drop", "sm_80"): "a count came with sm_90",
    ("tensormap.replace", "sm_90a"): "element types 13 to 15 came with sm_100",
}
"""Targets that have the spelling but lack an operand or a value."""


def trace_call(call: Call, arch: str) -> tuple[str, tuple[Any, ...]] | None:
    """Return the text and statements of a kernel that makes a call, or None if the target lacks the instruction."""

    def body() -> None:
        call.make(Operands())

    kernel = make_kernel(body, arch=arch)
    try:
        text = kernel.ptx()
    except PtxError as refusal:
        if refusal.diagnostics[0].code.startswith(ELSEWHERE) or (call.path, arch) in COUNTED:
            return None
        raise
    function = next(part for part in kernel.module().directives if isinstance(part, Function))
    return text, function.body


@cache
def list_calls(group: str) -> tuple[Call, ...]:
    """Return the calls of a group."""
    return tuple(GROUPS[group]())


def parts(text: str) -> tuple[tuple[int, int], str]:
    """Return the version of a module, and the statements of its kernel without the last `ret`."""
    major, minor = text[len(".version ") : text.index("\n")].split(".")
    return (int(major), int(minor)), text[text.index("{\n") + 2 : text.rindex("ret;")]


def emits_as_documented(call: Call, body: tuple[Any, ...]) -> bool:
    """Return whether a call emitted one instruction, or a scope of several."""
    statements = [node for node in body if not type(node).__name__.endswith("Decl")][:-1]
    is_single = len(statements) == 1 and sum(1 for _ in iterate_instructions(statements)) == 1
    has_scope = len(statements) == 1 and isinstance(statements[0], IntrinsicScope)
    return has_scope if call.path in SEVERAL else is_single or has_scope


@pytest.mark.parametrize("group", GROUPS)
def test_every_call_assembles(group: str) -> None:
    successes: set[Call] = set()
    for arch in TARGETS:
        texts: dict[tuple[int, int], list[tuple[str, Call]]] = defaultdict(list)
        emission: list[str] = []
        for call in list_calls(group):
            text_and_body = trace_call(call, arch)
            if text_and_body is not None:
                assert emits_as_documented(call, text_and_body[1]), f"{call}\n{text_and_body[0]}"
                version, text = parts(text_and_body[0])
                emission.append(f"{version} {call}: {text}")
                texts[version].append((text, call))
        assert_digest("calls", f"{group} {arch}", "\n".join(emission))
        failures: list[str] = []
        for version, group_texts in texts.items():
            verdicts = judge([text for text, _ in group_texts], target=arch, version=version)
            for verdict, (text, call) in zip(verdicts, group_texts, strict=True):
                if not verdict.accepted:
                    failures.append(f"{call}: {verdict.diagnostics[0].message}\n{text}")
                successes.add(call)
        call_count = sum(map(len, texts.values()))
        print(f"{group} on {arch}: {call_count} calls, {len(failures)} refused by ptxas")  # noqa: T201
        assert not failures, "\n".join(failures[:20])
    assert successes == set(list_calls(group)), "every call belongs to some target"


FAMILIES = (
    "mbarrier fence bar cluster cvta griddepcontrol clusterlaunchcontrol warp tma tensormap atom red multimem "
    "cp.async_ cp.async_.bulk cp.async_.bulk.tensor"
)


def wrappers() -> Iterator[str]:
    """Return the paths of all wrappers of these families."""
    for family in FAMILIES.split():
        module: ModuleType = ptx
        for name in family.split("."):
            module = getattr(module, name)
        for name in dir(module):
            if callable(value := getattr(module, name)) and not isinstance(value, type):
                yield f"{family}.{name}"
    for module_name in ("async_memory", "cache"):
        yield from ptx._NAMES_OF[module_name].split()  # pyright: ignore[reportPrivateUsage]


INTERNAL = {"mbarrier.array"}
"""The ring of barriers, which has tests of its own."""


def test_every_wrapper_is_called() -> None:
    paths = {call.path for group in GROUPS for call in list_calls(group)}
    assert set(wrappers()) - paths == INTERNAL
