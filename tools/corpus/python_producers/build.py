"""Regenerate the PTX of one Python producer: its environment, its compilation, and ptxas as the judge of every file.

`python -m tools.corpus.python_producers.build triton --cache DIR [--ptxas PTXAS]`
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.corpus.manifest import CORPUS, Manifest, load, problems
from tools.corpus.python_producers.signatures import mismatches

ROOT = Path(__file__).parents[3]
HERE = "tools.corpus.python_producers"


@dataclass(frozen=True)
class Producer:
    """What is installed for a producer, which module compiles, and the environment it compiles in."""

    packages: tuple[str, ...]
    module: str
    environment: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()
    venv: str | None = None


JAX = (
    ("JAX_PLATFORMS", "cpu"),
    ("XLA_FLAGS", "--xla_dump_to=dumps --xla_gpu_autotune_level=0"),
    ("MOSAIC_GPU_DUMP_PTX", "1"),
    ("MOSAIC_GPU_DUMP_TO", "mosaic"),
)
JAX_PACKAGES = ("jax[cuda13]==0.10.2", "absl-py==2.5.1")

PRODUCERS = {
    "halide": Producer(("halide==21.0.0", "numpy==2.4.6"), f"{HERE}.halide_kernels.compile"),
    "zig": Producer(("ziglang==0.17.0",), f"{HERE}.zig_kernels.compile"),
    "mojo": Producer(("mojo==1.2.0", "max==26.7.0"), f"{HERE}.mojo_kernels.compile"),
    "llvm": Producer(("llvmlite==0.50.0",), f"{HERE}.llvm_kernels.compile"),
    "clang": Producer(("ziglang==0.17.0",), f"{HERE}.clang_kernels.compile", venv="zig"),
    "xla": Producer(JAX_PACKAGES, f"{HERE}.jax_kernels.compile", JAX, ("--producer", "xla"), "jax"),
    "pallas": Producer(JAX_PACKAGES, f"{HERE}.jax_kernels.compile", JAX, ("--producer", "pallas"), "jax"),
    "cutedsl": Producer(
        ("nvidia-cutlass-dsl==4.8.1",), f"{HERE}.cutedsl_kernels.compile", (("CUTE_DSL_KEEP_PTX", "1"),)
    ),
    "warp": Producer(("warp-lang==1.19.0", "numpy==2.4.6"), f"{HERE}.warp_kernels.compile"),
    "numba": Producer(("numba-cuda[cu13]==0.30.4", "numba==0.68.1", "numpy==2.4.6"), f"{HERE}.numba_kernels.compile"),
    "triton": Producer(
        ("triton==3.9.0", "numpy==2.4.6"), f"{HERE}.triton_kernels.compile", (("TRITON_DEFAULT_FP_FUSION", "1"),)
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("producer", choices=sorted(PRODUCERS))
    parser.add_argument("--cache", type=Path, required=True, help="where the environments are made")
    parser.add_argument("--ptxas", default=shutil.which("ptxas"), help="the newest ptxas (default: on PATH)")
    arguments = parser.parse_args()
    if arguments.ptxas is None:
        parser.error("no ptxas on PATH; install nvidia-cuda-nvcc and give its bin/ptxas with --ptxas")
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch)
        compile_all(arguments.producer, arguments.cache, out)
        manifest = load(out)
        failures = [*problems(manifest, out), *find_rejections(manifest, out, arguments.ptxas)]
        if failures:
            sys.exit("\n".join(failures))
        replace(CORPUS / arguments.producer, out)
    entries = [entry for file in manifest.files for entry in file.entries]
    runnable = sum(entry.run is not None for entry in entries)
    size = sum((CORPUS / arguments.producer / file.path).stat().st_size for file in manifest.files)
    print(
        f"{arguments.producer}: {len(manifest.files)} files, {len(entries)} entries, {runnable} runnable, {size} bytes"
    )


def replace(target: Path, source: Path) -> None:
    """Put a complete new directory in the place of the old files."""
    target.mkdir(exist_ok=True)
    for old in [*target.glob("*.ptx"), *target.glob("manifest.json")]:
        old.unlink()
    for new in sorted(source.iterdir()):
        shutil.copyfile(new, target / new.name)


def compile_all(name: str, cache: Path, out: Path) -> None:
    """Install a producer's packages once and run its compile module there."""
    producer = PRODUCERS[name]
    python = install(cache / (producer.venv or name), producer.packages)
    environment = (
        os.environ
        | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
        | dict(producer.environment)
    )
    with tempfile.TemporaryDirectory() as scratch:
        # Some producers leave their own dumps in the working directory.
        command = [str(python), "-m", producer.module, "--out", str(out), *producer.options]
        subprocess.run(command, check=True, env=environment, cwd=scratch)


def install(directory: Path, packages: Sequence[str]) -> Path:
    """Return the Python of a virtual environment; create it with its packages if it does not exist."""
    python = directory.resolve() / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
    return python


def find_rejections(manifest: Manifest, out: Path, ptxas: str) -> Iterator[str]:
    """The files whose entries take other parameters, or that ptxas does not assemble, with its first message."""
    for file in manifest.files:
        # Warp writes the NUL that ends the string it hands to the driver; ptxas takes no NUL.
        text = (out / file.path).read_bytes().removesuffix(b"\0")
        yield from (f"{file.path}: {problem}" for problem in mismatches(text, file.entries))
        with tempfile.NamedTemporaryFile(suffix=".ptx") as copy:
            copy.write(text)
            copy.flush()
            command = [ptxas, "-arch", file.target, copy.name, "-o", "/dev/null"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            yield f"{file.path}: {(result.stderr or result.stdout).splitlines()[0]}"


if __name__ == "__main__":
    main()
