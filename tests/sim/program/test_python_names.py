"""Registers of Python kernels have the names of variables, in watched runs and in paused machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from pyptx import TensorSpec, Tile, kernel, ptx, reg, sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.types import u32
from tests.messages import raises


@kernel(in_specs=(Tile("n", u32),), out_specs=(Tile("n", u32),), grid=(1,), block=(32, 1, 1))
def sums(x: TensorSpec, y: TensorSpec) -> None:
    px, py = ptx.global_ptrs(x, y)
    thread = ptx.special.tid.x()
    total, twice = reg.scalar(u32, 0), reg.scalar(u32)
    for i in ptx.range_(0, 4):
        ptx.add(u32, total, total, i)
    where = ptx.addr(py, thread * 4)
    ptx.inst.shl.b32(
        twice,
        total, 1,
    )  # fmt: skip
    parts = [ptx.ld(u32, ptx.addr(px, thread * 4)) for _ in range(2)]
    for part in parts:
        once = part + twice
        ptx.st(u32, where, once)


X = np.arange(32, dtype=np.uint32)


def test_a_watched_variable_is_a_register() -> None:
    changes = sums.simulate(X, watch=["i", "twice"]).watched
    assert [(change.variable, int(change.after[0])) for change in changes] == [
        ("i", 1), ("i", 2), ("i", 3), ("i", 4), ("twice", 12),
    ]  # fmt: skip
    assert "twice (%r" in str(changes[-1])
    (register,) = {change.register for change in changes if change.variable == "twice"}
    assert sums.simulate(X, watch=[register]).watched[0].variable == "twice"


def test_a_variable_of_several_registers_is_all_of_them() -> None:
    changes = sums.simulate(X, watch=["once"]).watched
    assert len({change.register for change in changes}) == 2


def test_an_unknown_variable_is_refused_with_those_that_there_are() -> None:
    with raises(PtxError, match="no register `sum` is used; expected one of px, py, thread, "):
        sums.simulate(X, watch=["sum"])


def test_a_file_that_is_no_python_any_longer_has_no_variables(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text("@kernel\ndef k() -> None:\n    count = (\n", "utf-8")
    scope: dict[str, Any] = {"kernel": kernel, "reg": reg, "u32": u32}
    exec(compile("@kernel\ndef k() -> None:\n    count = reg.scalar(u32, 5)\n", str(file), "exec"), scope)
    machine = sim.Machine(scope["k"].module(), block=32)
    assert [name for name in machine.registers() if not name.startswith("%")] == []


def test_a_machine_shows_variables_beside_registers() -> None:
    machine = sim.Machine(sums.module(n=32), block=32, args=[X, X.copy()])
    assert machine.run(until=lambda m: m.registers()["twice"] == 12)
    values = machine.registers(thread=5)
    assert (values["thread"], values["total"], values["i"]) == (5, 6, 4)
    assert values["py"] + 20 == values["where"]
    assert "once" not in values
    assert sum(name.startswith("%") for name in values) > 8


def test_ptx_text_has_no_variables() -> None:
    machine = sim.Machine(parse(sums.ptx(n=32)), block=32, args=[X, X.copy()])
    assert all(name.startswith("%") for name in machine.registers())


@kernel(in_specs=(Tile("n", u32),), out_specs=(Tile("n", u32),), grid=(1,), block=(32, 1, 1))
def annotated(x: TensorSpec, y: TensorSpec) -> None:
    _, py = ptx.global_ptrs(x, y)
    thread = ptx.special.tid.x()
    tripled: Any
    doubled: Any = thread + thread
    ptx.st(u32, ptx.addr(py, (offset := thread * 4)), (tripled := doubled + thread))
    del tripled, offset


def test_variables_with_an_annotation_and_in_an_expression_are_registers() -> None:
    watched = annotated.simulate(X, watch=["doubled", "tripled", "offset"]).watched
    assert [(change.variable, int(change.after[-1])) for change in watched] == [
        ("doubled", 62), ("offset", 124), ("tripled", 93),
    ]  # fmt: skip
