"""Puts the libraries that `make wheel` has built into the wheel. Other installations build them at first use.

Two extensions are built where there is a C compiler: for fast launches, and the handler that launches kernels for JAX
on GPUs, which uses no Python. So a wheel is for the Python that built it."""

from __future__ import annotations

import os
from pathlib import Path
from shutil import copytree

from setuptools import Extension, setup
from setuptools.command.build_py import build_py


class BuildPackage(build_py):
    """Copies the package, and the libraries if there are some."""

    def run(self) -> None:
        super().run()
        libraries = os.environ.get("PYPTX_PREBUILT")
        if libraries and not self.editable_mode:
            copytree(libraries, Path(self.build_lib) / "pyptx" / "driver" / "prebuilt")


HANDLER = Extension(
    "pyptx.runtime._xla_handler",
    ["pyptx/runtime/csrc/xla_handler.c"],
    extra_compile_args=["-g0"],
    py_limited_api=True,
    optional=True,
)

LAUNCHES = Extension(
    "pyptx.runtime._launch", ["pyptx/runtime/csrc/launch.c"], extra_compile_args=["-g0"], optional=True
)

setup(cmdclass={"build_py": BuildPackage}, ext_modules=[HANDLER, LAUNCHES])
