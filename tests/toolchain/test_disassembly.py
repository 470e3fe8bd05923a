"""SASS as text, as instructions with places, and as the proof that two texts are the same program."""

from __future__ import annotations

import re

import pytest

from pyptx.diagnostics import PtxError
from pyptx.toolchain import AssemblyError, ToolFailed, assemble, disassemble, sass, sass_difference, sass_equal
from pyptx.toolchain.cubin import Engine
from tests.messages import assert_message
from tests.toolchain.modules import HEAD, SMALL, TWO_KERNELS

ENGINES: list[Engine | None] = ["ptxas", "nvjitlink", None]

DEVICE_FUNCTION = (
    HEAD
    + """.extern .func (.param .b32 r) other(.param .b32 a);
.visible .global .align 4 .u32 seen = 5;
.visible .func (.param .b32 r) plus(.param .b32 a)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [a];
    add.s32 %r2, %r1, 7;
    st.global.u32 [seen], %r2;
    { .param .b32 x; .param .b32 y; st.param.b32 [x], %r2; call (y), other, (x); ld.param.b32 %r2, [y]; }
    st.param.b32 [r], %r2;
    ret;
}
"""
)


def test_text_of_ptx_and_of_its_cubin_are_the_same() -> None:
    text = sass(SMALL)
    assert ".text.small" in text
    assert "EXIT" in text
    assert sass(assemble(SMALL)) == sass(assemble(SMALL).data) == text


def test_instructions_say_which_line_of_ptx_they_came_from() -> None:
    lines = {i.opcode: i.ptx_line for i in disassemble(SMALL)}
    assert (lines["LDG.E"], lines["STG.E"]) == (9, 11)
    code = disassemble(SMALL)
    assert [i.address for i in code] == [16 * n for n in range(len(code))]
    assert {i.function for i in code} == {"small"}
    assert all(i.text.startswith(i.opcode) or i.text.startswith("@") for i in code)
    assert all((i.file, i.line) == (None, None) for i in code)


@pytest.mark.parametrize("engine", ["ptxas", "nvjitlink"])
def test_instructions_say_which_source_line_the_ptx_names(engine: Engine) -> None:
    code = disassemble(assemble(TWO_KERNELS, engine=engine, lineinfo=True))
    places = {i.opcode.split(".")[0]: (i.file, i.line) for i in code if i.function == "first"}
    assert (places["LDG"], places["BAR"], places["STG"]) == (
        ("kernel.py", 10),
        ("kernel.py", 11),
        ("kernel.py", 12),
    )
    assert {i.file for i in code if i.function == "second"} == {None}
    stores = {i.ptx_line for i in code if i.function == "second" and i.opcode.startswith("STS")}
    assert stores == {TWO_KERNELS[: TWO_KERNELS.index("    st.shared")].count("\n") + 1}


def test_a_cubin_without_line_information_has_no_places() -> None:
    assert {(i.ptx_line, i.line) for i in disassemble(assemble(SMALL))} == {(None, None)}


def test_line_information_does_not_change_the_code() -> None:
    plain, lines = disassemble(assemble(TWO_KERNELS)), disassemble(TWO_KERNELS)
    assert [(i.function, i.address, i.text) for i in plain] == [(i.function, i.address, i.text) for i in lines]


def test_an_inlined_place_is_the_innermost_one() -> None:
    text = (
        HEAD
        + """.file 1 "inner.py"
.file 2 "outer.py"
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd;
    .reg .b32 %r<3>;
    .loc 2 5 1
    ld.param.u64 %rd, [p];
    .loc 2 6 1
    ld.global.u32 %r1, [%rd];
    .loc 2 7 3
    .loc 1 40 1, function_name $L__info, inlined_at 2 7 3
    popc.b32 %r2, %r1;
    .loc 2 8 1
    st.global.u32 [%rd+4], %r2;
    ret;
}
.section .debug_str
{
$L__info:
.b8 104,101,108,112,101,114,0
}
"""
    )
    places = {i.opcode: (i.file, i.line) for i in disassemble(text)}
    assert places["POPC"] == ("inner.py", 40)
    assert places["LDG.E"] == ("outer.py", 6)
    assert places["STG.E"] == ("outer.py", 8)


@pytest.mark.parametrize("data", [b"", b"no cubin", b"\x7fELF\x02\x01" + b"\0" * 100])
def test_bytes_that_are_no_cubin_are_refused(data: bytes) -> None:
    with pytest.raises(PtxError, match="PTX0702"):
        sass(data)


