"""The runtime library: its tables against NVIDIA's headers in the test environment, and a program in C."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path

from pyptx.driver.build import find_compiler
from pyptx.driver.runtime import list_errors, list_functions, list_properties, write_sources
from pyptx.driver.sources import name_runtime
from tests.driver.conftest import PROGRAMS, Run
from tests.driver.test_lookup import parse_kind, read_header

VERSION = 13
"""The major version of the header."""
OUTSIDE = {"cudaProfilerStart", "cudaProfilerStop"}
"""Functions of other headers."""


@cache
def read_parameters() -> dict[str, str]:
    """Return the parameters of each function in the header."""
    header = re.sub(r"/\*.*?\*/", "", read_header("cuda_runtime_api.h"), flags=re.DOTALL)
    header = re.sub(r"__dv\([^)]*\)", "", header)
    return {name: " ".join(text.split()) for name, text in re.findall(r"CUDARTAPI\s+(cuda\w+)\s*\(([^)]*)\)", header)}


def test_every_function_of_the_header_is_listed() -> None:
    assert len(read_parameters()) > 300
    names = {function.name for function in list_functions(VERSION)}
    assert set(read_parameters()) - names - {name + "_ptsz" for name in names} == set()


def test_functions_have_variants_as_in_the_header() -> None:
    pattern = r"#\s*define\s+(cuda\w+)\s+__CUDART_API_(PT[SD][ZS])\(\1\)"
    header = {name: f"_{suffix.lower()}" for name, suffix in re.findall(pattern, read_header("cuda_runtime_api.h"))}
    assert len(header) > 60
    listed = {function.name: function.suffix for function in list_functions(VERSION) if function.suffix}
    assert {name: suffix for name, suffix in listed.items() if name in read_parameters()} == header


def parse_runtime_kind(parameter: str) -> str:
    """Return the kind of a C parameter."""
    if "*" in parameter or "[" in parameter:
        return "pointer"
    if "cudaIpcMemHandle_t" in parameter:
        return "handle"
    if re.search(r"\bcuda\w+_t\b", parameter) or re.search(r"\bcuda(HostFn|StreamCallback)\w*\b", parameter):
        return "pointer"
    named = re.search(r"\b(dim3|cudaExtent|cudaPitchedPtr|cudaMemLocation)\b", parameter)
    if named:
        kinds = {"dim3": "dim3", "cudaExtent": "extent", "cudaPitchedPtr": "pitched", "cudaMemLocation": "size"}
        return kinds[named[1]]
    return parse_kind(parameter)


def test_functions_take_the_parameters_of_the_header() -> None:
    wrong: list[str] = []
    functions = [item for item in list_functions(VERSION) if item.kinds and item.name in read_parameters()]
    for function in functions:
        expected = [parse_runtime_kind(item) for item in read_parameters()[function.name].split(",")]
        kinds = [kind.replace("result", "pointer") for kind in function.kinds]
        pairs = zip_longest(kinds, expected)
        if not all(kind == other or (other == "enum" and kind in ("int", "uint")) for kind, other in pairs):
            wrong.append(f"{function.name}: {kinds}, in the header {expected}")
    assert len(functions) > 150
    assert wrong == []


def test_errors_are_those_of_the_header() -> None:
    header = dict(
        re.findall(r"^\s*(cuda(?:Error\w+|Success))\s*=\s*(\d+)", read_header("driver_types.h"), re.MULTILINE)
    )
    listed = {name: str(number) for number, (name, _) in list_errors().items()}
    assert {name: header.get(name) for name in listed} == listed


def test_properties_are_those_of_the_header() -> None:
    found = re.search(
        r"struct __device_builtin__ cudaDeviceProp\n\{(.*?)\n\};", read_header("driver_types.h"), re.DOTALL
    )
    assert found is not None
    text = re.sub(r"/\*.*?\*/", "", found[1], flags=re.DOTALL)
    members = re.findall(r"(\w+)\s+(\w+)(?:\[(\d+)\])?;", text)
    header = [(kind, name, int(count or 1)) for kind, name, count in members]
    assert [name for _, name, _ in header[:3]] == ["name", "uuid", "luid"]
    types = {"size": "size_t", "int": "int"}
    listed = [(types[kind], name, len(attributes)) for kind, name, attributes in list_properties(VERSION)]
    assert listed == header[3:]


def test_the_table_of_properties_lists_widths_and_marks_the_size_of_memory() -> None:
    rows = re.findall(r"\{(\d+), (\d+), (\d+)\}", write_sources(VERSION)["properties.h"])
    assert rows[:4] == [("4", "0", "0"), ("8", "0", "1"), ("8", "8", "0"), ("4", "12", "0")]


def find_include() -> Path:
    """Return the folder of NVIDIA's headers."""
    spec = find_spec("nvidia")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return next(file for root in spec.submodule_search_locations for file in Path(root).rglob("cuda.h")).parent


def test_a_program_with_kernels_runs(run_program: Run, library: Path, tmp_path: Path) -> None:
    program = tmp_path / "runtime"
    words = [*find_compiler(), "-o", program, PROGRAMS / "runtime.c", f"-I{find_include()}"]
    subprocess.run([*words, library.parent / name_runtime(VERSION), f"-Wl,-rpath-link,{library.parent}"], check=True)
    process = run_program([str(program)], count=2, device="b200")
    assert process.stdout == (PROGRAMS / "runtime.out").read_text("ascii")
    table, shared, *_, last = process.stderr.splitlines()
    assert table.startswith("pyptx: cuGetExportTable: NVIDIA's runtime library in this program needs NVIDIA's driver: ")
    assert shared.startswith("pyptx: cuLaunchKernelEx: `multiply` asks for 1048576 bytes of dynamic shared memory; ")
    assert "error[PTX1110]: `ld.global.f32` accesses 4 bytes" in process.stderr
    assert process.stderr.count("error[") == 1
    assert last == "pyptx: the simulated CUDA driver does not support cudaArrayGetPlane"
    assert process.returncode == 0
