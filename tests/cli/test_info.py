"""`pyptx info` as text: the needs of a module, its variables and functions, resources, and how often instructions
occur."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyptx.cli import main

MODULE = """.version 8.0
.target sm_90a
.address_size 64
.global .align 4 .b32 bias[256];
.const .b8 flag;
.extern .func later (.param .b32 x);
.func (.reg .b32 y) twice (.reg .b32 x)
{
add.u32 y, x, x;
ret;
}
.visible .entry k(.param .u64 out, .param .align 8 .b8 many[4096])
.maxntid 128, 1, 1
.minnctapersm 2
{
.reg .pred p, q; .reg .b32 r<6>; .reg .b64 rd<4>;
.shared .b32 buffer[512]; .local .b8 own[16];
mov.u32 r1, %tid.x;
setp.gt.u32 p, r1, 9;
@p add.u32 r2, r1, 1;
@p add.u32 r2, r2, 1;
mul.wide.u32 rd1, r1, 4;
ld.param.u64 rd2, [out];
add.u64 rd2, rd2, rd1;
st.global.u32 [rd2], r2;
ret;
}
"""
HEAD = """  needs PTX 8.0 (.target sm_90a); its instructions exist on """
TEXT = """  .global bias: 1024 bytes
  .const flag: 1 byte
  function later (declared only)
    parameters: x .b32 (4 bytes)
  function twice
    parameters: x .b32 (4 bytes)
    2 instructions, 2 distinct:
          1  add.u32
          1  ret
  entry k
    parameters: out .u64 (8 bytes), many .b8 (4096 bytes)
    .maxntid 128, 1, 1
    .minnctapersm 2
    declares 2 .pred, 6 .b32, 4 .b64
    2048 bytes of shared and 16 bytes of local variables
    9 instructions, 8 distinct:
          2  add.u32
          1  mov.u32
          1  setp.gt.u32
          1  mul.wide.u32
          1  ld.param.u64
          1  add.u64
          1  st.global.u32
          1  ret
"""
OPERATIONS = "add sub min max and or xor not neg abs popc clz brev sad mul24.lo".split()


def _print(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(["info", *words]) == status
    return capsys.readouterr().out


def _make_many(count: int) -> str:
    """Return a module with some different instructions, besides `ret`."""
    lines = [f"{name}.s32 r, r{', r' * (name not in ('not', 'neg', 'abs', 'popc', 'clz', 'brev'))};"
             for name in OPERATIONS[:count]]  # fmt: skip
    text = "\n".join(lines).replace("sad.s32 r, r, r", "sad.s32 r, r, r, r").replace("min.s32", "min.u32")
    for name in ("and", "or", "xor", "not", "popc", "clz", "brev"):
        text = text.replace(f"{name}.s32", f"{name}.b32")
    return f".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{{\n.reg .b32 r;\n{text}\nret;\n}}\n"


def test_the_text_of_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ptx"
    file.write_text(MODULE, "utf-8")
    text = _print(capsys, "--ptx-only", str(file))
    first, second, rest = text.split("\n", 2)
    assert first == f"{file}: PTX 8.0 for sm_90a, 64 bit"
    assert second.startswith(HEAD)
    assert "sm_90a" in second[len(HEAD) :].split()
    assert rest == TEXT
    assert _print(capsys, "--ptx-only", str(file), str(file)) == f"{text}\n{text}"
    resources = _print(capsys, str(file)).split("\n")
    added = [line for line in resources if line not in text.split("\n")]
    assert [line[: len("    uses ")] for line in added] == ["    uses ", "      16 "]
    assert added[0].endswith(" registers, 2048 bytes of static shared memory,")
    assert added[1] == "      16 bytes of stack, 0 barriers, 0 bytes of spill stores, 0 of loads"
    assert [line for line in resources if line not in added] == text.split("\n")


@pytest.mark.parametrize(("count", "options", "shown", "rest"), [
    (14, (), 15, []), (15, (), 15, ["             and 1 more (--all)"]), (15, ("--all",), 16, []),
])  # fmt: skip
def test_the_most_frequent_instructions_are_listed(
    count: int, options: tuple[str, ...], shown: int, rest: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    file = tmp_path / "a.ptx"
    file.write_text(_make_many(count), "utf-8")
    lines = _print(capsys, "--ptx-only", *options, str(file)).splitlines()
    start = lines.index(f"    {count + 1} instructions, {count + 1} distinct:") + 1
    assert [line[:12] for line in lines[start : start + shown]] == ["          1 "] * shown
    assert lines[start + shown :] == rest


def test_a_module_that_does_not_assemble_is_summarized(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.ptx"
    file.write_text(MODULE.replace("ret;\n}\n.vis", "bra nowhere;\n}\n.vis"), "utf-8")
    text = _print(capsys, str(file))
    assert text.endswith("  no resources: the module does not assemble; `pyptx check` reports why\n")
    assert "2 instructions, 2 distinct" in text
