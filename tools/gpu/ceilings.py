"""What the GPU itself can do, measured through PyTorch in the same run as the kernels: a copy, and a large product."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from examples.parts.bench import capture, make_copy
from examples.parts.torch_inputs import find_device
from pyptx import driver
from pyptx.benchmark import measure
from tools.gpu.clocks import Sampler

COPY_BYTES, SIDE = 8 << 30, 8192
PACKAGES = ("torch", "triton", "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cuda-runtime", "cuda-bindings")


def measure_ceilings() -> dict[str, Any]:
    """Return the rates, the clocks during them, and what versions of the libraries they belong to."""
    torch: Any = import_module("torch")
    is_simulated = driver.is_active()
    side, count = (64, 1 << 16) if is_simulated else (SIDE, COPY_BYTES)
    options: dict[str, Any] = {"stream": 0 if is_simulated else torch.cuda.current_stream()}
    copies = dict[str, float]()
    for part in (count // 8, count):
        for kind, work in (
            ("copy", make_copy(part)),
            ("graph", capture(make_copy(part))),
            ("kernel", make_negation(part)),
        ):
            times = measure(work, runs=1 if is_simulated else 15, **options)
            if not is_simulated:
                copies[f"copy_gigabytes_per_second_{part >> 20}_MiB_{kind}"] = times.gigabytes(part)
    a, b = (torch.randn(side, side, device=find_device()).bfloat16() for _ in range(2))
    with Sampler() as sampler:
        product = measure(
            capture(lambda: a @ b.T), runs=1 if is_simulated else 150, warmup=1 if is_simulated else 50, **options
        )
    result: dict[str, Any] = {"versions": list_versions()}
    if not is_simulated:
        result |= {
            **copies,
            "copy_gigabytes_per_second": max(copies.values()),
            f"cublas_bf16_{side}_tflops": product.teraflops(2 * side**3),
            "cudnn": torch.backends.cudnn.version(),
            "cuda": torch.version.cuda,
            **sampler.summarize(),
        }
    return result


def make_negation(count: int) -> Callable[[], object]:
    """Return a function that moves as many bytes by a kernel of PyTorch."""
    torch: Any = import_module("torch")
    source, target = (torch.ones(count // 8, device=find_device()) for _ in range(2))
    return lambda: torch.neg(source, out=target)


def list_versions() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    versions = dict[str, str]()
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions
