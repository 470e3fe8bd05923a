"""Names that a GPU loop rebinds to other registers, which the next iteration would not see."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from pyptx import kernel, ptx, reg
from pyptx.types import f32, s32, u32


@dataclass
class State:
    """Values that a kernel may carry from one iteration to the next."""

    total: Any


def _range() -> None:
    s = reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        s = s + i  # here


def _while() -> None:
    n = reg.scalar(u32, 0)
    with ptx.while_(lambda: n < 4):
        n = n + 1  # here


def _loop() -> None:
    n = reg.scalar(u32, 0)
    with ptx.loop("top"):
        ptx.break_(pred=n > 4)
        n = n + 1  # here


def _kloop() -> None:
    n, s = reg.scalar(u32, 8), reg.scalar(u32, 0)

    def body() -> None:
        nonlocal s
        s = s + 1  # here

    ptx.kloop(n, unroll=1, body=body)


def _elements() -> None:
    acc = [reg.scalar(f32, 0.0) for _ in range(2)]
    for _ in ptx.range_(0, 8):
        for j in range(2):
            acc[j] = acc[j] + 1.0  # here


def _fields() -> None:
    state, table = State(reg.scalar(s32, 0)), {"kept": (reg.scalar(s32, 0), 1)}
    for i in ptx.range_(0, 8):
        state.total = state.total + table["kept"][0]  # here
        ptx.mov(s32, table["kept"][0], i)


def _entries() -> None:
    table = {"sum": [reg.scalar(s32, 0)]}
    for i in ptx.range_(0, 8):
        table["sum"][0] = i + table["sum"][0]  # here


def _helper() -> None:
    def count(n: Any) -> None:
        for _ in ptx.range_(0, 8):
            n = n + 1  # here

    total = reg.scalar(s32, 0)
    count(total)


def _in_branches() -> None:
    best, x = reg.scalar(s32, 0), reg.scalar(s32, 1)
    for _ in ptx.range_(0, 4):
        for i in ptx.range_(0, 8):
            with ptx.if_(i > best):
                best = best + x  # here


def _from_a_number() -> None:
    total = 0.0
    for i in ptx.range_(0, 8):
        total += ptx.cvt(f32, s32, i, rounding="rn")  # here
        total += 1.0


def _in_a_block() -> None:
    n, s = reg.scalar(u32, 0), reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        with ptx.scope():
            s = s + i  # here
            ptx.mov(u32, n, 1)


def _to_an_older_register() -> None:
    s, other = reg.scalar(u32, 0), reg.scalar(u32, 1) * 3
    for _ in ptx.range_(0, 8):  # here
        ptx.inst.bar.sync(s)
        s = other


def _beside_a_number() -> None:
    step, s = 0, reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        s = s + i  # here
        step = i * 4
        ptx.inst.bar.sync(step.u32)


def _held_by_a_list() -> None:
    s = reg.scalar(s32, 0)
    table = [s]
    for i in ptx.range_(0, 8):
        s = s + i  # here
    assert table


def _predicate() -> None:
    p = reg.scalar(u32, 0) == 0
    for i in ptx.range_(0, 8):
        ptx.bar.sync(0, pred=p)
        p = i > 3  # here


def _negated_predicate() -> None:
    p = ~(reg.scalar(u32, 0) == 0)
    for i in ptx.range_(0, 8):
        ptx.bar.sync(0, pred=p)
        p = i > 3  # here


def _unknown_instruction() -> None:
    s = reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        ptx.inst["fresh.op.u32"](s, unchecked=True)
        s = i + 1  # here


LOST = (
    _to_an_older_register, _beside_a_number, _held_by_a_list, _predicate, _negated_predicate, _unknown_instruction,
    _in_a_block, _from_a_number, _range, _while, _loop, _kloop, _elements, _fields, _entries, _helper, _in_branches,
)  # fmt: skip


@pytest.mark.parametrize("body", LOST, ids=lambda body: body.__name__)
def test_an_update_that_the_next_round_does_not_see_is_a_warning(body: Callable[[], None]) -> None:
    findings = [d for d in kernel(body).check() if d.code == "PTX0831"]
    lines, first = inspect.getsourcelines(body)
    assert {d.line for d in findings} == {first + index for index, line in enumerate(lines) if "# here" in line}
    with pytest.warns(UserWarning, match=r"test_rebinding\.py:\d+: warning\[PTX0831\]") as records:
        kernel(body).ptx()
    assert records[0].filename == __file__


@pytest.mark.parametrize(
    ("body", "name"),
    [(_elements, "acc[0]"), (_fields, "state.total"), (_entries, "table['sum'][0]"), (_predicate, "p")],
)
def test_the_warning_names_the_variable_and_what_to_write(body: Callable[[], None], name: str) -> None:
    finding = next(d for d in kernel(body).check() if d.code == "PTX0831")
    assert str(finding.message).startswith(f"`{name}` is another register at the end of the loop body: ")
    assert f"{name}, …)" in str(finding.help)


def test_a_number_that_becomes_a_register_is_named_with_its_value() -> None:
    (finding,) = [d for d in kernel(_from_a_number).check() if d.code == "PTX0831"]
    assert (
        finding.message
        == "`total` is Python's 0.0 before the loop, and every iteration on the GPU starts with that value"
    )
    assert finding.help == "make it a register before the loop: total = reg.scalar(f32, 0.0)"


WRAPS: list[Callable[[Any], Any]] = [lambda x: [x], lambda x: (x,), lambda x: {"key": x}, State]


def _wrap(value: Any, wrap: Callable[[Any], Any], depth: int) -> Any:
    return value if depth == 0 else wrap(_wrap(value, wrap, depth - 1))


@pytest.mark.parametrize(("depth", "is_compared"), [(3, True), (4, False)])
@pytest.mark.parametrize("wrap", WRAPS)
def test_three_levels_of_containers_are_compared(wrap: Callable[[Any], Any], depth: int, is_compared: bool) -> None:
    hidden = SimpleNamespace()

    def body() -> None:
        hidden.value = reg.scalar(s32, 0)
        box = _wrap(hidden.value, wrap, depth)
        for i in ptx.range_(0, 8):
            box = _wrap(hidden.value + i, wrap, depth)
        assert box

    assert [d.code for d in kernel(body).check() if d.code == "PTX0831"] == ["PTX0831"] * is_compared


Change = Callable[[Any, Any], Any]
_IN_PLACE: list[tuple[Change, str]] = [
    (lambda s, i: s + i, "+="), (lambda s, i: i + s, "+="), (lambda s, _: 1 + s, "+="), (lambda s, i: s - i, "-="),
    (lambda s, i: s * i, "*="), (lambda s, _: s // 3, "//="), (lambda s, _: s % 3, "%="), (lambda s, i: s & i, "&="),
    (lambda s, i: i | s, "|="), (lambda s, _: s ^ 1, "^="), (lambda s, _: s << 1, "<<="), (lambda s, _: s >> 1, ">>="),
]  # fmt: skip
_BY_NONE: list[Change] = [
    lambda s, i: i - s, lambda s, _: 3 - s, lambda s, _: -s, lambda s, i: s * 2 + i * s, lambda s, i: i + s * 2,
]  # fmt: skip


def _help(change: Change) -> str | None:
    def body() -> None:
        s = reg.scalar(s32, 1)
        for i in ptx.range_(0, 8):
            s = change(s, i)

    (finding,) = [d for d in kernel(body).check() if d.code == "PTX0831"]
    return finding.help


@pytest.mark.parametrize(("change", "operator"), _IN_PLACE)
def test_the_help_names_the_operator_in_place(change: Change, operator: str) -> None:
    assert _help(change) == f"update the register in place: `s {operator} …`, or ptx.mov(s32, s, …)"


@pytest.mark.parametrize("change", _BY_NONE)
def test_the_help_names_no_operator_where_none_in_place_does_the_same(change: Change) -> None:
    assert _help(change) == "update the register in place: ptx.mov(s32, s, …)"


def test_the_help_names_no_operator_of_a_register_that_the_loop_writes_otherwise() -> None:
    def body() -> None:
        s, x = reg.scalar(s32, 1), reg.scalar(s32, 2) * 3
        for i in ptx.range_(0, 8):
            ptx.mov(s32, x, i)
            ptx.add(s32, x, x, s)
            s = x

    (finding,) = [d for d in kernel(body).check() if d.code == "PTX0831"]
    assert finding.help == "update the register in place: ptx.mov(s32, s, …)"


def _in_place() -> None:
    s, array, acc = reg.scalar(s32, 0), reg.array(f32, 2), [reg.scalar(s32, 0)]
    for i in ptx.range_(0, 8):
        s += i
        acc[0] += s
        array[1] = array[1] + array[0]


def _write_update() -> None:
    s = first = reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        s = s + i
        ptx.mov(s32, first, s)


def _temporary() -> None:
    x = reg.scalar(s32, 0) * 3
    for i in ptx.range_(0, 8):
        x = i * 2
        ptx.inst.bar.sync(x.u32)


def _from_another_name() -> None:
    base = reg.scalar(s32, 0)
    x = base
    for i in ptx.range_(0, 8):
        x = base + i
        ptx.inst.bar.sync(x.u32)


def _python_only() -> None:
    x, n = reg.scalar(s32, 0), reg.scalar(u32, 3)
    for i in range(4):
        x = x + i
    ptx.kloop(4, unroll=1, body=lambda: None)
    with ptx.if_(n == 3):
        n = n + 1


def _swap_back() -> None:
    a, b = reg.scalar(s32, 0), reg.scalar(s32, 1)
    for _ in ptx.range_(0, 8):
        for _ in range(2):
            ptx.inst.bar.sync(a.u32)
            a, b = b, a


def _view() -> None:
    x = reg.scalar(s32, 0)
    for i in ptx.range_(0, 8):
        ptx.inst.bar.sync((x + i).u32)
        x = x.view(u32)


def _number_replaced() -> None:
    flag, step = 0, 4
    for i in ptx.range_(0, 8):
        flag = ptx.selp(s32, 1, 0, i == 3)
        step = i * 4
        ptx.inst.bar.sync((flag + step).u32)


RIGHT = (_number_replaced, _in_place, _write_update, _temporary, _from_another_name, _python_only, _swap_back, _view)


@pytest.mark.parametrize("body", RIGHT, ids=lambda body: body.__name__)
def test_what_the_next_round_sees_is_no_warning(body: Callable[[], None]) -> None:
    assert [d for d in kernel(body).check() if d.code.startswith("PTX08")] == []


@pytest.mark.parametrize(("index", "is_compared"), [(4095, True), (4096, False)])
def test_the_first_4096_elements_of_a_list_are_compared(index: int, is_compared: bool) -> None:
    def body() -> None:
        values = [*[None] * index, reg.scalar(s32, 0)]
        for i in ptx.range_(0, 8):
            values[index] = values[index] + i

    assert [d.code for d in kernel(body).check() if d.code == "PTX0831"] == ["PTX0831"] * is_compared


def test_a_device_function_warns_too() -> None:
    @ptx.func(params=(s32,), returns=(s32,))
    def total(n: Any) -> Any:
        for i in ptx.range_(0, 8):
            n = n + i
        return n

    @kernel
    def body() -> None:
        total(reg.scalar(s32, 0))

    assert [d.code for d in body.check() if d.code.startswith("PTX08")] == ["PTX0831"]
