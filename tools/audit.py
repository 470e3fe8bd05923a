"""Runs every audit whole and keeps what it printed in docs/audits, with the versions of the tools it was run with.

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

from pyptx.toolchain import find_tool

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "audits"
ARGUMENTS = {
    "spellings": [[], ["--below"]],
    "mutants": [["--show", "1000"]],
    "sim_patterns": [[], ["--kernels"]],
    "transpile": [["--spellings", "20000"]],
    "numerics": [["1100"]],
}
"""Audits that do not run once without arguments: the arguments of each run."""


def audits() -> dict[str, str]:
    """Return the audits by name, with the module to run."""
    found = sorted([*(ROOT / "tools").glob("audit_*.py"), *(ROOT / "tools").glob("*/audit_*.py")])
    others = {
        "lossless": "tests.lossless", "conformance": "tools.conformance", "folding": "tools.conformance.folding",
        "headers": "tools.conformance.folding_headers", "sim_patterns": "tools.sim_patterns",
        "numerics": "tools.sim_numerics", "mutation": "tools.mutate",
    }  # fmt: skip
    return others | {
        path.stem.removeprefix("audit_"): ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found
    }


def run(name: str, module: str) -> bool:
    """Run one audit, write its page, and tell whether it passed."""
    lines = [f"{find_tool('ptxas')}, Python {platform.python_version()}, {datetime.date.today().isoformat()}"]
    passed = True
    for arguments in ARGUMENTS.get(name, [[]]):
        started = time.monotonic()
        command = [sys.executable, "-m", module, *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        passed &= done.returncode == 0
        lines += ["", f"$ python -m {module} {' '.join(arguments)}".rstrip(), done.stdout.rstrip()]
        lines += [done.stderr.rstrip()] if done.returncode and done.stderr else []
        verdict = "passed" if done.returncode == 0 else "FAILED"
        print(f"{module} {' '.join(arguments)}: {verdict}, {time.monotonic() - started:.0f} s")
        print("\n".join(done.stdout.rstrip().splitlines()[-8:]), flush=True)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / f"{name}.txt").write_text("\n".join(lines) + "\n", "utf-8")
    return passed


def main(argv: list[str] | None = None) -> int:
    """Run the audits named, or all of them; exit 1 when one fails."""
    known = audits()
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", choices=[*known, []], metavar="NAME", help=", ".join(known))
    names = options.parse_args(argv).names or list(known)
    results = [run(name, known[name]) for name in names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
