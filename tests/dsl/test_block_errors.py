"""Mistakes in blocks, loops and labels: each is an error at the user's line and leaves no half-written block."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from pyptx import PtxError, intrinsic, kernel, ptx, reg
from pyptx.dsl import returns
from pyptx.types import pred, u32
from tests.messages import raises

from .tracing import assert_rejected, code, make_kernel


def test_a_block_that_is_never_closed_is_reported_where_it_was_opened() -> None:
    def body() -> None:
        p = reg.scalar(pred, 1)
        ptx.if_(p).__enter__()  # here
        ptx.ret()

    assert_rejected(body, "PTX0811", "ptx.if_")


def test_a_block_that_ends_before_one_inside_is_reported_where_that_was_opened() -> None:
    def body() -> None:
        with ptx.scope():  # here
            ptx.if_(reg.scalar(pred, 1)).__enter__()

    found = assert_rejected(body, "PTX0811", marker="# here")
    assert found.message == "`ptx.scope()` ends here, but `ptx.if_` inside it is still open"
    (note,) = found.notes
    assert re.fullmatch(rf"`ptx.if_` was opened at {re.escape(__file__)}:{(found.line or 0) + 1}(:\d+)?", str(note))


def test_an_abandoned_block_leaves_its_labels_free() -> None:
    def body() -> None:
        for block in (ptx.if_(reg.scalar(pred, 1)), ptx.scope()):
            with suppress(ValueError), block:
                ptx.label("again")
                raise ValueError
        ptx.label("again")
        ptx.bra("again")

    assert [line for line in code(body) if "again" in line] == ["again:", "bra again;"]


def test_return_inside_a_block_is_refused() -> None:
    def direct() -> None:
        p = reg.scalar(pred, 1)
        with ptx.if_(p):  # here
            return
        ptx.ret()

    def branch(early: bool = True) -> None:
        p = reg.scalar(pred, 1)
        with ptx.loop("top"):
            with ptx.if_(p):  # here
                if early:
                    return
                ptx.inst.bar.sync(0)
            ptx.inst.bar.sync(1)

    def helper_at_its_end(p: Any) -> None:
        with ptx.if_(p):
            ptx.inst.bar.sync(2)

    def fine() -> int:
        p = reg.scalar(pred, 1)
        helper_at_its_end(p)
        with ptx.if_(p):
            ptx.inst.bar.sync(0)
        return 3

    assert_rejected(direct, "PTX0812", "ptx.ret()")

    def calls_nested() -> None:
        branch()

    with raises(PtxError, match=r"PTX0812.*ptx\.if_"):
        make_kernel(calls_nested).ptx()
    assert len(code(fine)) == 7


def test_an_exception_leaves_no_half_written_block() -> None:
    def body() -> None:
        p = reg.scalar(pred, 1)
        for open_block in (lambda: ptx.if_(p), lambda: ptx.loop("top"), ptx.scope, ptx.expr):
            try:
                with open_block():
                    ptx.inst.bar.sync(1)
                    raise KeyError
            except KeyError:
                pass
        with ptx.if_(p):
            ptx.inst.bar.sync(2)
        try:
            with ptx.else_():
                raise KeyError
        except KeyError:
            pass
        with ptx.loop("top", pred=lambda: p):
            ptx.inst.bar.sync(3)

    assert code(body) == [
        "mov.pred %p0, 1;", "@!%p0 bra $if2_else;", "bar.sync 2;", "bra $if2_end;", "$if2_else:", "$if2_end:", "top:",
        "bar.sync 3;", "@%p0 bra top;",
    ]  # fmt: skip


def test_a_mistake_in_a_counted_loop_inside_a_block_is_what_is_reported() -> None:
    def body() -> None:
        with ptx.if_(ptx.special.tid.x() == 0):
            for _ in ptx.range_(0, 8):
                ptx.wgmma.fence()  # here
        with ptx.else_():
            for _ in ptx.range_(0, 8):
                ptx.bar.sync(0)

    def after() -> None:
        with ptx.if_(ptx.special.tid.x() == 0):
            ptx.bar.sync(0)
        with ptx.else_():
            for _ in ptx.range_(0, 8):
                ptx.wgmma.fence()  # here

    assert_rejected(body, "PTX0302", arch="sm_90")
    assert_rejected(after, "PTX0302", arch="sm_90")


def test_an_exception_in_an_intrinsic_removes_its_statements() -> None:
    @intrinsic
    def failing() -> None:
        ptx.inst.bar.sync(1)
        raise KeyError

    def body() -> None:
        with pytest.raises(KeyError):
            failing()
        ptx.inst.bar.sync(2)

    assert code(body) == ["bar.sync 2;"]


def test_else_follows_its_if_directly() -> None:
    def alone() -> None:
        with ptx.else_():  # here
            pass

    def separate() -> None:
        p = reg.scalar(pred, 1)
        with ptx.if_(p):
            pass
        ptx.inst.bar.sync(0)
        with ptx.else_():  # here
            pass

    def repeat() -> None:
        p = reg.scalar(pred, 1)
        with ptx.if_(p):
            pass
        with ptx.else_():
            pass
        with ptx.else_():  # here
            pass

    def late_condition() -> None:
        x = reg.scalar(u32, 1)
        with ptx.if_(x == 1):
            pass
        p = x == 2
        with ptx.elif_(p):  # here
            pass

    for body in (alone, separate, repeat, late_condition):
        assert_rejected(body, "PTX0810", "directly")


def test_control_flow_inside_an_expression_is_refused() -> None:
    def body() -> None:
        p = reg.scalar(pred, 1)
        with ptx.expr(), ptx.if_(p):  # here
            pass

    assert_rejected(body, "PTX0810", "ptx.expr")


def test_break_outside_a_loop_is_refused() -> None:
    def body() -> None:
        ptx.break_()  # here

    assert_rejected(body, "PTX0810", "ptx.range_")


def test_labels_are_placed_once_and_exist() -> None:
    def repeat() -> None:
        ptx.label("a")
        ptx.label("a")  # here

    def nowhere() -> None:
        ptx.label("done")
        ptx.bra("dome")  # here

    def elsewhere() -> None:
        ptx.inst.bra("nope")  # here

    assert_rejected(repeat, "PTX0813", "already")
    assert_rejected(nowhere, "PTX0813", "did you mean `done`?")
    assert_rejected(elsewhere, "PTX0813", "nope")


def test_recursion_is_only_pythons() -> None:
    def endless(x: Any) -> None:
        endless(x + 1)

    def body() -> None:
        endless(reg.scalar(u32, 1))

    with pytest.raises(RecursionError):
        make_kernel(body).ptx()

    def count(x: Any, n: int) -> None:
        if n:
            count(x + 1, n - 1)

    def ends() -> None:
        count(reg.scalar(u32, 1), 50)

    assert len(code(ends)) == 51


def test_a_branch_of_python_ends_with_a_block() -> None:
    """What follows in the code is another branch, not the rest of this one."""

    def return_early(p: Any, first: bool) -> None:
        if first:
            with ptx.if_(p):
                ptx.inst.bar.sync(0)
        else:
            ptx.inst.bar.sync(1)

    def body() -> None:
        p = reg.scalar(pred, 1)
        return_early(p, True)
        return_early(p, False)

    assert [line for line in code(body) if "bar" in line] == ["bar.sync 0;", "bar.sync 1;"]


_RETURNS = """
def leaves(x):
    with ptx.if_(x == 0):
        with ptx.if_(x == 1):
            return
    ptx.bar.sync(0)
