"""Runs programs of the runtime API on the simulated driver: C++ programs of nvcc, linked with `-cudart shared`, one of
them a product by CUTLASS, and the C program of the tests, with the headers of CUDA 12. Each must compute the right
result, and planted errors must be reported at their lines of the source.

python -m tools.audit_runtime [--cache build/runtime]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyptx.driver.build import find_compiler
from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_library
from pyptx.driver.settings import Settings
from pyptx.driver.sources import name_runtime
from tools.corpus import packages

ROOT = Path(__file__).parent.parent
_FOLDER = ROOT / "tools" / "driver_programs"
SOURCE, GEMM, BUGS = (_FOLDER / name for name in ("runtime_add.cu", "cutlass_gemm.cu", "bugs.cu"))
PLANTED = (
    ("scale", "PTX1110", "bugs.cuh", "        x[i] *="),
    ("reverse", "PTX0901", "reverse.cu", "    out[i] ="),
    ("sum", "PTX0901 PTX0902", "bugs.cuh", "        *total +="),
    ("load", "PTX0930", "bugs.cuh", "    out[threadIdx.x] = tile"),
    ("shift", "PTX1301", "bugs.cu", "        shift<<<1, size, 0, second"),
    ("early", "PTX1307", "bugs.cu", "        return x[1]"),
)
"""What the programs of bugs.cu must report: the codes, and the line by its first words. The launch is on
that line, or on the first that launches the kernel."""
_APART = {"PTX1301": 2, "PTX1307": 1}
"""The findings that are not those of a launch, and how many launches come before them."""
C_SOURCE = ROOT / "tests" / "driver" / "programs" / "runtime.c"
NVCC, CUTLASS, RUNTIME_12 = "nvcc-13.5.37", "cutlass-4.2.0.0", "runtime-12.9.79"
ADDITIONS, PRODUCTS = 4, 1
"""The launches of the C++ programs; the last addition is the one with another count."""


Finding = tuple[str, str, str]
"""A finding: its code, its line, and the line of the launch."""


def build_with_nvcc(source: Path, architecture: str, cache: Path) -> Path:
    """Return a C++ program."""
    program, libraries = cache / source.stem, cache / "libraries"
    home = next(packages.install(NVCC, cache).glob("nvidia/cu*"))
    cutlass = packages.install(CUTLASS, cache) / "cutlass_library" / "source"
    libraries.mkdir(exist_ok=True)
    link = libraries / "libcudart.so"
    link.unlink(missing_ok=True)
    link.symlink_to(next(home.glob("lib/libcudart.so.*")))
    options = [
        "-std=c++17",
        "-cudart",
        "shared",
        "-g",
        "-lineinfo",
        "-gencode",
        f"arch={architecture},code={architecture}",
    ]
    options += ["--expt-relaxed-constexpr", "-DNDEBUG", f"-L{libraries}"]
    folders = (cutlass / "include", cutlass / "tools" / "util" / "include", home / "include" / "cccl")
    options += [f"-I{folder}" for folder in folders]
    command = [str(home / "bin" / "nvcc"), *options, "-o", str(program), str(source)]
    subprocess.run(command, check=True, env={**os.environ, "CUDA_HOME": str(home)})
    return program


def find_problem(program: Path, words: Sequence[str], expected: list[list[Finding]], cache: Path) -> str:
    """Run a C++ program, and return what differs from what each launch must report."""
    report = cache / "report.json"
    report.unlink(missing_ok=True)
    options = ["--from-images", "--watch-host", "--report", str(report)]
    command = [sys.executable, "-m", "pyptx", "simulate", *options, "--", str(program), *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    # Below no folder of sources, so that their places are absolute.
    process = subprocess.run(command, cwd=cache, env=environment, capture_output=True, text=True, check=False)
    if not report.exists():
        return process.stderr[-2000:]
    launches: list[Any] = json.loads(report.read_text("utf-8"))["launches"]
    findings = [
        [(item["code"], item["source"], launch["place"]) for item in launch["diagnostics"]] for launch in launches
    ]
    if findings == expected and bool(process.returncode) == any(expected):
        return ""
    return f"status {process.returncode}, found {findings}, expected {expected}\n{process.stdout}{process.stderr}"


def find_line(path: Path, start: str) -> str:
    """Return a line of a file by its first words."""
    lines = path.read_text("ascii").splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if line.startswith(start))}"


def find_planted(cache: Path) -> dict[str, tuple[str, str]]:
    """Run the programs with planted errors; return what differs, and what must be reported, by their names."""
    program, outcomes = build_with_nvcc(BUGS, "compute_90", cache), dict[str, tuple[str, str]]()
    for name, codes, file, start in PLANTED:
        launch = find_line(BUGS, start if file == BUGS.name else f"        {name}<<<")
        findings = [(code, find_line(_FOLDER / file, start), launch) for code in codes.split()]
        # What is about more than one launch is reported apart from them.
        expected = [*([[]] * _APART.get(codes, 0)), findings]
        outcomes[f"{BUGS.name} {name}, {NVCC}"] = find_problem(program, [name], expected, cache), codes
    return outcomes


def find_refusal(program: Path) -> str:
    """Run the C++ program without the option that reads images, and return what it should have printed."""
    command = [sys.executable, "-m", "pyptx", "simulate", "--", str(program), "1000"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    remedy = "run `pyptx simulate --from-images`"
    return "" if process.returncode and remedy in process.stderr else f"not refused:\n{process.stderr}"


def find_problem_with_cuda_12(cache: Path) -> str:
    """Run the C program with the headers of CUDA 12, and return how its output differs."""
    program, library = cache / "runtime_12", find_library()
    headers = packages.headers(packages.install(RUNTIME_12, cache))
    words = [*find_compiler(), "-o", str(program), str(C_SOURCE), *(f"-I{path}" for path in headers)]
    words += [str(library.parent / name_runtime(12)), f"-Wl,-rpath-link,{library.parent}"]
    subprocess.run(words, check=True)
    environment = make_environment(Settings(count=2, device="b200"))
    process = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)
    is_same = process.stdout == C_SOURCE.with_suffix(".out").read_text("ascii")
    return "" if is_same else process.stdout + process.stderr


def main(argv: Sequence[str] | None = None) -> int:
    """Run every program; print one line for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, default=ROOT / "build" / "runtime", help="where compilers are installed")
    cache: Path = options.parse_args(argv).cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    program = build_with_nvcc(SOURCE, "compute_90", cache)
    line = find_line(SOURCE, "        c[i] = a[i] + b[i]")
    clean: list[list[Finding]] = [[] for _ in range(ADDITIONS)]
    beyond = [
        *clean[1:],
        [("PTX1110", line, find_line(SOURCE, "    add<<<4, 256, 0, stream>>>(arrays[0], arrays[1], arrays[2], n"))],
    ]
    product = find_problem(build_with_nvcc(GEMM, "compute_90a", cache), (), clean[:PRODUCTS], cache)
    outcomes = {
        f"{C_SOURCE.name}, {RUNTIME_12}": (find_problem_with_cuda_12(cache), "the output of CUDA 13"),
        f"{SOURCE.name} 1000, {NVCC}": (find_problem(program, ["1000"], clean, cache), "no findings"),
        f"{SOURCE.name} 1001, {NVCC}": (find_problem(program, ["1001"], beyond, cache), "PTX1110"),
        f"{GEMM.name}, {CUTLASS}, {NVCC}": (product, "no findings"),
        **find_planted(cache),
        f"{SOURCE.name} without --from-images, {NVCC}": (find_refusal(program), "refused"),
    }
    for name, (problem, expected) in outcomes.items():
        print(f"{name}: {problem or expected}", flush=True)
    problems = sum(bool(problem) for problem, _ in outcomes.values())
    print(f"{len(outcomes)} runs, {problems} with another outcome")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
