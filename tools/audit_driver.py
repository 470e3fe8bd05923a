"""Runs programs of CUDA's Python packages, unmodified, on the simulated driver: cuda-bindings, cuda.core with NVRTC,
numba-cuda, Triton with PyTorch tensors on the CPU and TileLang, as H100 and as B200, and kernels of the CuTe DSL and
Warp that programs launch themselves. Each must compute the right result. Planted errors must be reported at the line
of the kernel and of the launch, or of the call of the program that is wrong, and nothing else but what compilers emit,
which tools/driver_programs/accepted.json explains. Programs in docs/driver.md must print what the page shows.

python -m tools.audit_driver [--cache build] [--python PYTHON]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tools.corpus.packages import COMPILERS
from tools.corpus.python_producers.build import PRODUCERS, install
from tools.page_blocks import list_blocks, run_commands, save

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tools"
PAGE, IN_AUDIT = ROOT / "docs" / "driver.md", "in audit_driver"
"""A page with programs, and how it marks the commands that run here."""
SIMULATOR = "ml_dtypes==0.6.0", "tqdm==4.70.1"
BINDINGS = "cuda-bindings==13.5.0"
ENVIRONMENTS = {
    "driver": (*PRODUCERS["numba"].packages, *PRODUCERS["triton"].packages, "torch==2.13.0", *SIMULATOR),
    "driver_cutedsl": (*PRODUCERS["cutedsl"].packages, "numpy==2.4.6", BINDINGS, *SIMULATOR),
    "driver_warp": (*PRODUCERS["warp"].packages, BINDINGS, *SIMULATOR),
    "driver_tilelang": (
        "tilelang==0.1.15", "torch==2.13.0", "numpy==2.4.6", *COMPILERS["nvcc-13.5.37"], BINDINGS, *SIMULATOR,
    ),
}  # fmt: skip
"""The packages of each environment. numba-cuda brings cuda-core, NVRTC and nvJitLink."""
SHOWN = {
    "driver": (
        "numba-cuda", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-nvjitlink", "triton", "torch",
    ),
    "driver_cutedsl": ("nvidia-cutlass-dsl",),
    "driver_warp": ("warp-lang",),
    "driver_tilelang": ("tilelang",),
}  # fmt: skip
"""The packages whose versions are printed."""
Found = tuple[str, str, str]
"""A finding: its code, the line of the launch, and the line of the kernel's source, or of the PTX without one."""


@dataclass(frozen=True)
class Case:
    """One run: the program with its arguments, the codes that must be found, and the first words of the lines of the
    launch and of the kernel. `source` is the kernel's file if it is another, or its line. `refusal` is what is printed
    if the driver must not load its image."""

    words: tuple[str, ...]
    code: str = ""
    launch: str = ""
    line: str = ""
    source: str = ""
    options: tuple[str, ...] = ("--from-images",)
    refusal: str = ""
    environment: str = "driver"
    is_plain: bool = False
    """Whether Python runs the program without the command: it must end with status 0."""


