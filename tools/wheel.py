"""Builds a wheel with the libraries of the simulated driver, so that nobody who installs it needs a compiler.

python -m tools.wheel [dist]

Clang of the package `ziglang` links the libraries to an old glibc; all libraries in the wheel are searched for symbols
of newer ones.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import ziglang

from pyptx.driver.library import build_all

ROOT = Path(__file__).parent.parent
GLIBC = (2, 17)
"""The oldest glibc that the libraries run with: that of manylinux2014."""
EXTENSIONS = "_launch", "_xla_handler"
"""What an installation from source leaves out where there is no compiler."""
_SYMBOL_VERSION = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def build_wheel(target: Path) -> Path:
    """Build the wheel in a folder and return it. Leaves nothing in the source tree."""
    version, machine = ".".join(map(str, GLIBC)), platform.machine()
    zig = Path(ziglang.__file__).with_name("zig")
    compiler = [str(zig), "cc", "-target", f"{machine}-linux-gnu.{version}"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_all(folder / "prebuilt", compiler)
        settings = folder / "settings.cfg"
        tag = f"manylinux_{version.replace('.', '_')}_{machine}"
        settings.write_text(f"[build]\nbuild_base = {folder / 'build'}\n[bdist_wheel]\nplat_name = {tag}\n", "utf-8")
        environment = {**os.environ, "PYPTX_PREBUILT": str(folder / "prebuilt"), "DIST_EXTRA_CONFIG": str(settings)}
        # Not Python's own flags, which name places on this machine.
        environment |= {"CC": " ".join(compiler), "LDSHARED": " ".join([*compiler, "-shared"])}
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", str(folder / "wheel"), str(ROOT)], env=environment, check=True)
        (wheel,) = (folder / "wheel").iterdir()
        for extension in EXTENSIONS:
            if not any(extension in member for member in ZipFile(wheel).namelist()):
                raise RuntimeError(f"the extension {extension} was not built: `pip wheel -v .` says why")
        target.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(wheel, target / wheel.name))


def find_newer_symbols(wheel: Path) -> dict[str, list[str]]:
    """Return the libraries in a wheel that need a newer glibc, with the versions of its symbols."""
    newer: dict[str, list[str]] = {}
    with ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in name:
                versions = {(int(major), int(minor)) for major, minor in _SYMBOL_VERSION.findall(archive.read(name))}
                if max(versions, default=GLIBC) > GLIBC:
                    newer[name] = [f"GLIBC_{major}.{minor}" for major, minor in sorted(versions)]
    return newer


def main(argv: Sequence[str] | None = None) -> int:
    """Build the wheel and print its path and its libraries."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("target", type=Path, nargs="?", default=ROOT / "dist", help="the folder for the wheel")
    wheel = build_wheel(options.parse_args(argv).target)
    newer = find_newer_symbols(wheel)
    for name, versions in newer.items():
        print(f"{name} needs {', '.join(versions)}, newer than {GLIBC}", file=sys.stderr)
    print(wheel)
    return 1 if newer else 0


if __name__ == "__main__":
    sys.exit(main())
