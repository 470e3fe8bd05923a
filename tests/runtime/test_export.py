"""Exported kernels: what is written, and that the launcher in C runs them like Python does."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from ctypes import c_int64, c_uint16, c_uint32, c_uint64
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, PtxError, Tile, kernel, load_kernel, ptx, reg, smem
from pyptx.driver.build import find_compiler
from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_library
from pyptx.driver.settings import Settings
from pyptx.runtime.arrays import Array
from pyptx.runtime.bindings import CallError, call, in_context
from pyptx.toolchain import find_tool
from pyptx.toolchain.elf import read_elf
from pyptx.types import u32
from tests.messages import raises
from tests.runtime.conftest import Activate

from .test_calls import add_scaled, reverse_and_count, tensor_copy
from .test_launching import write_ranks

INCLUDE = Path(find_tool("ptxas").path).parents[1] / "include"


@kernel(arch="sm_80", in_specs=[Tile(32, u32)], out_specs=[Tile(32, u32)], grid=(1,), block=(32, 1, 1),
        raw_params=[("b8[4]", "switch"), ("u16", "image"), ("s64", "offset")])  # fmt: skip
def double(register: Any, int: Any) -> None:
    """int = 2 register + switch + image + offset, as words"""
    source, target = ptx.global_ptrs(register, int)
    at = ptx.special.tid.x() * 4
    value, word, narrow, wide = reg.scalar(u32), reg.scalar(u32), reg.scalar("u16"), reg.scalar("s64")
    ptx.ld(u32, value, ptx.addr(source, at))
    ptx.inst.ld.param.u32(word, ptx.addr("switch"))
    ptx.inst.ld.param.u16(narrow, ptx.addr("image"))
    ptx.inst.ld.param.s64(wide, ptx.addr("offset"))
    total = value * 2 + word
    ptx.inst.cvt.u32.u16(word, narrow)
    ptx.add(u32, total, total, word)
    ptx.inst.cvt.u32.s64(word, wide)
    ptx.add(u32, total, total, word)
    ptx.st(u32, ptx.addr(target, at), total)
    ptx.ret()


@kernel(arch="sm_90", out_specs=[Tile(16, u32)], grid=(16,), cluster=(16, 1, 1))
def write_ranks_of_16(out: Any) -> None:
    """out[i] = the rank of CTA i in its cluster, which is larger than all devices must support"""
    (pointer,) = ptx.global_ptrs(out)
    ptx.st(u32, ptx.addr(pointer, ptx.special.ctaid.x() * 4), ptx.special.cluster_ctarank())


@dataclass(frozen=True)
class Case:
    """A kernel, its inputs, its raw parameters as Python and as C have them, and its shape variables."""

    kernel: Kernel
    inputs: Sequence[Array]
    scalars: Mapping[str, Any] = field(default_factory=dict[str, Any])
    c: str = ""
    shape: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def simulate(self) -> list[Array]:
        """Return the outputs of a run by Python."""
        results: Any = self.kernel(*self.inputs, **self.scalars)
        return [*results] if isinstance(results, tuple) else [results]


A = np.arange(1000, dtype=np.float32)
CASES = [
    Case(add_scaled, [A, A[::-1].copy()], {"scale": 2.5}, "2.5f", {"n": 1000}),
    Case(reverse_and_count, [np.arange(32, dtype=np.int32)]),
    Case(tensor_copy, [A[:512].reshape(16, 32).copy()]),
    Case(write_ranks, []),
    Case(write_ranks_of_16, []),
    Case(
        double, [np.arange(32, dtype=np.uint32)], {"switch": b"\x07\0\1\0", "image": 0xFFF0, "offset": -3},
        '(const unsigned char *)"\\x07\\0\\1\\0", 0xfff0, -3',
    ),
]  # fmt: skip


def write_main(manifests: list[dict[str, Any]]) -> str:
    """Return a C program that launches each kernel on the arrays in files, and writes its outputs to files."""
    lines = [f'#include "{manifest["kernel"]}.h"' for manifest in manifests]
    lines += ["#include <stdio.h>", "#include <stdlib.h>", "static void check(CUresult r) { if (r) exit((int)r); }"]
    lines += ["static char buffer[1 << 20];", "int main(void) {", "    CUdevice device; CUcontext context; FILE *file;"]
    lines += ["    check(cuInit(0)); check(cuDeviceGet(&device, 0));"]
    lines += ["    check(cuDevicePrimaryCtxRetain(&context, device)); check(cuCtxSetCurrent(context));"]
    for manifest, case in zip(manifests, CASES, strict=True):
        name = manifest["kernel"]
        lines.append(f"    {{ {name}_kernel k; CUdeviceptr p[8]; check({name}_load(&k));")
        tensors = [
            (index, tensor["is_output"], 4 * prod(tensor["shape"])) for index, tensor in enumerate(manifest["tensors"])
        ]
        for index, is_output, size in tensors:
            lines.append(f"      check(cuMemAlloc(&p[{index}], {size}));")
            if not is_output:
                lines.append(f'      file = fopen("{name}.{index}", "rb");')
                lines.append(f"      if (fread(buffer, 1, {size}, file) != {size}) return 1;")
                lines.append(f"      fclose(file); check(cuMemcpyHtoD(p[{index}], buffer, {size}));")
        arguments = ", ".join(["&k", "NULL", *(f"p[{index}]" for index, _, _ in tensors), *filter(None, [case.c])])
        lines.append(f"      check({name}_launch({arguments})); check(cuCtxSynchronize());")
        for index, is_output, size in tensors:
            if is_output:
                lines.append(f"      check(cuMemcpyDtoH(buffer, p[{index}], {size}));")
                lines.append(
                    f'      file = fopen("{name}.{index}", "wb"); fwrite(buffer, 1, {size}, file); fclose(file);'
                )
        lines.append(f"      check({name}_unload(&k)); }}")
    return "\n".join([*lines, "    return 0;", "}"]) + "\n"


def test_the_launcher_in_c_runs_kernels_like_python(tmp_path: Path) -> None:
    manifests = [case.kernel.export(tmp_path, **case.shape) for case in CASES]
    for manifest, case in zip(manifests, CASES, strict=True):
        for index, array in enumerate(case.inputs):
            (tmp_path / f"{manifest['kernel']}.{index}").write_bytes(array.tobytes())
    (tmp_path / "main.c").write_text(write_main(manifests), "ascii")
    sources = ["main.c", *(f"{manifest['kernel']}.c" for manifest in manifests)]
    options = ["-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-o", "main", str(find_library())]
    subprocess.run([*find_compiler(), *sources, *options], cwd=tmp_path, check=True)
    as_cpp = ["-x", "c++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}"]
    subprocess.run([*find_compiler(), *as_cpp, *sources[1:]], cwd=tmp_path, check=True)
    environment = make_environment(Settings(from_images=True, check="none"))
    process = subprocess.run(["./main"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")
    for manifest, case in zip(manifests, CASES, strict=True):
        for index, expected in enumerate(case.simulate(), len(case.inputs)):
            found = (tmp_path / f"{manifest['kernel']}.{index}").read_bytes()
            assert found == expected.tobytes(), manifest["kernel"]


@kernel(arch="sm_80", in_specs=[Tile("h", "n", u32), Tile("N", u32), Tile("N", u32)], out_specs=[], grid=(1,),
        raw_params=[("u32", "memset")])  # fmt: skip
def collide(kernel: Any, kernel_: Any, uint32_t: Any) -> None:
    """Do nothing, with names of the launcher and its header."""


@kernel(arch="sm_90", in_specs=[Tile(256, u32, tma_box=(64,))], grid=(1,))
def load_line(line: Any) -> None:
    """Load a part of a tensor whose map has no strides."""
    part, full = smem.alloc(u32, (64,), align=128), smem.mbarrier(1)
    ptx.cp.async_.bulk.tensor_1d(dst=part, src=line, coord=(0,), mbar=full[0])


LANGUAGES = {"C": ["c", "-std=c11"], "C++": ["c++", "-std=c++17"]}


def compile_strictly(file: Path, language: list[str]) -> None:
    """Compile a launcher, without warnings."""
    options = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-isystem", str(INCLUDE)]
    subprocess.run([*find_compiler(), "-x", *language, *options, file.name], cwd=file.parent, check=True)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_a_map_without_strides_is_written(language: list[str], tmp_path: Path) -> None:
    load_line.export(tmp_path)
    assert "cuTensorMapEncodeTiled" in (tmp_path / "load_line.c").read_text("utf-8")
    compile_strictly(tmp_path / "load_line.c", language)


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
def test_names_that_the_launcher_has_are_changed(language: list[str], tmp_path: Path) -> None:
    collide.export(tmp_path, h=1, n=2, N=3)
    compile_strictly(tmp_path / "collide.c", language)
    header = (tmp_path / "collide.h").read_text("utf-8").splitlines()
    assert {"#define COLLIDE_H 1", "#define COLLIDE_n 2", "#define COLLIDE_N 3"} <= {*header}


def test_the_manifest_says_what_is_in_the_directory(tmp_path: Path) -> None:
    manifest = add_scaled.export(tmp_path / "new", n=1000, targets=["sm_90a"])
    assert json.loads((tmp_path / "new" / "add_scaled.json").read_text("utf-8")) == manifest
    digests = manifest.pop("sha256")
    assert set(digests) == {f"add_scaled.{end}" for end in ("ptx", "sm_90a.cubin", "fatbin", "h", "c")}
    for name, digest in digests.items():
        assert hashlib.sha256((tmp_path / "new" / name).read_bytes()).hexdigest() == digest
    assert manifest.pop("producer").startswith("pyptx ")
    assert manifest.pop("assembler")[0].startswith("ptxas ")
    tile = {"type": "f32", "shape": [1000], "layout": "row", "box": None, "map_rank": 2, "map_padding": False}
    assert manifest == {
        "format": 1, "kernel": "add_scaled", "target": "sm_90a", "cubins": {"sm_90a": "add_scaled.sm_90a.cubin"},
        "shape_variables": {"n": 1000}, "grid": [8], "block": [128, 1, 1], "cluster": [1, 1, 1], "dynamic_shared": 0,
        "tensors": [
            {"name": "a", **tile, "is_output": False},
            {"name": "b", **tile, "is_output": False},
            {"name": "c", **tile, "is_output": True},
        ],
        "raw_parameters": [["f32", "scale"]], "parameters": ["a", "b", "c", "scale"],
    }  # fmt: skip
    assert (tmp_path / "new" / "add_scaled.ptx").read_text("utf-8") == add_scaled.ptx(n=1000)
    header = (tmp_path / "new" / "add_scaled.h").read_text("utf-8").splitlines()
    assert [line for line in header if line.startswith(" *   ")] == [
        " *   a: input, 1000 elements of f32, row-major", " *   b: input, 1000 elements of f32, row-major",
        " *   c: output, 1000 elements of f32, row-major", " *   scale: f32",
    ]  # fmt: skip


def test_one_image_serves_several_targets(tmp_path: Path) -> None:
    manifest = double.export(tmp_path, targets=["sm_80", "sm_90"])
    assert manifest["cubins"] == {"sm_80": "double.sm_80.cubin", "sm_90": "double.sm_90.cubin"}
    words = [find_tool("cuobjdump").path, "--list-elf", "--list-ptx", str(tmp_path / "double.fatbin")]
    listing = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert [listing.count(f"sm_{number}.") for number in (80, 90)] == [2, 1]


@pytest.mark.parametrize("file", ["double.sm_80.cubin", "double.fatbin"])
def test_simulated_runs_of_an_image_name_lines_of_python(
    file: str, tmp_path: Path, activate: Activate, capfd: pytest.CaptureFixture[str]
) -> None:
    double.export(tmp_path)
    image, values = (tmp_path / file).read_bytes(), np.arange(32, dtype=np.uint32)
    activate("a100", from_images=True)
    with in_context(0):
        function = call("cuModuleGetFunction", call("cuModuleLoadData", image), b"double")
        source, target = (int(call("cuMemAlloc", values.nbytes)) for _ in range(2))
        call("cuMemcpyHtoD", source, values.ctypes.data, values.nbytes)
        launch = [function, 1, 1, 1, 32, 1, 1, 0, 0]
        types = c_uint64, c_uint64, c_uint32, c_uint16, c_int64
        call("cuLaunchKernel", *launch, ((source, target, 7, 1, -3), types), 0)
        call("cuMemcpyDtoH", values.ctypes.data, target, values.nbytes)
        assert values.tolist() == [2 * i + 5 for i in range(32)]
        with pytest.raises(CallError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            call("cuLaunchKernel", *launch, ((source + 4, target, 7, 1, -3), types), 0)
    lines, start = inspect.getsourcelines(double)
    line = start + next(number for number, text in enumerate(lines) if "ptx.ld(u32" in text)
    printed = capfd.readouterr().err
    assert "error[PTX1110]: `ld.global.u32` accesses 4 bytes" in printed
    assert f"note: it comes from {__file__}:{line}\n" in printed


@pytest.mark.parametrize("exported", [double, tensor_copy, write_ranks], ids=lambda kernel: kernel.name)
def test_what_images_say_of_lines_leaves_the_machine_code_as_it_is(exported: Kernel, tmp_path: Path) -> None:
    (name,) = exported.export(tmp_path)["cubins"].values()
    found, plain = (read_elf(data) for data in ((tmp_path / name).read_bytes(), exported.cubin().data))
    assert {".debug_line", ".nv_debug_ptx_txt"} <= {section.name for section in found.sections}
    for kind in (".text.", ".nv.constant", ".nv.shared"):
        code, expected = (
            {section.name: section.data for section in elf.sections if section.name.startswith(kind)}
            for elf in (found, plain)
        )
        assert code == expected
        assert code or kind == ".nv.shared"


def make_empty(**launch: Any) -> Kernel:
    """Return a kernel that does nothing, for a launch."""

    def empty() -> None:
        ptx.ret()

    return kernel(empty, **{"arch": "sm_80", "grid": (1,), **launch})


LIMITS = [
    ({"grid": (1 << 31, 1 << 16, 65535)}, (
        "the grid's x must not exceed 2147483647, found 2147483648; the grid's y must not exceed 65535, found 65536"
    )),
    ({"grid": (1, 1, 65536)}, "the grid's z must not exceed 65535, found 65536"),
    ({"block": (1, 2, 65)}, "the block's z must not exceed 64, found 65"),
    ({"smem": 163 * 1024 + 1}, "bytes of dynamic shared memory must not exceed 166912, found 166913"),
    ({"arch": "sm_90", "cluster": (2, 2, 1), "grid": (4, 3)}, "the grid 4×3 must be a multiple of the cluster 2×2×1"),
]  # fmt: skip


@pytest.mark.parametrize(("launch", "message"), LIMITS, ids=[message for _, message in LIMITS])
def test_what_cannot_launch_is_not_exported(launch: dict[str, Any], message: str, tmp_path: Path) -> None:
    with raises(PtxError, match=rf"PTX1004\]: `empty` for sm_[89]0: {message}"):
        make_empty(**launch).export(tmp_path)
    assert os.listdir(tmp_path) == []


def test_the_largest_launch_of_all_targets_is_exported(tmp_path: Path) -> None:
    largest = make_empty(grid=((1 << 31) - 1, 65535, 65535), block=(4, 4, 64), smem=163 * 1024)
    assert largest.export(tmp_path, targets=["sm_80", "sm_90"])["grid"] == [2147483647, 65535, 65535]
    with raises(PtxError, match=r"`empty` for sm_86: bytes of dynamic shared memory must not exceed 101376"):
        largest.export(tmp_path, targets=["sm_80", "sm_86"])


def test_static_and_dynamic_shared_memory_are_added(tmp_path: Path) -> None:
    def use_both() -> None:
        tile = smem.alloc(u32, (7680,))
        tile[0] = smem.base()

    def export(dynamic: int, targets: Sequence[str]) -> None:
        kernel(arch="sm_80", grid=(1,), smem=dynamic)(use_both).export(tmp_path, targets=targets)

    export(30_000, ["sm_80"])
    assert "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 30000)" in (tmp_path / "use_both.c").read_text("utf-8")
    export(227 * 1024 - 30720, ["sm_90"])
    expected = (
        "`use_both` for sm_86: bytes of shared memory, 30720 of them static, must not exceed 101376, found 110720"
    )
    with raises(PtxError, match=expected):
        export(80_000, ["sm_80", "sm_86"])


def test_what_cannot_be_exported_leaves_no_manifest(tmp_path: Path) -> None:
    with raises(PtxError, match="missing: n"):
        add_scaled.export(tmp_path)
    with raises(PtxError, match="a kernel for sm_90a cannot be assembled for sm_80"):
        add_scaled.export(tmp_path, n=64, targets=["sm_80"])
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        add_scaled.export(tmp_path / "file", n=64)
    assert os.listdir(tmp_path) == ["file"]


def test_an_export_over_another_has_a_manifest_when_it_is_complete(tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=64)
    with raises(PtxError, match="missing: n"):
        add_scaled.export(tmp_path)
    assert load_kernel(tmp_path).manifest["shape_variables"] == {"n": 64}
    (tmp_path / "add_scaled.h").unlink()
    (tmp_path / "add_scaled.h").mkdir()
    with pytest.raises(IsADirectoryError):
        add_scaled.export(tmp_path, n=128)
    assert not (tmp_path / "add_scaled.json").exists()
    (tmp_path / "add_scaled.h").rmdir()
    add_scaled.export(tmp_path, n=128)
    assert load_kernel(tmp_path).manifest["shape_variables"] == {"n": 128}