def leaves_a_round(x):
    for _ in range(2):
        with ptx.if_(x == 0), ptx.if_(x == 1):
            return 5
def stays(x):
    if True:
        with ptx.if_(x == 0):
            ptx.bar.sync(0)
    else:
        ptx.bar.sync(1)
def leaves_a_loop(x, now=True):
    with ptx.loop("top"):
        with ptx.if_(x == 0):
            if now: return
            ptx.bar.sync(0)
        ptx.bar.sync(1)
def ends(x):
    with ptx.if_(x == 0):
        y = x + 1
    return y
def ends_early(x):
    with ptx.if_(x == 0):
        return x + 1
def goes_on(x, now=False):
    for _ in range(2):
        with ptx.loop("top", pred=lambda: x == 9):
            with ptx.if_(x == 0):
                if now: return
                ptx.bar.sync(0)
            ptx.bar.sync(1)
def ends_nested(x, now=False):
    with ptx.if_(x == 0):
        if now: return
        with ptx.if_(x == 1), ptx.if_(x == 2):
            ptx.bar.sync(0)
"""


def _without_file(name: str, source: bool) -> Callable[[], None]:
    """Return a kernel that calls a function of `_RETURNS`, whose source may be available, as in a notebook."""
    namespace: dict[str, Any] = {"ptx": ptx}
    file = f"<cell {source}>"
    if source:
        linecache.cache[file] = len(_RETURNS), None, [f"{line}\n" for line in _RETURNS.splitlines()], file
    exec(compile(_RETURNS, file, "exec"), namespace)

    def body() -> None:
        namespace[name](reg.scalar(u32, 0))

    return body


@pytest.mark.parametrize("name", ["leaves", "leaves_a_round", "leaves_a_loop"])
def test_return_inside_nested_blocks_is_refused(name: str) -> None:
    with raises(PtxError, match=r"PTX0812.*`return` inside `ptx.if_`"):
        kernel(_without_file(name, source=True)).ptx()


@pytest.mark.parametrize("name", ["stays", "ends", "ends_early", "goes_on", "ends_nested"])
def test_a_function_that_ends_in_a_block_is_right(name: str) -> None:
    kernel(_without_file(name, source=True)).ptx()


def test_a_cell_that_python_cannot_parse_refuses_no_return() -> None:
    """A notebook keeps the text of a cell before its commands become Python."""
    written: dict[str, Any] = {"ptx": ptx}
    file = "<cell with a command>"
    linecache.cache[file] = len(_RETURNS), None, ["%time\n", *(f"{line}\n" for line in _RETURNS.splitlines()[1:])], file
    exec(compile(_RETURNS, file, "exec"), written)

    def body() -> None:
        written["leaves"](reg.scalar(u32, 0))

    assert code(body) == code(_without_file("leaves", source=False))


def test_what_is_known_of_functions_is_forgotten_in_time() -> None:
    written: dict[str, Any] = {"ptx": ptx}

    def body() -> None:
        x = reg.scalar(u32, 0) == 0
        for _ in range(1100):
            exec("def helper(x):\n    with ptx.if_(x):\n        ptx.ret()\n    return x\n", written)
            written["helper"](x)

    make_kernel(body).ptx()
    assert 0 < len(returns._ANALYSES) <= 1024  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("name", ["leaves", "stays", "ends", "ends_early", "goes_on", "ends_nested"])
def test_without_the_source_no_return_is_refused(name: str) -> None:
    kernel(_without_file(name, source=False)).ptx()
