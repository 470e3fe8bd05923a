"""PTX in images: cubins of ptxas and nvlink, and fatbins, as they lie in memory."""

from __future__ import annotations

import ctypes
import random
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from pyptx.driver.codes import Code, DriverError
from pyptx.driver.images import read_image
from pyptx.driver.line_info import restore_lines
from pyptx.isa.targets import find_target
from pyptx.parser import parse
from pyptx.sim.reports.source_lines import read_source_lines
from pyptx.toolchain import assemble, find_tool
from pyptx.toolchain.elf import read_elf
from tests.driver.conftest import Run
from tools.audit_images import find_differences, list_files

TEXT = """\
// A comment
.version 8.0
.target sm_90
.address_size 64

.visible .entry first()
{
    ret; // the end
}

.visible .entry second(.param .u64 out)
{
    .reg .b64 %rd<2>;
    // Another comment
    ld.param.u64 %rd1, [out];
    st.global.u64 [%rd1], 7;
    ret;
}
"""
STORED = """\

.version 8.0
.target sm_90
.address_size 64

.visible .entry first()
{
ret; // the end
}

.visible .entry second(.param .u64 out)
{
.reg .b64 %rd<2>;

ld.param.u64 %rd1, [out];
st.global.u64 [%rd1], 7;
ret;
}
"""
"""What ptxas stores: without lines of comments, and without indentation."""

LINES = """\
.version 8.0
.target sm_90
.address_size 64
.file 1 "/home/a b/kernels.py"
.file 2 "math.py"

.func (.reg .b32 %r0) half(.reg .b32 %r1)
{
    .loc 2 70 1
    shr.u32 %r0, %r1, 1;
    ret;
}

.visible .entry first(.param .u64 out)
{
    .reg .b64 %rd<2>;
    .reg .b32 %r<4>;
    .loc 1 10 5
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [%rd1];
    // A comment
    .loc 1 11 5
    mul.lo.u32 %r2, %r1, 0;
    .loc 1 300 5
    call.uni (%r3), half, (%r1);
    .loc 1 12 5
    st.global.u32 [%rd1+4], %r3;
    ret;
}

.visible .entry second(.param .u64 out)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    .loc 1 21 5
    st.global.u64 [%rd1], 7;
    .loc 2 9 5
    ret;
}
"""


def read(data: bytes, device: str = "sm_90a", *, from_images: bool = True, is_file: bool = False) -> str:
    """Return the PTX of an image in memory, after which more follows."""
    buffer = ctypes.create_string_buffer(data + b"\x7f" * 64)
    size = len(data) if is_file else None
    return read_image(ctypes.addressof(buffer), find_target(device), from_images=from_images, size=size)


def refuse(data: bytes, device: str = "sm_90a", *, from_images: bool = True, is_file: bool = False) -> tuple[int, str]:
    """Return the code and the text of the error for an image."""
    with pytest.raises(DriverError) as error:
        read(data, device, from_images=from_images, is_file=is_file)
    return error.value.code, error.value.text


def run_tool(name: str, *options: str, folder: Path) -> None:
    """Run a tool of the compiler, which lies beside ptxas."""
    subprocess.run([Path(find_tool("ptxas").path).with_name(name), *options], cwd=folder, check=True)


def create_fatbin(folder: Path, *images: str) -> bytes:
    """Return a fatbin of files, such as `kind=ptx,sm=80,file=add.ptx`."""
    run_tool("fatbinary", "-64", "--create=all.fatbin", *(f"--image3={image}" for image in images), folder=folder)
    return (folder / "all.fatbin").read_bytes()


def test_a_cubin_with_information_about_lines_has_the_lines_of_its_ptx() -> None:
    cubin = assemble(TEXT, lineinfo=True, engine="ptxas").data
    assert read(cubin).rstrip() == STORED.rstrip()


def test_sections_may_follow_their_headers() -> None:
    cubin = assemble(TEXT, lineinfo=True, engine="ptxas").data
    start, count = struct.unpack_from("<Q", cubin, 0x28)[0], struct.unpack_from("<H", cubin, 0x3C)[0]
    table = bytearray(cubin[start : start + 64 * count])
    for header in range(0, len(table), 64):
        struct.pack_into("<Q", table, header + 24, struct.unpack_from("<Q", table, header + 24)[0] + len(table))
    moved = cubin[:0x28] + struct.pack("<Q", 64) + cubin[0x30:64] + table + cubin[64:start]
    assert read(moved) == read(cubin)


