"""Runs programs of CUDA's Python packages, unmodified, on the simulated driver: cuda.core with NVRTC, to PTX and to a
cubin, and numba-cuda. Each must compute the right result, and an access beyond the end of an array must be reported at
the line of its launch.

python -m tools.audit_driver [--cache build/driver] [--python PYTHON]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.corpus.python_producers.build import PRODUCERS, install

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tools"
PACKAGES = (*PRODUCERS["numba"].packages, "ml_dtypes==0.6.0", "tqdm==4.70.1")
"""numba-cuda brings cuda-core, NVRTC and nvJitLink; the others are what the simulator needs."""
SHOWN = ("numba-cuda", "cuda-core", "cuda-bindings", "nvidia-cuda-nvrtc", "nvidia-nvjitlink")


@dataclass(frozen=True)
class Case:
    """One run: the program with its arguments, and what must be found at which line; `refusal` is what is printed if
    the driver must not load its image."""

    words: tuple[str, ...]
    code: str = ""
    launch: str = ""
    options: tuple[str, ...] = ("--from-images",)
    refusal: str = ""


_CORE, _NUMBA = "driver_programs/cuda_core_add.py", "driver_programs/numba_add.py"
CASES = (
    Case((_CORE, "ptx", "1000"), options=()),
    Case((_CORE, "ptx", "1001"), "PTX1110", "launch(stream,", options=()),
    Case((_CORE, "cubin", "1000")),
    Case((_CORE, "cubin", "1001"), "PTX1110", "launch(stream,"),
    Case((_CORE, "cubin", "1000"), options=(), refusal="run `pyptx simulate --from-images`"),
    Case(
        (_CORE, "cubin", "1000"), options=("--from-images", "--no-line-info"), refusal="this cubin holds machine code"
    ),
    Case((_NUMBA, "1000")),
    Case((_NUMBA, "1001"), "PTX1110", "add[4, 256]"),
)


def find_problem(python: Path, case: Case) -> str:
    """Run a case and return what differs from what it must do, an empty string if nothing does."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [str(python), "-m", "pyptx", "simulate", *case.options, "--report", str(report), *case.words]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, check=False)
        launches: list[Any] = json.loads(report.read_text("utf-8"))["launches"] if report.exists() else []
    if bool(process.returncode) != bool(case.code or case.refusal):
        return f"status {process.returncode}\n{process.stderr[-2000:]}"
    if case.refusal:
        return "" if case.refusal in process.stderr and not launches else process.stderr[-2000:]
    found = [(launch["place"], [item["code"] for item in launch["diagnostics"]]) for launch in launches]
    expected = [(find_place(case), [case.code] if case.code else [])]
    return "" if found == expected else f"found {found}, expected {expected}"


def find_place(case: Case) -> str:
    """Return the line of the launch, by its first words."""
    start = case.launch or next(other.launch for other in CASES if other.words[0] == case.words[0] and other.launch)
    lines = (FOLDER / case.words[0]).read_text("utf-8").splitlines()
    return f"{case.words[0]}:{next(number for number, line in enumerate(lines, 1) if line.startswith(start))}"


def list_versions(python: Path) -> str:
    """Return the versions of the packages that the programs use."""
    script = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    process = subprocess.run([python, "-c", script, *SHOWN], capture_output=True, text=True, check=True)
    return ", ".join(f"{name} {version}" for name, version in zip(SHOWN, process.stdout.split(), strict=True))


def main(argv: Sequence[str] | None = None) -> int:
    """Run every case; print one line for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cache", type=Path, default=ROOT / "build" / "driver", help="where the environment is made")
    options.add_argument("--python", type=Path, help="the Python of an environment that has the packages")
    arguments = options.parse_args(argv)
    python = arguments.python or install(arguments.cache, PACKAGES)
    print(list_versions(python))
    problems = 0
    for case in CASES:
        problem = find_problem(python, case)
        problems += bool(problem)
        expected = case.code or ("refused" if case.refusal else "no findings")
        print(f"{' '.join((*case.options, *case.words))}: {problem or expected}", flush=True)
    print(f"{len(CASES)} runs, {problems} with another outcome")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
