"""Resources read from the cubin, compared with the output of ptxas and cuobjdump."""

from __future__ import annotations

import re
import struct

import pytest

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import Cubin, assemble, assemble_with_nvjitlink, assemble_with_ptxas, find_tool, resources
from pyptx.toolchain.elf import read_elf
from pyptx.toolchain.process import create_private_folder, run
from tests.toolchain.modules import HEAD, SMALL, TWO_KERNELS, spilling


def _module(target: str) -> str:
    text = TWO_KERNELS.replace(".version 8.0", ".version 9.5").replace(".target sm_90a", f".target {target}")
    return text + spilling().removeprefix(HEAD)


def _cuobjdump(cubin: Cubin) -> dict[str, dict[str, int]]:
    with create_private_folder() as folder:
        (folder / "a.cubin").write_bytes(cubin.data)
        text = run([find_tool("cuobjdump").path, "-res-usage", "a.cubin"], cwd=folder).output
    rows = re.findall(r"Function (\S+):\n\s*(.*)", text)
    return {name: {key: int(n) for key, n in re.findall(r"([\w\[\]]+):(\d+)", row)} for name, row in rows}


@pytest.mark.parametrize("target", ASSEMBLED)
def test_the_cubin_says_what_ptxas_and_cuobjdump_say(target: str) -> None:
    cubin = assemble_with_ptxas(_module(target))
    lines = re.findall(
        r"Compiling entry function '(\w+)'.*\n.*\n\s+(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads\n.*Used (\d+) registers, used (\d+) barriers(?:.*?(\d+) bytes smem)?",
        cubin.log,
    )
    usage = resources(cubin)
    mine = {r.name: (r.frame, r.spill_stores, r.spill_loads, r.registers, r.barriers, r.shared) for r in usage.values()}
    assert {name: tuple(int(n or 0) for n in numbers) for name, *numbers in lines} == mine
    assert set(mine) == {"first", "second", "spilling"}
    for name, row in _cuobjdump(cubin).items():
        reservation = 1024 if row["SHARED"] and usage[name].shared != row["SHARED"] else 0
        assert (row["REG"], row["STACK"]) == (usage[name].registers, usage[name].stack)
        assert row["SHARED"] == usage[name].shared + reservation
        assert row["CONSTANT[0]"] == dict(usage[name].constant)[0]


def test_launch_limits_and_parameters_are_read() -> None:
    usage = resources(TWO_KERNELS)
    assert (usage["first"].max_threads, usage["first"].required_threads) == ((256, 1, 1), None)
    assert (usage["second"].max_threads, usage["second"].required_threads) == (None, (128, 2, 1))
    assert (usage["first"].parameters, usage["second"].parameters) == (8, 12)
    assert (usage["first"].barriers, usage["second"].barriers) == (4, 1)
    assert (usage["first"].shared, usage["second"].shared) == (0, 1024)
    assert dict(usage["second"].constant)[3] == 256


def test_spills_are_counted_and_unknown_without_a_log() -> None:
    cubin = assemble(spilling())
    usage, bare = resources(cubin)["spilling"], resources(cubin.data)["spilling"]
    assert usage.registers == bare.registers == 32
    assert (usage.spill_stores or 0) > 500
    assert (usage.spill_loads or 0) > 500
    assert bare.spill_stores is bare.spill_loads is None
    assert usage.stack == bare.stack >= 500


def test_the_stack_includes_what_is_called() -> None:
    text = (
        HEAD
        + """.visible .func deep(.param .b32 i)
{
    .local .align 4 .b8 room[256];
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [i];
    mov.u64 %rd1, room;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.local.u32 [%rd3], %r1;
    ld.local.u32 %r2, [%rd1+8];
    cvt.u64.u32 %rd2, %r2;
    st.global.u32 [%rd2], %r2;
    ret;
}
.visible .entry outer(.param .u32 i)
{
    .reg .b32 %r;
    ld.param.u32 %r, [i];
    { .param .b32 a; st.param.b32 [a], %r; call deep, (a); }
    { .param .b32 b; st.param.b32 [b], 1; call deep, (b); }
    ret;
}
"""
    )
    usage = resources(assemble_with_nvjitlink(text))["outer"]
    assert usage.stack >= usage.frame + 256


def test_cubins_of_cuda_12_keep_the_architecture_and_barriers_elsewhere() -> None:
    """The same cubin, with both fields at their place in older ones."""
    new = assemble(TWO_KERNELS)
    old = bytearray(new.data)
    old[8] = 7
    struct.pack_into("<I", old, 0x30, 0x005A055A)
    start, count = struct.unpack_from("<Q", old, 0x28)[0], struct.unpack_from("<H", old, 0x3C)[0]
    for section_offset, section in zip(range(start, start + 64 * count, 64), read_elf(new.data).sections, strict=True):
        if section.name == ".text.first":
            struct.pack_into("<Q", old, section_offset + 8, section.flags | 4 << 20)
        if section.name == ".nv.info.first":
            offset = struct.unpack_from("<Q", old, section_offset + 24)[0]
            old[offset : offset + section.size] = section.data.replace(b"\x02\x4c\x04\x00", b"\x02\x7f\x04\x00")
    usage = resources(bytes(old))
    assert (usage["first"].barriers, usage["second"].shared) == (4, 1024)


def test_memory_without_bytes_has_a_size_and_no_data() -> None:
    section = read_elf(assemble(TWO_KERNELS).data).find_section(".nv.shared.second")
    assert section is not None
    assert (section.size, section.data) == (2048, b"")


def test_a_cluster_is_read() -> None:
    text = SMALL.replace("(.param .u64 p)", "(.param .u64 p) .reqnctapercluster 2, 4, 1")
    assert resources(text)["small"].cluster == (2, 4, 1)


def test_nvjitlinks_cubin_is_read_the_same_way() -> None:
    usage = resources(assemble(TWO_KERNELS, engine="nvjitlink"))
    assert (usage["second"].shared, usage["first"].barriers, usage["second"].required_threads) == (1024, 4, (128, 2, 1))


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" + b"\0" * 200, b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_bytes_that_are_no_cubin_are_refused(data: bytes) -> None:
    with pytest.raises(PtxError, match="cubin"):
        resources(data)


def test_a_damaged_cubin_is_never_another_exception() -> None:
    data = assemble(SMALL).data
    for size in range(0, len(data), 7):
        try:
            resources(data[:size])
        except PtxError:
            continue
    for index in range(0, len(data), 3):
        try:
            resources(data[:index] + b"\xff" + data[index + 1 :])
        except PtxError:
            continue


def test_a_cubin_without_numbers_of_its_symbols_has_zeros() -> None:
    data = assemble(TWO_KERNELS).data
    assert data.count(b".nv.info\0") == 1
    usage = resources(data.replace(b".nv.info\0", b".nv.none\0"))["first"]
    assert (usage.registers, usage.frame, usage.stack) == (0, 0, 0)