def test_nvjitlink_stores_the_same_text() -> None:
    assert read(assemble(TEXT, lineinfo=True, engine="nvjitlink").data).rstrip() == STORED.rstrip()


@pytest.mark.parametrize("engine", ["ptxas", "nvjitlink"])
def test_loc_is_restored(engine: Literal["ptxas", "nvjitlink"]) -> None:
    """Lines keep their numbers, and those whose code was eliminated have no source."""
    text = read(assemble(LINES, lineinfo=True, engine=engine).data)
    sources = read_source_lines(parse(text)).of_line
    lines = LINES.split("\n")
    found = [(lines[number - 1].strip(), place) for (_, number), place in sources.items() if place]
    assert [pair for pair in found if pair[0] != "ret;"] == [
        ("shr.u32 %r0, %r1, 1;", "math.py:70"),
        ("ld.param.u64 %rd1, [out];", "/home/a b/kernels.py:10"),
        ("ld.global.u32 %r1, [%rd1];", "/home/a b/kernels.py:10"),
        ("call.uni (%r3), half, (%r1);", "/home/a b/kernels.py:300"),
        ("st.global.u32 [%rd1+4], %r3;", "/home/a b/kernels.py:12"),
        ("st.global.u64 [%rd1], 7;", "/home/a b/kernels.py:21"),
    ]


def test_a_damaged_table_of_lines_leaves_the_text() -> None:
    elf = read_elf(assemble(LINES, lineinfo=True, engine="ptxas").data)
    for name in (".debug_line", ".nv_debug_line_sass"):
        sections = [
            section._replace(data=section.data[:60]) if section.name == name else section for section in elf.sections
        ]
        assert restore_lines(LINES, replace(elf, sections=tuple(sections))) == LINES


def test_a_cubin_without_ptx_names_the_options() -> None:
    code, text = refuse(assemble(TEXT, engine="ptxas").data)
    assert code == Code.ERROR_NO_BINARY_FOR_GPU
    assert text.startswith(
        "this cubin holds machine code only: compile with `-lineinfo`, or with `--generate-line-info`"
    )


def test_images_are_read_only_on_request() -> None:
    code, text = refuse(assemble(TEXT, lineinfo=True, engine="ptxas").data, from_images=False)
    assert code == Code.ERROR_NO_BINARY_FOR_GPU
    assert "`pyptx simulate --from-images`" in text
    assert read(b".version 8.0\0", from_images=False) == ".version 8.0"


@pytest.mark.parametrize(
    ("target", "device"), [("sm_90", "sm_80"), ("sm_90a", "sm_100a"), ("sm_100f", "sm_120a"), ("sm_100", "sm_90a")]
)
def test_ptx_for_another_gpu_is_refused(target: str, device: str) -> None:
    why = f"this PTX is for {target} and cannot run on {device}: compile for it, or choose a GPU with --device"
    assert refuse(TEXT.replace(".target sm_90", f".target {target}").encode(), device) == (218, why)


@pytest.mark.parametrize(
    ("target", "device"), [("sm_35", "sm_80"), ("sm_90", "sm_120a"), ("sm_90a", "sm_90a"), ("sm_100f", "sm_103a")]
)
def test_ptx_for_the_gpu_or_an_older_one_is_read(target: str, device: str) -> None:
    text = TEXT.replace(".target sm_90", f".target {target}")
    assert read(text.encode() + b"\0", device) == text


@pytest.mark.parametrize(("target", "device"), [("sm_80", "sm_90a"), ("sm_89", "sm_80"), ("sm_100", "sm_120a")])
def test_a_cubin_for_another_gpu_is_refused(target: str, device: str) -> None:
    cubin = assemble(TEXT.replace("sm_90", "sm_80"), target, lineinfo=True, engine="ptxas").data
    why = f"this cubin for {target} cannot run on {device}: compile for it, or choose a GPU with --device"
    assert refuse(cubin, device) == (Code.ERROR_NO_BINARY_FOR_GPU, why)


def test_a_cubin_runs_on_later_gpus_of_its_generation() -> None:
    cubin = assemble(TEXT.replace("sm_90", "sm_80"), lineinfo=True, engine="ptxas").data
    assert ".target sm_80" in read(cubin, "sm_89")


def test_a_cubin_of_several_modules_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.ptx").write_text(TEXT.replace("first", f"first_{name}").replace("second", name), "ascii")
        run_tool("ptxas", "-arch=sm_90", "-lineinfo", "-c", f"{name}.ptx", "-o", f"{name}.cubin", folder=tmp_path)
    run_tool("nvlink", "-arch=sm_90", "a.cubin", "-o", "one.cubin", folder=tmp_path)
    run_tool("nvlink", "-arch=sm_90", "a.cubin", "b.cubin", "-o", "two.cubin", folder=tmp_path)
    assert ".entry first_a(" in read((tmp_path / "one.cubin").read_bytes())
    code, text = refuse((tmp_path / "two.cubin").read_bytes())
    assert code == Code.ERROR_NO_BINARY_FOR_GPU
    assert text.startswith("this cubin was linked from several PTX modules")


def test_a_function_that_is_linked_as_machine_code_concerns_only_its_kernels(tmp_path: Path, run_program: Run) -> None:
    head = ".version 8.0\n.target sm_90\n.address_size 64\n"
    user = ".extern .func missing();\n.visible .entry with_call() { call missing; ret; }\n"
    user += ".visible .entry without() { ret; }"
    for name, text, *options in (("user", user, "-lineinfo"), ("library", ".visible .func missing() { ret; }")):
        (tmp_path / f"{name}.ptx").write_text(f"{head}{text}\n", "ascii")
        run_tool("ptxas", "-arch=sm_90", *options, "-c", f"{name}.ptx", "-o", f"{name}.cubin", folder=tmp_path)
    run_tool("nvlink", "-arch=sm_90", "user.cubin", "library.cubin", "-o", "linked.cubin", folder=tmp_path)
    program = """\
from calls import *
start()
module = ask("cuModuleLoadData", open("linked.cubin", "rb").read())
print(launch(ask("cuModuleGetFunction", module, b"without"), 1, 1), try_call("cuCtxSynchronize"), end=" ")
print(launch(ask("cuModuleGetFunction", module, b"with_call"), 1, 1))
"""
    process = run_program(program, from_images=True)
    assert process.stdout == "0 0 218\n", process.stderr
    assert "the function `missing` is called but not defined" in process.stderr


def test_the_ptx_of_a_fatbin_is_the_newest_that_the_gpu_runs(tmp_path: Path) -> None:
    for target in ("80", "90", "90a", "100"):
        version = TEXT.replace("8.0", "9.0").replace("sm_90", f"sm_{target}")
        (tmp_path / f"{target}.ptx").write_text(version, "ascii")
    fatbin = create_fatbin(
        tmp_path, *(f"kind=ptx,sm={target},file={target}.ptx" for target in ("80", "100", "90", "90a"))
    )
    wrapper = ctypes.create_string_buffer(fatbin)
    held = struct.pack("<IIQQ", 0x466243B1, 1, ctypes.addressof(wrapper), 0)
    for image in (fatbin, held):
        expected = [("sm_80", "80"), ("sm_89", "80"), ("sm_90", "90"), ("sm_90a", "90a"), ("sm_100a", "100")]
        for device, target in expected:
            assert f".target sm_{target}\n" in read(image, device)
    code, text = refuse(fatbin, "sm_75")
    assert code == Code.ERROR_NO_BINARY_FOR_GPU
    assert text.startswith("this fatbin has PTX for sm_80, ")


def test_a_fatbin_without_ptx_names_the_option(tmp_path: Path) -> None:
    (tmp_path / "one.cubin").write_bytes(assemble(TEXT, engine="ptxas").data)
    code, text = refuse(create_fatbin(tmp_path, "kind=elf,sm=90,file=one.cubin"))
    assert code == Code.ERROR_NO_BINARY_FOR_GPU
    assert text == (
        "this fatbin holds no PTX: compile with `-lineinfo`, which stores it in the cubins, or with `-gencode "
        "arch=compute_XX,code=compute_XX`"
    )