ACCEPTED = FOLDER / "driver_programs/accepted.json"
_CORE, _NUMBA = "driver_programs/cuda_core_add.py", "driver_programs/numba_add.py"
_CORE_GRAPH, _NUMBA_SUMS = "driver_programs/cuda_core_graph.py", "driver_programs/numba_sums.py"
_CORE_BUGS, _NUMBA_BUGS = "driver_programs/cuda_core_bugs.py", "driver_programs/numba_bugs.py"
_BINDINGS_RACE, _TRITON_BUGS = "driver_programs/bindings_reverse.py", "driver_programs/triton_bugs.py"
_CUDA, _REVERSE = "driver_programs/bugs.cuh", "driver_programs/reverse.cu"
_TRITON = "driver_programs/triton_rows.py", "driver_programs/triton_products.py"
_TILELANG = "driver_programs/tilelang_gemm.py", "driver_programs/tilelang_attention.py"
CASES = (
    Case((_CORE, "ptx", "1000"), options=()),
    Case((_CORE, "ptx", "1001"), "PTX1110", "launch(stream,", options=()),
    Case((_CORE, "cubin", "1000")),
    Case((_CORE, "cubin", "1001"), "PTX1110", "launch(stream,", source="default_program:5"),
    Case((_CORE, "cubin", "1000"), options=(), refusal="run `pyptx simulate --from-images`"),
    Case(
        (_CORE, "cubin", "1000"), options=("--from-images", "--no-line-info"), refusal="this cubin holds machine code"
    ),
    *(Case((_CORE_GRAPH, kind)) for kind in ("ptx", "cubin")),
    *(
        Case((_CORE_BUGS, kind, name), code, launch, line, source)
        for kind in ("ptx", "cubin")
        for name, code, launch, line, source in (
            ("scale", "PTX1110", "    launch(stream, config, kernel, x, np", "        x[i] *=", _CUDA),
            ("reverse", "PTX0901", "    launch(stream, config, kernel, *pair)", "    out[i] =", _REVERSE),
            ("sum", "PTX0901 PTX0902", "    launch(stream, config, kernel, *pair, np", "        *total +=", _CUDA),
            ("load", "PTX0930", "    launch(stream, config, kernel, *pair)", "    out[threadIdx.x] = tile", _CUDA),
            ("shift", "PTX1301", "    launch(other,", "    launch(other,", ""),
        )
    ),
    Case((_NUMBA, "1000")),
    Case((_NUMBA, "1001"), "PTX1110", "add[4, 256]"),
    Case((_NUMBA_SUMS,)),
    *(
        Case(("driver_programs/numba_pyptx.py",), options=("--from-images", "--order", order))
        for order in ("sync", "deferred")
    ),
    *(
        Case((_NUMBA_BUGS, name), code, launch, line, options=("--from-images", *options))
        for name, code, launch, line, *options in (
            ("scale", "PTX1110", "        scale[", "        x[i] ="),
            ("reverse", "PTX0901", "        reverse[", "    out[i] ="),
            ("count", "PTX0901 PTX0902", "        count[", "        total[0] +="),
            ("shift", "PTX1301", "        shift[1, SIZE, other]", "        shift[1, SIZE, other]"),
            ("early", "PTX1307", *["        assert managed[1]"] * 2, "--watch-host"),
            ("change", "PTX1304", *["        y.copy_to_device("] * 2, "--order", "deferred"),
        )
    ),
    Case((_BINDINGS_RACE,), "PTX0901", "call(driver.cuLaunchK", "    ld.shared", "driver_programs/reverse.ptx"),
    *(Case((program,), options=("--device", device)) for device in ("h100", "b200") for program in _TRITON),
    *(
        Case((_TRITON_BUGS, name), code, launch, line, options=("--device", device))
        for device in ("h100", "b200")
        for name, code, launch, line in (
            ("scale", "PTX1110", "        scale[", "    tl.store(out + at, 2"),
            ("sum", "PTX0901 PTX0902", "        sum_all[", "    tl.store(out,"),
            ("load", "PTX0930", "        load[", "    value = tile"),
        )
    ),
    *(
        Case(
            ("driver_programs/cutedsl_gemm.py",),
            options=("--from-images", "--device", device),
            environment="driver_cutedsl",
        )
        for device in ("h100", "b200")
    ),
    Case(("driver_programs/triton_activate.py",), options=(), is_plain=True),
    *(
        Case((program, architecture), options=("--from-images", "--device", device), environment="driver_tilelang")
        for device, architecture in (("h100", "sm_90a"), ("b200", "sm_100a"))
        for program in _TILELANG
    ),
    *(
        Case(("driver_programs/warp_saxpy.py", count), *outcome, options=(), environment="driver_warp")
        for count, *outcome in (("1000",), ("1001", "PTX1110", "call(driver.cuLaunchK"))
    ),
)


