"""Regenerates `tests/corpus/nvcc`, and `cub` and `cutlass`, which nvcc builds from those headers.

Writes one file per `//! build` line of `cuda/*.cu`.
Needs g++ (nvcc's preprocessor) and the package index; installs compilers below `--cache`.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
from pathlib import Path

from tools.corpus.manifest import CORPUS, File, Manifest, digest, read_declarations, save
from tools.corpus.packages import headers, install
from tools.corpus.source import Build, Source, read

ROOT = Path(__file__).parent
PRODUCERS = ("nvcc", "cub", "cutlass")
CUTLASS = "cutlass-4.2.0.0"
INTERNAL = re.compile(rb"(\d\d)(_(?:INTERNAL|GLOBAL__N_)_)[0-9a-f]{8}(_\d+_\w+?_cu_)[0-9a-f]{8}(\w*)")


def main() -> None:
    """Build what `--only` names (a part of the source's name), or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    sources = [read(path) for path in sorted((ROOT / "cuda").glob("*.cu"))]
    for producer in PRODUCERS:
        build_producer(producer, sources, options.cache.resolve(), options.only)


def build_producer(producer: str, sources: list[Source], cache: Path, substring: str) -> None:
    """Write one producer's files and manifest; files whose source is not in `only` stay unchanged."""
    directory = CORPUS / producer
    directory.mkdir(parents=True, exist_ok=True)
    files: list[File] = []
    for source in sources:
        for build in source.builds:
            if build.producer == producer:
                path = directory / file_name(source, build)
                if substring in source.path.name or not path.exists():
                    path.write_bytes(relative(compile_ptx(source, build, cache), cache))
                files.append(record(source, build, path))
    save(Manifest(producer, "tools.corpus.nvcc", tuple(files)), directory)
    for path in set(directory.glob("*.ptx")) - {directory / item.path for item in files}:
        path.unlink()


def file_name(source: Source, build: Build) -> str:
    """`<source>.<target>[.<label>].ptx`."""
    return ".".join(filter(None, (source.path.stem, build.target, build.label, "ptx")))


def record(source: Source, build: Build, path: Path) -> File:
    """Return the manifest's record of a file that was built."""
    data = path.read_bytes()
    target, version, names = read_declarations(data)
    notes = ["absolute paths in .file lines made relative"] if b".file" in data else []
    notes += ["hashes of paths in internal names zeroed"] if b"_INTERNAL_00000000" in data else []
    note = "; ".join(notes) or None
    relative_source = source.path.relative_to(ROOT).as_posix()
    entries = source.entries(names)
    return File(path.name, build.version, build.flags, relative_source, target, version, digest(data), entries, note)


def compile_ptx(source: Source, build: Build, cache: Path) -> bytes:
    """Run nvcc in the source's directory, so that names stay relative."""
    directory = install(f"nvcc-{build.version}", cache)
    home = next(directory.glob("nvidia/cu*"))
    includes = headers(directory)
    if build.producer == "cutlass":
        includes.append(str(install(CUTLASS, cache) / "cutlass_library" / "source" / "include"))
    output = cache / "out.ptx"
    command = [str(home / "bin" / "nvcc"), "-ptx", "-w", f"-arch={build.target}", "-std=c++17", *build.flags]
    command += [f"-I{path}" for path in includes] + ["-o", str(output), source.path.name]
    subprocess.run(command, check=True, cwd=source.path.parent, env={**os.environ, "CUDA_HOME": str(home)})
    return output.read_bytes()


def relative(ptx: bytes, cache: Path) -> bytes:
    """Remove this machine's directories from `.file` lines, and their hashes from names with internal linkage."""
    for prefix in (f"{ROOT}/cuda/", f"{cache}/"):
        ptx = ptx.replace(f'"{prefix}'.encode(), b'"')
    ptx = re.sub(rb'(\.file\s+\d+ )"/(?:[^"]*/)?([^"/]+)"', rb'\1"\2"', ptx)
    return INTERNAL.sub(_internal, ptx)


def _internal(match: re.Match[bytes]) -> bytes:
    """Zero the hashes in a length-prefixed mangled name, and remove the process number."""
    name = match[2] + b"0" * 8 + match[3] + b"0" * 8
    process = int(match[1]) - len(name)
    return str(len(name)).encode() + name + INTERNAL.sub(_internal, match[4][process:])


if __name__ == "__main__":
    main()