def test_a_cubin_that_nvdisasm_refuses_is_reported_with_its_words() -> None:
    data = assemble(SMALL).data
    wrong_architecture = data[:0x31] + b"\xff" + data[0x32:]
    with pytest.raises(ToolFailed, match="nvdisasm failed"):
        disassemble(wrong_architecture)


@pytest.mark.parametrize("engine", ENGINES)
def test_names_spacing_comments_and_lines_do_not_matter(engine: Engine | None) -> None:
    variant = TWO_KERNELS.replace("%r", "%other").replace("\n", " // x\n\n").replace(", ", "  ,\t")
    assert sass_difference(TWO_KERNELS, variant, engine=engine) == ()
    assert sass_equal(TWO_KERNELS, variant, engine=engine)


CHANGES = {
    "an operation": ("add.s32 %r2, %r1, 1", "sub.s32 %r2, %r1, 1", ".text.first"),
    "an immediate": ("bar.sync 3, 64", "bar.sync 3, 96", ".text.first"),
    "an initial value": ("{1.0, 2.0}", "{1.0, 3.0}", ".nv.constant3"),
    "a size": ("tile[1024]", "tile[2048]", ": tile"),
    "a launch limit": (".reqntid 128, 2, 1", ".reqntid 128, 1, 1", ".nv.info.second"),
    "a name": ("entry second", "entry third", ".text.third"),
    "a parameter": (".param .u32 i)", ".param .u32 i, .param .u32 j)", ".nv.info.second"),
}


@pytest.mark.parametrize("engine", ["ptxas", "nvjitlink"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_seen_and_named(name: str, engine: Engine) -> None:
    old, new, ending = CHANGES[name]
    assert old in TWO_KERNELS
    differences = sass_difference(TWO_KERNELS, TWO_KERNELS.replace(old, new), engine=engine)
    assert any(name.endswith(ending) for name in differences)
    assert_message("differences", f"{name}, {engine}", "\n".join(differences))


def test_the_order_of_functions_does_not_matter() -> None:
    start = TWO_KERNELS.index(".visible .entry first")
    middle = TWO_KERNELS.index(".visible .entry second")
    permutation = TWO_KERNELS[:start] + TWO_KERNELS[middle:] + TWO_KERNELS[start:middle]
    assert sass_difference(TWO_KERNELS, permutation) == ()


def test_places_of_one_function_do_not_reach_the_next() -> None:
    """nvdisasm lists the functions of one of these texts in the other order."""
    start = TWO_KERNELS.index(".visible .entry first")
    middle = TWO_KERNELS.index(".visible .entry second")
    permutation = TWO_KERNELS[:start] + TWO_KERNELS[middle:] + TWO_KERNELS[start:middle]
    for text in (TWO_KERNELS, permutation):
        assert {i.file for i in disassemble(text) if i.function == "second"} == {None}


def test_the_size_of_dynamic_shared_memory_counts() -> None:
    text = SMALL.replace(HEAD, HEAD + ".extern .shared .align 16 .b8 pool[];\n").replace(
        "add.s32 %r2, %r1, 1", "mov.u32 %r2, pool"
    )
    assert sass_difference(text, text.replace(".align 16", ".align 128")) != ()


@pytest.mark.parametrize("engine", ENGINES)
def test_device_functions_and_open_references_are_compared(engine: Engine | None) -> None:
    assert sass_equal(DEVICE_FUNCTION, DEVICE_FUNCTION + "\n", engine=engine)
    assert ".text.plus" in sass_difference(DEVICE_FUNCTION, DEVICE_FUNCTION.replace("%r1, 7", "%r1, 8"), engine=engine)
    variant = re.sub(r"\bother\b", "another", DEVICE_FUNCTION)
    differences = sass_difference(DEVICE_FUNCTION, variant, engine=engine)
    assert {".rela.text.plus", "0: other", "0: another"} <= {*differences}
    assert sass_difference(DEVICE_FUNCTION, DEVICE_FUNCTION.replace("= 5", "= 6"), engine=engine) != ()


def test_text_that_only_ptxas_takes_is_compared_too() -> None:
    text = '# 1 "kernel.cu"\n' + SMALL
    assert sass_equal(text, text)


def test_text_that_does_not_assemble_is_an_error_not_a_verdict() -> None:
    with pytest.raises(AssemblyError):
        sass_equal(SMALL, SMALL.replace("add.s32", "add"))
