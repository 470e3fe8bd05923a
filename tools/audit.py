"""Runs every audit in full and stores its output in docs/audits, with the versions of the tools, the commit, and the
number of files, rows or patterns covered, which `make test` compares with the tree.

python -m tools.audit [NAME ...]        for example: python -m tools.audit spellings mutants
"""

from __future__ import annotations

import argparse
import datetime
import platform
import subprocess
import sys
import time
from pathlib import Path

from examples.parts.example import list_paths
from pyptx.driver.calls import ENTRIES
from pyptx.isa import table
from pyptx.toolchain import find_tool

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "audits"
ARGUMENTS = {
    "spellings": [[], ["--below"]],
    "mutants": [["--show", "1000"]],
    "sim_patterns": [[], ["--kernels"]],
    "transpile": [["--spellings", "20000"]],
    "numerics": [["1100"]],
    "mutation": [["--survivor-budget", "300"]],
}
"""The arguments of each run, for audits that run with arguments or more than once."""


COVERAGE = {
    "files of the corpus": (
        "corruptions", "hazards", "images", "lossless", "sass", "sim_patterns", "sugar", "transpile",
    ),
    "rows of the table": (
        "availability", "conformance", "coverage", "folding", "hardware", "lowering", "mutants", "spellings",
        "transpile", "wrappers",
    ),
    "patterns": ("sim_patterns",),
    "example kernels": ("examples", "gpu", "lines"),
    "functions of the driver": ("arguments",),
}  # fmt: skip
"""What is counted, and the audits that cover all of it."""
OUTDATED: dict[str, str] = {}
"""Pages that are missing, whose counts differ from the tree, or whose commit is not in its history, with the reason."""


def counts() -> dict[str, int]:
    """Return how much of each kind the tree has."""
    return {
        "files of the corpus": len(list((ROOT / "tests" / "corpus").rglob("*.ptx"))),
        "rows of the table": len(table.list_all_rows()),
        "patterns": len(list((ROOT / "tests" / "sim" / "patterns" / "ptx").glob("*.ptx"))),
        "example kernels": len(list_paths()),
        "functions of the driver": len(ENTRIES),
    }


def describe_coverage(name: str) -> str:
    """Return the counts for an audit's page."""
    values = counts()
    return ", ".join(f"{values[noun]} {noun}" for noun, names in COVERAGE.items() if name in names)


def commit() -> str:
    """Return the commit that is checked out, with a `+` if the tree has been changed."""
    git = ["git", "-C", str(ROOT)]
    try:
        revision = subprocess.run([*git, "rev-parse", "--short=9", "HEAD"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    diff = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "pyptx", "tests", "tools"], check=False)
    return revision.stdout.strip() + ("+" if diff.returncode else "")


def header(name: str) -> list[str]:
    """Return the first lines of an audit's page."""
    day = datetime.date.today().isoformat()
    lines = [f"{find_tool('ptxas')}, Python {platform.python_version()}, {day}, commit {commit()}"]
    description = describe_coverage(name)
    return [*lines, f"covers {description}"] if description else lines


def audits() -> dict[str, str]:
    """Return the audits by name, with the modules to run."""
    paths = sorted([*(ROOT / "tools").glob("audit_*.py"), *(ROOT / "tools").glob("*/audit_*.py")])
    special_audits = {
        "lossless": "tests.lossless", "conformance": "tools.conformance",
        "hardware": "tools.conformance.digests", "folding": "tools.conformance.folding",
        "headers": "tools.conformance.folding_headers", "sim_patterns": "tools.sim_patterns",
        "numerics": "tools.sim_numerics", "mutation": "tools.mutate",
    }  # fmt: skip
    return special_audits | {
        path.stem.removeprefix("audit_"): ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths
    }


def run(name: str, module: str) -> bool:
    """Run one audit, write its page, and return whether it passed."""
    lines, has_passed = header(name), True
    for arguments in ARGUMENTS.get(name, [[]]):
        start = time.monotonic()
        command = [sys.executable, "-m", module, *arguments]
        process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        has_passed &= process.returncode == 0
        lines += ["", f"$ python -m {module} {' '.join(arguments)}".rstrip(), process.stdout.rstrip()]
        lines += [process.stderr.rstrip()] if process.returncode and process.stderr else []
        verdict = "passed" if process.returncode == 0 else "FAILED"
        print(f"{module} {' '.join(arguments)}: {verdict}, {time.monotonic() - start:.0f} s")
        print("\n".join(process.stdout.rstrip().splitlines()[-8:]), flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return has_passed


def main(argv: list[str] | None = None) -> int:
    """Run the named audits, or all of them; exit 1 if one fails."""
    modules = audits()
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", choices=[*modules, []], metavar="NAME", help=", ".join(modules))
    names = options.parse_args(argv).names or list(modules)
    results = [run(name, modules[name]) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
