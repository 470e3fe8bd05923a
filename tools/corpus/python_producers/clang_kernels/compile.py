"""Compile every C file to PTX with the clang that the ziglang wheel carries.

Run by `tools.corpus.python_producers.build`, inside the environment of ziglang.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

from tools.corpus.manifest import File, Manifest, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.clang_kernels.cases import UNITS, Unit

HERE = Path(__file__).parent
RECIPE = "tools.corpus.python_producers.build clang"
CLANG = (sys.executable, "-m", "ziglang", "clang")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    banner = subprocess.run([*CLANG, "--version"], check=True, capture_output=True, text=True).stdout
    number = re.search(r"clang version (\S+)", banner)
    version = f"{number[1] if number else 'unknown'} (ziglang {record.installed('ziglang')})"
    save(Manifest("clang", RECIPE, tuple(compile_unit(unit, version, arguments.out) for unit in UNITS)), arguments.out)


def compile_unit(unit: Unit, version: str, out: Path) -> File:
    """Compile one C file and write its PTX."""
    flags = ["--target=nvptx64-nvidia-cuda", "-std=gnu23", *unit.flags]
    flags += ["-Xclang", "-target-cpu", "-Xclang", unit.target, "-Xclang", "-target-feature", "-Xclang", "+ptx88"]
    # Compiled under its bare name, so that the debugging information holds no directory.
    names = [f"-ffile-prefix-map={HERE}=.", "-fdebug-compilation-dir=.", f"{unit.source}.c", "-o", "-"]
    command = [*CLANG, *flags, "-S", "-x", "c", *names]
    text = subprocess.run(command, check=True, capture_output=True, cwd=HERE).stdout
    source = str(HERE / f"{unit.source}.c")
    return record.write(out, unit.source + unit.suffix, text, unit.kernels, version=version, flags=flags, source=source)


if __name__ == "__main__":
    main()
