"""Finds NVIDIA's programs: in the package wheels first, then on PATH, then in CUDA_HOME or CUDA_PATH.

Looks only at files; runs a program only to get its version.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from pyptx.diagnostics import PtxError
from pyptx.toolchain import rules
from pyptx.toolchain.process import run

PACKAGES = {
    "ptxas": ("nvidia-cuda-nvcc",),
    "fatbinary": ("nvidia-cuda-nvcc",),
    "nvdisasm": ("nvidia-cuda-nvdisasm",),
    "cuobjdump": ("nvidia-cuda-cuobjdump",),
    "nvjitlink": ("nvidia-nvjitlink", "cuda-bindings"),
}
"""The packages of the `tools` extra that contain each tool."""

_OLD_WHEELS = {
    "ptxas": "cuda_nvcc",
    "fatbinary": "cuda_nvcc",
    "nvdisasm": "cuda_nvdisasm",
    "cuobjdump": "cuda_cuobjdump",
}
"""Folders of the CUDA 12 wheels, one per package; since CUDA 13 all share `nvidia/cu13`."""

INSTALL = "pip install '.[tools]'"


class ToolMissing(PtxError):
    """Raised when a required NVIDIA tool is not installed."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One program: its path and where it was found (`wheel`, `PATH`, `CUDA_HOME` or `CUDA_PATH`)."""

    name: str
    path: str
    source: str

    @property
    def version(self) -> str:
        """The version that the program reports, such as "13.5.37"."""
        return _read_version(self.path, os.stat(self.path).st_mtime_ns)

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def find_tool(name: str) -> Tool:
    """Return the first `name` found in the package wheels, PATH, CUDA_HOME or CUDA_PATH; ToolMissing if there is
    none."""
    for tool in _list_candidates(name):
        if os.path.isfile(tool.path) and os.access(tool.path, os.X_OK):
            return tool
    raise report_missing(name)


def report_missing(
    name: str, *, why: str = "not in the package wheels, on PATH, in CUDA_HOME or in CUDA_PATH"
) -> ToolMissing:
    """Return the error that says which package to install."""
    packages = " ".join(PACKAGES.get(name, ()))
    remedy = f"{INSTALL}, or pip install {packages}" if packages else f"known tools: {', '.join(PACKAGES)}"
    return ToolMissing([rules.TOOL_MISSING.report(None, f"{name} is required but was not found: {why}", help=remedy)])


def _list_candidates(name: str) -> Iterator[Tool]:
    if not re.fullmatch(r"[a-z0-9_+-]+", name):
        return
    for folder in _list_wheel_folders(name):
        yield Tool(name, os.path.join(folder, name), "wheel")
    if on_path := shutil.which(name):
        yield Tool(name, os.path.abspath(on_path), "PATH")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            yield Tool(name, os.path.join(os.path.abspath(root), "bin", name), variable)


def _list_wheel_folders(name: str) -> Iterator[str]:
    """Yield the `bin` folders of NVIDIA's wheels, newest toolkit first. `find_spec` of a namespace package imports
    nothing and covers every site-packages folder on the path."""
    spec = find_spec("nvidia")
    for root in spec.submodule_search_locations or () if spec else ():
        toolkits = [(int(p.name[2:]), p) for p in Path(root).glob("cu*") if p.name[2:].isdigit()]
        for _, toolkit in sorted(toolkits, reverse=True):
            yield str(toolkit / "bin")
        if name in _OLD_WHEELS:
            yield os.path.join(root, _OLD_WHEELS[name], "bin")


@lru_cache(maxsize=64)
def _read_version(path: str, timestamp: int) -> str:
    """Return the version. `changed`, the file's time, makes an upgraded tool a new cache key."""
    run_result = run([path, "--version"], timeout=60)
    match = re.search(r"\bV(\d+\.\d+\.\d+)", run_result.output)
    return match[1] if match else "unknown"


def supported_targets() -> tuple[str, ...]:
    """Return the targets that the installed ptxas supports (`sm_75`, … `sm_121f`), from its help: `--list-arch` omits
    those with a suffix."""
    tool = find_tool("ptxas")
    return _read_targets(tool.path, os.stat(tool.path).st_mtime_ns)


@lru_cache(maxsize=8)
def _read_targets(path: str, timestamp: int) -> tuple[str, ...]:
    run_result = run([path, "--help"], timeout=60)
    names = dict.fromkeys(re.findall(r"'(sm_\d+[af]?)'", run_result.output))
    if not names:
        raise run_result.make_useless_error("list of targets")
    return tuple(sorted(names, key=lambda name: (int(name[3:].rstrip("af")), name)))
