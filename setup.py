"""Puts the libraries that `make wheel` has built into the wheel. Other installations build them at first use."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copytree

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildPackage(build_py):
    """Copies the package, and the libraries if there are some."""

    def run(self) -> None:
        super().run()
        libraries = os.environ.get("PYPTX_PREBUILT")
        if libraries and not self.editable_mode:
            copytree(libraries, Path(self.build_lib) / "pyptx" / "driver" / "prebuilt")


setup(cmdclass={"build_py": BuildPackage})
