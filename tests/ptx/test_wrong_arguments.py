"""What each wrapper says or emits if one argument of a call is replaced is the reviewed text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from pyptx import PtxError, ptx, reg, smem
from pyptx.types import f16, f32, pred, u32, u64
from tests.digests import assert_digest
from tests.dsl.tracing import make_kernel
from tests.ptx.async_calls import GROUPS, Call, Operands

Maker = Callable[[], Any]
REPLACEMENTS: dict[str, Maker] = {
    "None": lambda: None, "True": lambda: True, "0": lambda: 0, "-1": lambda: -1, "3": lambda: 3, "64": lambda: 64,
    "2**40": lambda: 1 << 40, "1.5": lambda: 1.5, "text": lambda: "bogus", "relaxed": lambda: "relaxed",
    "cta": lambda: "cta", "a type": lambda: f16, "f32": lambda: reg.alloc(f32), "u64": lambda: reg.alloc(u64),
    "pred": lambda: reg.alloc(pred), "not pred": lambda: ~reg.alloc(pred), "registers": lambda: list(reg.array(u32, 3)),
    "none": list, "tile": lambda: smem.alloc(f32, (4, 8)), "barrier": lambda: smem.mbarrier(2)[1],
    "address": lambda: ptx.addr(reg.alloc(u64), 8), "coordinates": lambda: ptx.addr(reg.alloc(u64), [1, 2, 3]),
}  # fmt: skip


@cache
def list_longest_calls(group: str) -> dict[str, Call]:
    """Return the call of each wrapper of a group with the most arguments."""
    calls: dict[str, Call] = {}
    for call in GROUPS[group]():
        before = calls.get(call.path)
        if before is None or _count_arguments(call) > _count_arguments(before):
            calls[call.path] = call
    return calls


def _count_arguments(call: Call) -> int:
    return sum(value is not None for value in (*call.args, *dict(call.kwargs).values()))


def replace_arguments(call: Call) -> Iterator[tuple[str, Callable[[Operands], Any]]]:
    """Yield calls with one other argument, each with a description."""
    for name, make in REPLACEMENTS.items():
        for position in range(len(call.args)):

            def replace_position(operands: Operands, position: int = position, make: Maker = make) -> None:
                args = (*call.args[:position], make(), *call.args[position + 1 :])
                replace(call, args=args).make(operands)

            yield f"{position} {name}", replace_position
        for keyword in dict(call.kwargs):

            def replace_keyword(operands: Operands, keyword: str = keyword, make: Maker = make) -> None:
                replace(call, kwargs=tuple((dict(call.kwargs) | {keyword: make()}).items())).make(operands)

            yield f"{keyword} {name}", replace_keyword


def describe_call(call: Callable[[Operands], Any]) -> str:
    """Return the statements of a kernel that makes a call, or the error."""

    def body() -> None:
        call(Operands())

    try:
        text = make_kernel(body, arch="sm_100a").ptx()
    except PtxError as error:
        return "\n".join(f"{found.code} {found.message} {found.help} {found.notes}" for found in error.diagnostics)
    except (AttributeError, TypeError) as error:
        return type(error).__name__
    return text[text.index("{\n") + 2 :]


@pytest.mark.parametrize(("group", "path"), [(group, path) for group in GROUPS for path in list_longest_calls(group)])
def test_a_call_with_one_other_argument(group: str, path: str) -> None:
    call = list_longest_calls(group)[path]
    texts = [f"{name}: {describe_call(other)}" for name, other in replace_arguments(call)]
    assert_digest("arguments", path, "\n".join(texts))