def test_the_cubins_of_a_fatbin_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "90.cubin").write_bytes(assemble(TEXT, lineinfo=True, engine="ptxas").data)
    (tmp_path / "80.ptx").write_text(TEXT.replace("sm_90", "sm_80"), "ascii")
    newer = TEXT.replace("8.0", "9.0").replace("sm_90", "sm_100")
    (tmp_path / "100.cubin").write_bytes(assemble(newer, lineinfo=True, engine="ptxas").data)
    members = ["kind=elf,sm=90,file=90.cubin", "kind=ptx,sm=80,file=80.ptx", "kind=elf,sm=100,file=100.cubin"]
    fatbin = create_fatbin(tmp_path, *members)
    for device, target in (("sm_89", "80"), ("sm_90a", "90"), ("sm_100a", "100"), ("sm_120a", "80")):
        assert f".target sm_{target}\n" in read(fatbin, device)
    (tmp_path / "90.ptx").write_text(TEXT.replace("7;", "8;"), "ascii")
    both = create_fatbin(tmp_path, *members, "kind=ptx,sm=90,file=90.ptx")
    assert "8;" in read(both, "sm_90a")


@pytest.mark.parametrize(
    "data", [b"\x7fELF\x01\x01" + b"\xff" * 64, struct.pack("<4sHHQ", b"\x50\xed\x55\xba", 1, 16, 8) + b"nonsense"],
    ids=["an ELF file of 32 bits", "a fatbin of nonsense"],
)  # fmt: skip
def test_damaged_images_are_refused(data: bytes) -> None:
    code, _ = refuse(data)
    assert code in (Code.ERROR_INVALID_IMAGE, Code.ERROR_NO_BINARY_FOR_GPU)


def test_a_cubin_in_a_file_runs(run_program: Run, tmp_path: Path) -> None:
    (tmp_path / "two.cubin").write_bytes(assemble(TEXT, lineinfo=True, engine="ptxas").data)
    program = """\
from calls import *
import ctypes
start()
module = ctypes.c_uint64()
print(try_call("cuModuleLoad", ctypes.byref(module), b"two.cubin"))
kernel = ask("cuModuleGetFunction", module.value, b"second")
print(launch(kernel, 1, 1, ask("cuMemAlloc_v2", 4)))
"""
    process = run_program(program, from_images=True)
    assert process.stdout == "0\n700\n"
    assert process.stderr.splitlines()[1].startswith("<ptx>:16:1: error[PTX1110]: `st.global.u64` accesses 8 bytes")


def test_a_file_that_ends_in_the_middle_of_an_image_is_refused(tmp_path: Path) -> None:
    (tmp_path / "add.ptx").write_text(TEXT, "ascii")
    fatbin = create_fatbin(tmp_path, "kind=ptx,sm=90,file=add.ptx")
    for data in (assemble(TEXT, lineinfo=True, engine="ptxas").data, fatbin):
        assert read(data, is_file=True) == read(data)
        refusals = {refuse(data[:size], is_file=True) for size in (4, 15, 16, 63, 64, *range(100, len(data) // 2, 97))}
        assert refusals == {(Code.ERROR_INVALID_IMAGE, "the file ends in the middle of the image")}
    assert refuse(fatbin[:-1], is_file=True)[0] == Code.ERROR_INVALID_IMAGE
    assert refuse(b"\xb1\x43\x62\x46" + bytes(60), is_file=True)[0] == Code.ERROR_INVALID_IMAGE


def test_loading_a_short_file_is_an_error_of_the_call(run_program: Run, tmp_path: Path) -> None:
    (tmp_path / "cubin").write_bytes(assemble(TEXT, lineinfo=True, engine="ptxas").data)
    program = """\
from calls import *
import ctypes
start()
module = ctypes.c_uint64()
data = open("cubin", "rb").read()
for size in (0, 3, 4, 40, 2000):
    open("part", "wb").write(data[:size])
    print(try_call("cuModuleLoad", ctypes.byref(module), b"part"))
"""
    process = run_program(program, from_images=True)
    assert (process.stdout.split(), "Traceback" in process.stderr) == (["218", "218", "200", "200", "200"], False)


def test_stored_ptx_of_the_corpus_computes_the_same(seed: int) -> None:
    """A sample; `python -m tools.audit_images` runs all kernels."""
    small = [(path, item) for _, path, item in list_files() if path.stat().st_size < 8_000]
    for path, item in random.Random(seed).sample(small, 4):
        assert [(name, wrong) for name, _, wrong in find_differences(path, item) if wrong] == [], path
