"""Compilers by version: their wheels, and where they are installed in a recipe's cache directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COMPILERS: dict[str, tuple[str, ...]] = {
    "nvcc-13.0.88": (
        "nvidia-cuda-nvcc==13.0.88",
        "nvidia-nvvm==13.0.88",
        "nvidia-cuda-crt==13.0.88",
        "nvidia-cuda-runtime==13.0.96",
        "nvidia-cuda-cccl==13.0.85",
    ),
    "nvcc-13.1.115": (
        "nvidia-cuda-nvcc==13.1.115",
        "nvidia-nvvm==13.1.115",
        "nvidia-cuda-crt==13.1.115",
        "nvidia-cuda-runtime==13.1.80",
        "nvidia-cuda-cccl==13.1.115",
    ),
    "nvcc-13.3.73": (
        "nvidia-cuda-nvcc==13.3.73",
        "nvidia-nvvm==13.3.73",
        "nvidia-cuda-crt==13.3.73",
        "nvidia-cuda-runtime==13.3.29",
        "nvidia-cuda-cccl==13.3.3.3.1",
    ),
    "nvcc-13.5.37": (
        "nvidia-cuda-nvcc==13.5.37",
        "nvidia-nvvm==13.5.37",
        "nvidia-cuda-crt==13.5.37",
        "nvidia-cuda-runtime==13.5.37",
        "nvidia-cuda-cccl==13.3.5.0.6",
    ),
    "nvrtc-12.0.140": ("nvidia-cuda-nvrtc-cu12==12.0.140", "nvidia-cuda-runtime-cu12==12.0.146"),
    "nvrtc-12.4.127": ("nvidia-cuda-nvrtc-cu12==12.4.127", "nvidia-cuda-runtime-cu12==12.4.127"),
    "nvrtc-12.6.85": ("nvidia-cuda-nvrtc-cu12==12.6.85", "nvidia-cuda-runtime-cu12==12.6.77"),
    "nvrtc-12.8.93": ("nvidia-cuda-nvrtc-cu12==12.8.93", "nvidia-cuda-runtime-cu12==12.8.90"),
    "nvrtc-12.9.86": ("nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79"),
    "nvrtc-13.4.92": (
        "nvidia-cuda-nvrtc==13.4.92",
        "nvidia-cuda-crt==13.4.92",
        "nvidia-cuda-runtime==13.4.92",
    ),
    "runtime-12.9.79": ("nvidia-cuda-runtime-cu12==12.9.79", "nvidia-cuda-nvcc-cu12==12.9.86"),
    "cutlass-4.2.0.0": ("nvidia-cutlass==4.2.0.0",),
}


def install(compiler: str, cache: Path) -> Path:
    """Install one compiler's wheels below the cache once; return the directory that contains `nvidia/`."""
    directory = cache / compiler
    if not directory.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(directory)]
        subprocess.run([*command, *COMPILERS[compiler]], check=True)
    return directory


def headers(directory: Path) -> list[str]:
    """Return the include directories of an installed compiler; wheels of CUDA 12 and 13 differ in layout."""
    directories = [path for path in sorted(directory.glob("nvidia/*/include")) if any(path.iterdir())]
    return [str(path) for path in directories] + [
        str(path / "cccl") for path in directories if (path / "cccl").exists()
    ]
