"""Builds the wheel, installs it in a fresh environment, and runs a program on the simulated driver where there is no C
compiler. The driver library, the runtime libraries and the auditor must be those of the wheel, and nothing is built in
the user's cache.

python -m tools.audit_wheel
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tools.wheel import GLIBC, build_wheel, find_newer_symbols

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
SUMMARY = "pyptx: 1 launch of 1 kernel: no findings\n"
LIBRARIES = ["libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libpyptx_audit.so"]


def find_problem(wheel: Path, folder: Path) -> str:
    """Return what differs from what a user of the wheel must see, an empty string if nothing does."""
    newer = find_newer_symbols(wheel)
    if newer:
        return f"symbols of a newer glibc: {newer}"
    environment, tools = folder / "environment", folder / "tools"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
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
    """Build, install and run; print one line."""
    with tempfile.TemporaryDirectory() as name:
        wheel = build_wheel(Path(name))
        problem = find_problem(wheel, Path(name))
        print(f"{wheel.name}, glibc {'.'.join(map(str, GLIBC))}: {problem or 'runs without a compiler'}")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
