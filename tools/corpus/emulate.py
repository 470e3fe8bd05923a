"""Checks references without a GPU: compiles plain CUDA C++ sources with g++ and compares their results.

`python -m tools.corpus.emulate [SOURCE…]` runs every kernel of `cuda/SOURCE.cu` that has a launch, for each of its
builds. Sources with inline assembly or NVIDIA headers do not compile and are listed.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus import inputs
from tools.corpus.manifest import Array, Entry, Output, Run, Scalar
from tools.corpus.source import Source, read

ROOT = Path(__file__).parent
COMPILE = ["g++", "-std=c++17", "-O1", "-w", "-fwrapv", "-frounding-math", f"-I{ROOT}", "-xc++"]
POOL = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")


def main(names: list[str]) -> int:
    """Emulate the named sources, or all; return the number of kernels that differ from their reference."""
    wrong = 0
    for path in sorted((ROOT / "cuda").glob("*.cu")):
        if not names or path.stem in names:
            source = read(path)
            defines = sorted({" ".join(f for f in build.flags if f.startswith("-D")) for build in source.builds})
            wrong += sum(emulate(source, define.split()) for define in defines)
    return wrong


def emulate(source: Source, defines: list[str]) -> int:
    """Run one source's kernels with some macro definitions; print a line, and one per difference."""
    text = re.sub(r"#include <(cuda|cooperative|mma|cub|cute|cutlass).*", "", source.path.read_text(encoding="utf-8"))
    text = '#include "emulate.h"\n' + POOL.sub(r"\1 *\2 = (\1 *)emu_dynamic_shared;", text)
    preprocessor = subprocess.run(
        [*COMPILE, *defines, "-E", "-"], input=text, capture_output=True, text=True, check=False
    )
    kernels = [entry for entry in source.kernels if entry.run and f"void {entry.name}(" in preprocessor.stdout]
    for entry in kernels:
        launch = f"emu_launch({entry.name}, arguments, dims);"
        text += f'\nextern "C" void run_{entry.name}(void **arguments, const int *dims) {{ {launch} }}'
    with tempfile.TemporaryDirectory() as directory:
        library = Path(directory, f"{source.path.stem}.so")
        command = [*COMPILE, *defines, "-shared", "-fPIC", "-", "-o", str(library)]
        if subprocess.run(command, input=text, capture_output=True, text=True, check=False).returncode:
            print(f"{source.path.name}: not plain C++")
            return 0
        functions = ctypes.CDLL(str(library))
        faults = [fault for entry in kernels for fault in differences(functions, entry)]
    print(
        f"{source.path.name} {' '.join(defines)}: {len(kernels)} kernels, {len(faults)} wrong outputs",
        *faults,
        sep="\n  ",
    )
    return len(faults)


def differences(library: ctypes.CDLL, entry: Entry) -> list[str]:
    """Return the differences between a kernel's outputs and its reference."""
    run = entry.run
    assert run is not None
    values = inputs.arguments(run)
    before = {name: value.copy() for name, value in values.items()}
    launch(library, entry.name, run, values)
    module, _, name = run.reference.rpartition(".")
    expected = getattr(importlib.import_module(f"tools.corpus.{module}"), name)(before)
    return [
        f"{entry.name}: {o.argument}" for o in run.outputs if not close(values[o.argument], expected[o.argument], o)
    ]


def close(got: NDArray[Any], want: NDArray[Any], output: Output) -> bool:
    """Return whether an output is within its tolerance, or equal without one."""
    if output.rtol == output.atol == 0:
        return bool(np.array_equal(got, want))
    a, b = got.astype(float), want.astype(float)
    return bool((np.abs(a - b) <= output.atol + output.rtol * np.abs(b)).all())


def launch(library: ctypes.CDLL, name: str, run: Run, values: dict[str, Any]) -> None:
    """Call an emulated kernel on the arrays in place."""
    cells: list[Any] = []
    for argument in run.arguments:
        if isinstance(argument, Scalar):
            cells.append(np.array([values[argument.name]]))
        elif isinstance(argument, Array) and not argument.hidden:
            cells.append(np.array([values[argument.name].ctypes.data], np.uint64))
    arguments = (ctypes.c_void_p * len(cells))(*(cell.ctypes.data for cell in cells))
    getattr(library, f"run_{name}")(arguments, (ctypes.c_int * 6)(*run.grid, *run.block))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]) > 0)
