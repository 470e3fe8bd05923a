"""Names, versions and numbers of the driver's interface, against NVIDIA's headers in the test environment."""

from __future__ import annotations

import ctypes
import re
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from pyptx.driver.build import build, build_runtime, find_compiler
from pyptx.driver.calls import ENTRIES
from pyptx.driver.calls.errors import VERSION
from pyptx.driver.codes import Code
from pyptx.driver.lookup import list_symbols
from tests.driver.conftest import Run

TYPES = {
    "int": "int", "unsigned int": "uint", "size_t": "size", "CUdevice": "int", "unsigned char": "byte",
    "unsigned short": "ushort", "CUdeviceptr": "pointer", "unsigned long long": "size",
    "CUmemLocation": "size", "CUmemGenericAllocationHandle": "size",
    "CUipcMemHandle": "handle",
}  # fmt: skip
HANDLES = {
    "CUcontext", "CUmodule", "CUfunction", "CUstream", "CUevent", "CUlibrary", "CUkernel", "CUgraph", "CUgraphExec",
    "CUgraphNode", "CUmemoryPool", "CUhostFn", "CUstreamCallback", "CUlinkState", "CUuserObject", "CUoccupancyB2DSize",
}  # fmt: skip


@cache
def read_header(name: str) -> str:
    spec = find_spec("nvidia")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (path,) = [file for root in spec.submodule_search_locations for file in Path(root).rglob(name)][:1]
    return path.read_text("utf-8", "replace")


def read_typedefs() -> str:
    return read_header("cudaTypedefs.h") + read_header("cudaProfilerTypedefs.h")


@cache
def read_version() -> int:
    """Return the CUDA version of the header, which need not be the list's: the index serves one or another."""
    version = re.search(r"#define CUDA_VERSION (\d+)", read_header("cuda.h"))
    assert version is not None
    return int(version[1])


def test_every_function_and_version_of_the_header_is_listed() -> None:
    pattern = r"typedef\s+\w+\s*\(\s*CUDAAPI\s*\*\s*PFN_(cu\w+?)_v(\d+)(_pt[sd][zs])?\s*\)"
    header = {(name, int(version), bool(suffix)) for name, version, suffix in re.findall(pattern, read_typedefs())}
    assert len(header) > 600
    listed = {(symbol.function, symbol.version, symbol.per_thread) for symbol in list_symbols()}
    latest = min(read_version(), VERSION)
    assert {item for item in header if item[1] <= latest} == {item for item in listed if item[1] <= latest}


def test_the_symbols_are_those_that_the_header_declares() -> None:
    declared = set(re.findall(r"CUDAAPI (cu\w+)\(", read_header("cuda.h")))
    assert len(declared) > 400
    if read_version() == VERSION:
        assert declared - {symbol.name for symbol in list_symbols()} == set()


def test_the_library_exports_every_symbol(library: Path) -> None:
    exported = ctypes.CDLL(str(library))
    assert [symbol.name for symbol in list_symbols() if not hasattr(exported, symbol.name)] == []


def test_codes_are_those_of_the_header() -> None:
    numbers = dict(re.findall(r"^\s*CUDA_(\w+)\s*=\s*(\d+)", read_header("cuda.h"), re.MULTILINE))
    assert {code.name: str(int(code)) for code in Code} == {code.name: numbers[code.name] for code in Code}


@cache
def read_parameters() -> dict[tuple[str, int], str]:
    """Return the parameters of each function and version in the header."""
    header = re.sub(r"/\*.*?\*/", "", read_typedefs(), flags=re.DOTALL)
    pattern = r"PFN_(cu\w+?)_v(\d+)\s*\)\s*\(([^;]*)\)\s*;"
    return {(name, int(version)): " ".join(text.split()) for name, version, text in re.findall(pattern, header)}


def parse_kind(parameter: str) -> str:
    """Return the kind of a C parameter: `enum` for one of 32 bits."""
    words = re.sub(r"_v\d+\b", "", parameter.replace("const ", "").replace("*", " * ")).split()
    name = " ".join(words[:-1]) if len(words) > 1 and words[-1] not in ("int", "*") else " ".join(words)
    if "*" in parameter or "[" in parameter or name in HANDLES:
        return "pointer"
    return TYPES.get(name, "enum")


SYMBOLS = {symbol.name: symbol for symbol in list_symbols()}


@pytest.mark.parametrize("name", [name for name in ENTRIES if SYMBOLS[name].version <= read_version()])
def test_an_entry_takes_the_parameters_of_the_header(name: str) -> None:
    text = read_parameters()[SYMBOLS[name].function, SYMBOLS[name].version]
    expected = [parse_kind(item) for item in text.split(",")] if text not in ("", "void") else []
    kinds = [kind.replace("result", "pointer") for kind in ENTRIES[name].kinds]
    assert len(kinds) == len(expected)
    for kind, other in zip(kinds, expected, strict=True):
        assert kind == other or (other == "enum" and kind in ("int", "uint"))


@pytest.mark.parametrize(
    ("name", "version", "flags", "symbol", "status"),
    [
        ("cuMemAlloc", 2000, 0, "cuMemAlloc", 0),
        ("cuMemAlloc", 3019, 0, "cuMemAlloc", 0),
        ("cuMemAlloc", 13050, 0, "cuMemAlloc_v2", 0),
        ("cuEventRecord", 12000, 0, "cuEventRecord", 0),
        ("cuEventRecord", 12000, 2, "cuEventRecord_ptsz", 0),
        ("cuEventRecord", 6000, 2, "cuEventRecord", 0),
        ("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds", 0),
        ("cuLaunchKernelEx", 11050, 0, "", 2),
        ("cuNothing", 13000, 0, "", 1),
        ("cu", 13000, 0, "", 1),
    ],
)
def test_lookup_finds_the_version_that_a_program_was_built_for(
    library: Path, name: str, version: int, flags: int, symbol: str, status: int
) -> None:
    cuda = ctypes.CDLL(str(library))
    address, result = ctypes.c_void_p(), ctypes.c_int(-1)
    code = cuda.cuGetProcAddress_v2(
        name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(result)
    )
    expected = ctypes.cast(getattr(cuda, symbol), ctypes.c_void_p).value if symbol else None
    assert (code, address.value, result.value) == (0 if symbol else Code.ERROR_NOT_FOUND, expected, status)


def test_a_function_that_is_not_simulated_names_itself(run_program: Run) -> None:
    process = run_program("from calls import *\nstart()\nprint(try_call('cuGraphicsMapResources', 0, 0, 0))")
    assert process.stdout == f"{int(Code.ERROR_NOT_SUPPORTED)}\n"
    assert process.stderr == "pyptx: the simulated CUDA driver does not support cuGraphicsMapResources\n"


def test_the_libraries_are_built_without_warnings(tmp_path: Path) -> None:
    compiler = [*find_compiler(), "-Werror", "-Wextra", "-Wno-unused-parameter"]
    build(tmp_path / "libcuda.so.1", compiler)
    build_runtime(tmp_path / "libcudart.so.12", tmp_path / "libcuda.so.1", 12, compiler)
    names = subprocess.run(["nm", "-D", "--defined-only", tmp_path / "libcuda.so.1"], capture_output=True, check=True)
    assert b"cuInit" in names.stdout
