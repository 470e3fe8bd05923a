"""Build the libraries of the driver and the runtime, and the auditor of the dynamic linker, with a C compiler."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from pyptx.driver.calls import ENTRIES
from pyptx.driver.folders import open_folder
from pyptx.driver.lookup import Symbol, list_symbols
from pyptx.driver.runtime import write_sources
from pyptx.driver.signatures import PER_THREAD, Entry, write_parameters
from pyptx.driver.sources import FOLDER, NAME, VERSIONS, NoCompiler, name_runtime

_SOURCES = FOLDER / "csrc"
_IN_C = ("cuGetProcAddress", "cuGetProcAddress_v2")
"""Functions that the C sources define."""
_BUILDING = "building-"
"""How the folders of builds are named."""
_GIVES_BACK = re.compile("Free|Destroy|Release|Unload|Unregister|Ctx[GS]etCurrent")
"""Functions that succeed when Python has ended: those that give something back, in a context that they choose."""


def write_entries() -> str:
    """Return C source with an entry point for every function, and the table that looks them up."""
    symbols = list_symbols()
    numbers = {symbol: number for number, symbol in enumerate(sorted(ENTRIES))}
    per_thread = {symbol.name for symbol in symbols if symbol.per_thread}
    names = dict.fromkeys([*(symbol.name for symbol in symbols), *ENTRIES])
    plain = {symbol.name: symbol.plain for symbol in symbols}
    lines = ['#include "host.h"', ""]
    for name in names:
        entry = ENTRIES.get(name, ENTRIES.get(plain.get(name, "")))
        if name in _IN_C:
            lines.append(f"int {name}(void);")
        elif entry is None:
            lines.append(f'int {name}(void) {{ return pyptx_driver_refuse("{name}"); }}')
        else:
            lines.append(_write_entry(name, entry, numbers[entry.symbol] | PER_THREAD * (name in per_thread)))
    lines += ["", "const Symbol pyptx_driver_symbols[] = {"]
    lines += [_write_symbol(symbol) for symbol in symbols]
    lines += [
        "};",
        "const size_t pyptx_driver_symbol_count = sizeof pyptx_driver_symbols / sizeof *pyptx_driver_symbols;",
    ]
    return "\n".join(lines) + "\n"


def _write_entry(name: str, entry: Entry, number: int) -> str:
    values = ", ".join(
        f"(uint64_t)(uintptr_t)&a{index}" if kind == "handle" else f"(uint64_t)a{index}"
        for index, kind in enumerate(entry.kinds)
    )
    arguments = f"(const uint64_t[]){{{values}}}" if entry.kinds else "NULL"
    gives_back = _GIVES_BACK.search(name)
    function = "pyptx_driver_give_back" if gives_back else "pyptx_driver_call"
    # What succeeds without Python writes a result nevertheless: none.
    clear = (
        "if (a0 && pyptx_driver_has_ended()) *(uintptr_t *)a0 = 0; "
        if gives_back and entry.kinds[0] == "result"
        else ""
    )
    return f"int {name}({write_parameters(entry.kinds)}) {{ {clear}return {function}({number}, {arguments}); }}"


def _write_symbol(symbol: Symbol) -> str:
    return f'    {{"{symbol.function}", {symbol.version}, {int(symbol.per_thread)}, (void *){symbol.name}}},'


def find_compiler() -> list[str]:
    """Return the words that call a C compiler: `cc`, or the one in the package `ziglang`."""
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and shutil.which(name):
            return [name]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoCompiler("no C compiler found: install one, or the package `ziglang`")


def build_libraries(folder: Path, compiler: Sequence[str]) -> None:
    """Build those of the driver library and the runtime libraries that are missing in a folder."""
    library = folder / NAME
    if not library.exists():
        build(library, compiler)
    for version in VERSIONS:
        runtime = folder / name_runtime(version)
        if not runtime.exists():
            build_runtime(runtime, library, version, compiler)


def build(target: Path, compiler: Sequence[str]) -> None:
    """Build the driver library."""
    with tempfile.TemporaryDirectory() as folder:
        entries = Path(folder) / "entries.c"
        entries.write_text(write_entries(), "ascii")
        sources = [*(_SOURCES / name for name in ("host.c", "lookup.c", "watch.c")), entries]
        _compile(target, compiler, [f"-I{_SOURCES}", f"-Wl,-soname,{NAME}", *map(str, sources), "-ldl", "-lpthread"])


def build_runtime(target: Path, driver: Path, version: int, compiler: Sequence[str]) -> None:
    """Build the runtime library of a major version over the driver library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in write_sources(version).items():
            (folder / file).write_text(text, "ascii")
        sources = [*sorted((_SOURCES / "runtime").glob("*.c")), folder / "functions.c"]
        options = [f"-I{_SOURCES / 'runtime'}", f"-I{folder}", f"-DRUNTIME_VERSION={VERSIONS[version]}"]
        options += [f"-Wl,-soname,{name_runtime(version)}", f"-Wl,--version-script={folder / 'exports.map'}"]
        _compile(target, compiler, [*options, *map(str, sources), str(driver), "-lpthread"])


def build_audit(target: Path, compiler: Sequence[str]) -> None:
    """Build the auditor. Raise RuntimeError where the C library has none: only glibc has."""
    _compile(target, compiler, [str(_SOURCES / "audit.c")])


def _compile(target: Path, compiler: Sequence[str], words: Sequence[str]) -> None:
    """Compile a library. Writes the file at once, so that processes may build it at the same time."""
    with open_folder(_BUILDING, target.parent) as folder:
        library = folder / target.name
        options = ["-shared", "-fPIC", "-O1", "-Wall", "-o", str(library)]
        process = subprocess.run([*compiler, *options, *words], capture_output=True, text=True, check=False)
        if process.returncode:
            raise RuntimeError(f"{' '.join(compiler)} failed:\n{process.stderr}")
        library.replace(target)