def find_problem(python: Path, case: Case) -> tuple[str, list[tuple[str, str]]]:
    """Run a case and return what differs from what it must do, an empty string if nothing does, and the code and kernel
    of every finding."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = *case.options, "--baseline", str(ACCEPTED), "--report", str(report)
        command = [str(python), *(() if case.is_plain else ("-m", "pyptx", "simulate", *options)), *case.words]
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "TRITON_DEFAULT_FP_FUSION": "1",
            "CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": folder,
        }  # fmt: skip
        toolkit = next(python.parent.parent.glob("lib/python*/site-packages/nvidia/cu13"), None)
        if toolkit is not None:
            environment |= {"CUDA_HOME": str(toolkit), "PATH": f"{toolkit / 'bin'}:{os.environ['PATH']}"}
        process = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
        launches: list[Any] = json.loads(report.read_text("utf-8"))["launches"] if report.exists() else []
    if case.is_plain:
        return process.stderr[-2000:] if process.returncode else "", []
    codes = [(item["code"], launch["kernel"]) for launch in launches for item in launch["diagnostics"]]
    if bool(process.returncode) != bool(case.code or case.refusal):
        return f"status {process.returncode}\n{process.stderr[-2000:]}", codes
    if case.refusal:
        return "" if case.refusal in process.stderr and not launches else process.stderr[-2000:], codes
    findings = {
        (item["code"], launch["place"], find_source(case, item))
        for launch in launches
        for item in launch["diagnostics"]
        if not is_accepted(item["code"], launch["kernel"])
    }
    expected = list_expected(case)
    problem = "" if launches and findings == expected else f"found {sorted(findings)}, expected {sorted(expected)}"
    return problem, codes


def find_problems_of_page(python: Path) -> Iterator[tuple[str, str]]:
    """Run the commands of the page that are marked; yield the first line of each block, and what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        for block in list_blocks(PAGE.read_text("utf-8")):
            save(block, Path(folder))
            if block.argument == IN_AUDIT:
                problem = ""
                try:
                    run_commands(block, Path(folder), str(python), {"TRITON_DEFAULT_FP_FUSION": "1"})
                except AssertionError as why:
                    problem = str(why)
                yield block.text.partition("\n")[0], problem


def find_source(case: Case, item: dict[str, Any]) -> str:
    """Return the line of the source that a finding names."""
    if case.source.endswith(".ptx"):
        return f"{case.source}:{item['line']}"
    return item["source"].replace(f"{FOLDER}/", "")


def list_expected(case: Case) -> set[Found]:
    """Return what must be found."""
    if not case.code:
        return set()
    source = find_line(case.source or case.words[0], case.line) if case.line else case.source
    return {(code, find_line(case.words[0], case.launch), source) for code in case.code.split()}


def find_line(file: str, start: str) -> str:
    """Return a line of a file by its first words."""
    lines = (FOLDER / file).read_text("utf-8").splitlines()
    return f"{file}:{next(number for number, line in enumerate(lines, 1) if line.startswith(start))}"


def read_accepted() -> list[dict[str, str]]:
    """Return the findings in code that compilers generate, by code and kernel, each with the reason."""
    return json.loads(ACCEPTED.read_text("utf-8"))["accepted"]


def is_accepted(code: str, kernel: str) -> bool:
    """Return whether a finding is explained."""
    return any(entry["code"] == code and fnmatchcase(kernel, entry["kernel"]) for entry in read_accepted())


def list_versions(python: Path, names: Sequence[str]) -> str:
    """Return the versions of packages."""
    script = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    process = subprocess.run([python, "-c", script, *names], capture_output=True, text=True, check=True)
    return ", ".join(f"{name} {version}" for name, version in zip(names, process.stdout.split(), strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    """Run every case; print one line for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, default=ROOT / "build", help="where the environments are made")
    options.add_argument("--python", type=Path, help="the Python of an environment that has the packages")
    arguments = options.parse_args(argv)
    pythons = {name: arguments.python or install(arguments.cache / name, ENVIRONMENTS[name]) for name in ENVIRONMENTS}
    print(", ".join(list_versions(pythons[name], SHOWN[name]) for name in ENVIRONMENTS))
    problems, seen = 0, set[tuple[str, str]]()
    for case in CASES:
        problem, codes = find_problem(pythons[case.environment], case)
        problems += bool(problem)
        seen.update(codes)
        explained = sorted({code for code, kernel in codes if is_accepted(code, kernel)})
        outcome = case.code or ("refused" if case.refusal else "no findings")
        if explained:
            outcome += f" but {', '.join(explained)}, explained"
        print(f"{' '.join((*case.options, *case.words))}: {problem or outcome}", flush=True)
    runs = len(CASES)
    for command, problem in find_problems_of_page(pythons["driver"]):
        print(f"{PAGE.name}, {command}: {problem or 'as shown'}", flush=True)
        runs, problems = runs + 1, problems + bool(problem)
    for entry in read_accepted():
        if not any(entry["code"] == code and fnmatchcase(kernel, entry["kernel"]) for code, kernel in seen):
            print(f"{ACCEPTED.name}: {entry['code']} in {entry['kernel']} was not found: remove it")
            problems += 1
    print(f"{runs} runs, {problems} with another outcome")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
