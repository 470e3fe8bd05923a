"""Line information of kernels: the Python lines in the PTX, in machine code and in messages of ptxas."""

from __future__ import annotations

import functools
import linecache
import re
from typing import Any

from pyptx import PtxError, kernel, ptx, reg
from pyptx.ir import Function, Instruction
from pyptx.toolchain import sass
from pyptx.types import u32, u64
from tests.messages import raises

from .tracing import assert_accepted, make_kernel


def test_line_information_names_the_python_lines() -> None:
    def helper(x: reg.Reg) -> reg.Reg:
        return x * 5  # in the helper

    def body() -> None:
        x = reg.scalar(u32, 1)  # first
        with ptx.if_(x == 2):  # second
            ptx.st(u32, ptx.addr(reg.scalar(u64)), helper(x))  # third

    kernel_object = make_kernel(body)
    text = kernel_object.ptx(lineinfo=True)
    assert_accepted(text)
    first = body.__code__.co_firstlineno
    assert f'.file 1 "{__file__}"' in text
    lines = text.splitlines()
    before = {
        line.split()[0]: lines[number - 1].split()
        for number, line in enumerate(lines)
        if lines[number - 1].startswith("\t.loc")
    }
    assert before["mov.u32"][2] == str(first + 1)
    assert before["setp.eq.u32"][2] == str(first + 2)
    assert before["st.global.u32"][2] == str(first + 3)
    call_line = before["mul.lo.u32"]
    assert call_line[2] == str(helper.__code__.co_firstlineno + 1)
    assert call_line[-4:-2] == ["inlined_at", "1"]
    assert call_line[-2] == str(first + 3)
    assert "function_name" in call_line
    assert ".section .debug_str" in text
    assert kernel_object.cubin(lineinfo=True).data


def test_the_entry_lies_at_the_def_and_its_last_return_at_the_last_statement() -> None:
    def decorate(function: Any) -> Any:
        return functools.wraps(function)(lambda *args: function(*args))

    @kernel(
        arch="sm_90a",
    )
    @decorate
    def body() -> None:
        x = reg.scalar(u32, 1)
        with ptx.if_(x == 2):
            ptx.inst.mov.u32(
                x,
                3,
            )

    module = body.module()
    (entry,) = (node for node in module.directives if isinstance(node, Function))
    last = entry.body[-1]
    assert isinstance(last, Instruction)
    assert last.opcode == "ret"
    assert entry.origin is not None
    assert last.origin is not None
    assert linecache.getline(__file__, entry.origin.line) == "    def body() -> None:\n"
    assert linecache.getline(__file__, last.origin.line) == "            ptx.inst.mov.u32(\n"
    assert f".loc 1 {last.origin.line} 13\n\tret;" in body.ptx(lineinfo=True)


def test_a_helpers_line_keeps_its_callers_in_the_machine_code() -> None:
    def inner(x: reg.Reg) -> None:
        ptx.st(u32, ptx.addr(reg.scalar(u64, 256)), x)  # inner

    def outer(x: reg.Reg) -> None:
        inner(x)  # outer

    def body() -> None:
        outer(reg.scalar(u32, 7))  # body

    cubin = make_kernel(body).cubin(lineinfo=True)
    line_of = {f.__name__: f.__code__.co_firstlineno + 1 for f in (inner, outer, body)}
    lines = sass(cubin, lines=True).splitlines()
    store = next(index for index, line in enumerate(lines) if " STG." in line)
    before = [line for line in lines[:store] if __file__ in line][-3:]
    assert [re.findall(r"line (\d+)", line) for line in before] == [
        [str(line_of["inner"]), str(line_of["outer"])],
        [str(line_of["outer"]), str(line_of["body"])],
        [str(line_of["body"])],
    ]  # fmt: skip


def test_annotations_show_the_source_and_change_nothing() -> None:
    def body() -> None:
        x = reg.scalar(u32, 1)
        _ = x + 2  # the sum

    kernel_object = make_kernel(body)
    text = kernel_object.ptx(annotate=True)
    assert_accepted(text)
    assert re.search(r"add\.u32 %r1, %r0, 2;  // \d+: _ = x \+ 2  # the sum\n", text)
    assert re.sub(r"  // .*", "", text) == kernel_object.ptx()


def test_messages_of_ptxas_point_at_the_python_line() -> None:
    @kernel
    def body() -> None:
        x = reg.scalar(u32, 1)
        ptx.inst["made.up.u32"](x, x, unchecked=True)  # here

    with raises(PtxError) as excinfo:
        body.cubin()
    assert {d.origin.file for d in excinfo.value.diagnostics if d.origin} == {__file__}


def test_inlined_lines_raise_the_version_that_they_need() -> None:
    def helper(x: reg.Reg) -> reg.Reg:
        return x * 5

    def body() -> None:
        helper(reg.scalar(u32, 1))

    free, fixed_version = make_kernel(body, arch="sm_75"), make_kernel(body, arch="sm_75", version=(6, 5))
    assert free.ptx().startswith(".version 6.3\n")
    assert free.ptx(lineinfo=True).startswith(".version 7.2\n")
    assert_accepted(free.ptx(lineinfo=True))
    assert "inlined_at" not in fixed_version.ptx(lineinfo=True)
    assert_accepted(fixed_version.ptx(lineinfo=True))
    least_version = make_kernel(body, arch="sm_75", version=(7, 2))
    assert "inlined_at" in least_version.ptx(lineinfo=True)
