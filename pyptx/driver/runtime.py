"""The runtime API of CUDA for programs that nvcc built with `-cudart shared`: C over the functions of the driver.

`runtime.txt` says what answers each function, and `runtime_properties.txt` what the structure `cudaDeviceProp` holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyptx.driver.calls import ENTRIES
from pyptx.driver.codes import Code
from pyptx.driver.lookup import list_symbols
from pyptx.driver.signatures import C_TYPES, write_parameters
from pyptx.driver.sources import FOLDER

_TYPES = C_TYPES | {"dim3": "Dim3", "extent": "Extent", "pitched": "Pitched"}
_SUFFIXES = {"z": "_ptsz", "d": "_ptds"}
ERRORS = {
    9: "InvalidConfiguration", 12: "InvalidPitchValue", 13: "InvalidSymbol", 21: "InvalidMemcpyDirection",
    98: "InvalidDeviceFunction",
}  # fmt: skip
"""Errors that only the runtime API has, without the prefix `cudaError`."""
_RENAMED = {
    Code.SUCCESS: "cudaSuccess", Code.ERROR_OUT_OF_MEMORY: "cudaErrorMemoryAllocation",
    Code.ERROR_NOT_INITIALIZED: "cudaErrorInitializationError", Code.ERROR_DEINITIALIZED: "cudaErrorCudartUnloading",
    Code.ERROR_NO_BINARY_FOR_GPU: "cudaErrorNoKernelImageForDevice",
    Code.ERROR_INVALID_IMAGE: "cudaErrorInvalidKernelImage", Code.ERROR_INVALID_CONTEXT: "cudaErrorDeviceUninitialized",
    Code.ERROR_INVALID_HANDLE: "cudaErrorInvalidResourceHandle", Code.ERROR_NOT_FOUND: "cudaErrorSymbolNotFound",
    Code.ERROR_LAUNCH_FAILED: "cudaErrorLaunchFailure",
    Code.ERROR_PRIMARY_CONTEXT_ACTIVE: "cudaErrorSetOnActiveProcess",
}  # fmt: skip
"""Errors whose name is not the driver's."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the runtime API in one version, the suffix of its variant for each thread's default stream, and
    the driver's function that answers it. `kernel` is the argument that is a kernel's function on the host."""

    name: str
    suffix: str = ""
    answer: str = ""
    kernel: int = -1
    kinds: tuple[str, ...] = ()
    is_in_c: bool = False


def list_functions(version: int) -> list[Function]:
    """Return the functions of a major version."""
    lines = (FOLDER / "runtime.txt").read_text("ascii").splitlines()
    functions: list[Function] = []
    for line in lines:
        name, *words = line.split()
        name, _, only = name.partition("@")
        if name.startswith("#") or (only and int(only) != version):
            continue
        suffix = _SUFFIXES[words.pop(0)] if words and words[0] in _SUFFIXES else ""
        answer, *rest = words or [""]
        if answer == "C":
            functions.append(Function(name, suffix, kinds=tuple(rest), is_in_c=True))
        else:
            kernel = int(rest[0].removeprefix("kernel:")) if rest else -1
            functions.append(Function(name, suffix, answer, kernel, ENTRIES[answer].kinds if answer else ()))
    return functions


def list_errors() -> dict[int, tuple[str, str]]:
    """Return the name and meaning of each error by its number."""
    driver = {int(code): (_RENAMED.get(code, _join(code.name)), code.meaning) for code in Code}
    return driver | {number: (f"cudaError{name}", _separate(name)) for number, name in ERRORS.items()}


def _join(name: str) -> str:
    return "cuda" + "".join(word.capitalize() for word in name.split("_"))


def _separate(name: str) -> str:
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def list_properties(version: int) -> list[tuple[str, str, list[int]]]:
    """Return the type, name and attributes of each member of `cudaDeviceProp` in a major version."""
    members: list[tuple[str, str, list[int]]] = []
    for line in (FOLDER / "runtime_properties.txt").read_text("ascii").splitlines():
        kind, name, *attributes = line.split()
        name, _, only = name.partition("@")
        if kind != "#" and (not only or int(only) == version):
            members.append((kind, name, list(map(int, attributes))))
    return members


def write_sources(version: int) -> dict[str, str]:
    """Return the generated C by file name."""
    return {
        "driver_functions.h": _write_declarations(),
        "errors.h": _write_errors(),
        "properties.h": _write_properties(version),
        "functions.c": _write_functions(version),
        "exports.map": f"libcudart.so.{version} {{ global: cuda*; __cuda*; local: *; }};\n",
    }


def _write_declarations() -> str:
    """Declare the functions of the driver, each with its variant."""
    plain = {symbol.name: symbol.plain for symbol in list_symbols()}
    lines = ["#pragma once", "#include <stddef.h>", "#include <stdint.h>", "typedef struct { char bytes[64]; } Handle;"]
    lines += ["int cuGetProcAddress_v2(const char *, void **, int, uint64_t, int *);"]
    for name in dict.fromkeys([*plain, *ENTRIES]):
        entry = ENTRIES.get(name, ENTRIES.get(plain.get(name, "")))
        if entry is not None:
            lines.append(f"int {name}({write_parameters(entry.kinds)});")
    return "\n".join(lines) + "\n"


def _write_errors() -> str:
    lines = ["typedef struct {", "    int code;", "    const char *name, *meaning;", "} Error;", ""]
    lines.append("static const Error runtime_errors[] = {")
    lines += [f'    {{{number}, "{name}", "{meaning}"}},' for number, (name, meaning) in list_errors().items()]
    return "\n".join([*lines, "};"]) + "\n"


def _write_properties(version: int) -> str:
    lines = ["typedef struct {", "    short width, attribute, is_memory;", "} Property;", ""]
    lines.append("static const Property runtime_properties[] = {")
    for kind, name, attributes in list_properties(version):
        width, is_memory = 8 if kind == "size" else 4, int(name == "totalGlobalMem")
        lines += [f"    {{{width}, {attribute}, {is_memory}}}," for attribute in attributes]
    return "\n".join([*lines, "};"]) + "\n"


def _write_functions(version: int) -> str:
    symbols = {symbol.name for symbol in list_symbols()}
    lines = ['#include "runtime.h"', "", "int pyptx_driver_refuse(const char *);", ""]
    for function in list_functions(version):
        if function.is_in_c:
            lines += _write_variant(function) if function.suffix else []
        elif not function.answer:
            lines += [
                f'int {name}(void) {{ return runtime_end(pyptx_driver_refuse("{name}")); }}'
                for name in {function.name: 0, function.name + function.suffix: 0}
            ]
        else:
            lines.append(_write_forward(function, function.name, function.answer))
            if function.suffix:
                variants = (function.answer + suffix for suffix in _SUFFIXES.values())
                answer = next(name for name in variants if name in symbols)
                lines.append(_write_forward(function, function.name + function.suffix, answer))
    return "\n".join(lines) + "\n"


def _write_forward(function: Function, name: str, answer: str) -> str:
    arguments = [f"a{index}" for index in range(len(function.kinds))]
    call = f"{answer}({', '.join(arguments)})"
    find = ""
    if function.kernel >= 0:
        argument = arguments[function.kernel]
        find = f"if (!code) code = runtime_find_kernel({argument}, &{argument}); "
    parameters = write_parameters(function.kinds)
    return f"int {name}({parameters}) {{ int code = runtime_begin(); {find}return runtime_end(code ? code : {call}); }}"


def _write_variant(function: Function) -> list[str]:
    """A variant is the function itself, called with a mark."""
    parameters = write_parameters(function.kinds, _TYPES)
    arguments = ", ".join(f"a{index}" for index in range(len(function.kinds)))
    return [
        f"int {function.name}({parameters});",
        f"int {function.name}{function.suffix}({parameters}) {{ runtime_per_thread = 1; "
        f"int code = {function.name}({arguments}); runtime_per_thread = 0; return code; }}",
    ]
