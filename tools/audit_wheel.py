"""Builds the wheel, installs it in a fresh environment, and runs a program on the simulated driver where there is no C
compiler. The driver library, the runtime libraries and the auditor must be those of the wheel, and nothing is built in
the user's cache. Then it installs the source tree where the C compiler fails: without the extensions, kernels run on
the simulator.

python -m tools.audit_wheel
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from shutil import copyfile, copytree

from tools.wheel import EXTENSIONS, GLIBC, ROOT, build_wheel, find_newer_symbols

PROGRAMS = Path(__file__).parent.parent / "tests" / "driver" / "programs"
PROGRAM = """\
import ctypes, re, sys
from calls import *
start()
data = ask("cuMemAlloc_v2", 4000)
call("cuMemsetD32_v2", data, 0, 1000)
assert launch(load(VECTOR_ADD, "add"), 4, 256, data, data, data, 1000) == 0
result, version = (ctypes.c_float * 1000)(), ctypes.c_int()
call("cuMemcpyDtoH_v2", result, data, 4000)
assert set(result) == {1.0}
for major in (12, 13):
    ctypes.CDLL(f"libcudart.so.{major}").cudaRuntimeGetVersion(ctypes.byref(version))
    assert version.value // 1000 == major, version
print(*sorted(set(re.findall(r"\\S*/prebuilt/\\S+", open("/proc/self/maps").read()))), sep="\\n")
"""
"""Adds 1 to 1,000 zeros, asks the runtime libraries for their version, and prints the libraries of the wheel in use."""
KERNEL = """\
import numpy as np
from importlib.util import find_spec
from pyptx import Tile, kernel, ptx
from pyptx.types import f32

@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def double(x, y):
    px, py = ptx.global_ptrs(x, y)
    at = ptx.special.tid.x() * 4
    ptx.st(f32, ptx.addr(py, at), ptx.ld(f32, ptx.addr(px, at)) * 2.0)

x = np.arange(32, dtype=np.float32)
assert np.array_equal(double(x), 2 * x)
print(*(name for name in {names} if find_spec("pyptx.runtime." + name)))
"""
"""Doubles 32 numbers on the simulator, and prints the extensions that are installed."""
SUMMARY = "pyptx: 1 launch of 1 kernel: no findings\n"
LIBRARIES = ["libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libpyptx_audit.so"]


def install(package: Path, folder: Path, **environment: str) -> Path:
    """Return the Python of a new environment with the package."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    words = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", str(package)]
    subprocess.run(words, check=True, env={**os.environ, **environment})
    return python


def run_kernel(python: Path, folder: Path) -> str:
    """Return what `KERNEL` prints, or why it fails."""
    (folder / "kernel.py").write_text(KERNEL.replace("{names}", repr(EXTENSIONS)), "utf-8")
    process = subprocess.run([python, "kernel.py"], cwd=folder, capture_output=True, text=True, check=False)
    return f"{process.stdout.strip()}{process.stderr[-2000:]}"


def find_source_problem(folder: Path) -> str:
    """Return what differs from what a user must see who installs the source without a compiler."""
    source = folder / "source"
    names = "README.md", "LICENSE", "pyproject.toml", "setup.py", "pyptx"
    source.mkdir()
    for name in names:
        copy = copytree if (ROOT / name).is_dir() else copyfile
        copy(ROOT / name, source / name)
    for extension in source.glob("pyptx/runtime/*.so"):
        extension.unlink()
    printed = run_kernel(install(source, folder / "plain", CC="false"), folder)
    return f"printed {printed}" if printed else ""


def find_problem(wheel: Path, folder: Path) -> str:
    """Return what differs from what a user of the wheel must see, an empty string if nothing does."""
    newer = find_newer_symbols(wheel)
    if newer:
        return f"symbols of a newer glibc: {newer}"
    python, tools = install(wheel, folder / "environment"), folder / "tools"
    printed = run_kernel(python, folder)
    if printed.split() != [*EXTENSIONS]:
        return f"extensions: {printed}"
    tools.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM, "utf-8")
    process = subprocess.run(
        [python, "-m", "pyptx", "simulate", str(program)], cwd=folder, capture_output=True, text=True, check=False,
        env={"PATH": str(tools), "HOME": str(folder), "PYTHONPATH": str(PROGRAMS)},
    )  # fmt: skip
    if process.returncode or process.stderr != SUMMARY:
        return f"status {process.returncode}: {process.stderr[-2000:]}"
    used = [os.path.basename(line) for line in process.stdout.splitlines()]
    built = [str(path) for path in folder.glob(".cache/**/*.so*")]
    return "" if sorted(used) == LIBRARIES and not built else f"libraries used: {used}, built: {built}"


def main() -> int:
    """Build, install and run; print a line for each kind of installation."""
    with tempfile.TemporaryDirectory() as name:
        wheel = build_wheel(Path(name))
        problem = find_problem(wheel, Path(name))
        print(f"{wheel.name}, glibc {'.'.join(map(str, GLIBC))}: {problem or 'runs without a compiler'}")
        source_problem = find_source_problem(Path(name))
        print(f"the source without a compiler: {source_problem or 'kernels run on the simulator'}")
    return 1 if problem or source_problem else 0


if __name__ == "__main__":
    sys.exit(main())
