"""Regenerates `tests/corpus/nvrtc`: compiles every `//! build nvrtc` line of `cuda/*.cu` with its version's NVRTC."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
from pathlib import Path

from tools.corpus.manifest import CORPUS, File, Manifest, save
from tools.corpus.nvcc import ROOT, file_name, record, relative
from tools.corpus.packages import headers, install
from tools.corpus.source import Build, Source, read


def main() -> None:
    """Build what `--only` names (a part of the source's name), or everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    cache = options.cache.resolve()
    directory = CORPUS / "nvrtc"
    directory.mkdir(parents=True, exist_ok=True)
    files: list[File] = []
    for source in (read(path) for path in sorted((ROOT / "cuda").glob("*.cu"))):
        for build in (build for build in source.builds if build.producer == "nvrtc"):
            path = directory / file_name(source, build)
            if options.only in source.path.name or not path.exists():
                path.write_bytes(relative(compile_ptx(source, build, cache), cache))
            files.append(record(source, build, path))
    save(Manifest("nvrtc", "tools.corpus.nvrtc", tuple(files)), directory)
    for path in set(directory.glob("*.ptx")) - {directory / item.path for item in files}:
        path.unlink()


def compile_ptx(source: Source, build: Build, cache: Path) -> bytes:
    """Compile one source to PTX, without the terminator of NVRTC's C string."""
    directory = install(f"nvrtc-{build.version}", cache)
    library = ctypes.CDLL(str(next(directory.glob("nvidia/*/lib/libnvrtc.so.*"))))
    program = ctypes.c_void_p()
    text = source.path.read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), text, source.path.name.encode(), 0, None, None)
    architecture = f"--gpu-architecture={build.target.replace('sm_', 'compute_')}"
    options = [architecture, "-std=c++17", *build.flags, *(f"-I{path}" for path in headers(directory))]
    c_options = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    with contextlib.chdir("/"):  # debug information contains the working directory
        status = library.nvrtcCompileProgram(program, len(options), c_options)
    if status != 0:
        raise RuntimeError(f"{source.path.name}: {_text(library, 'ProgramLog', program).decode(errors='replace')}")
    return _text(library, "PTX", program)


def _text(library: ctypes.CDLL, item: str, program: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{item}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{item}")(program, buffer)
    return buffer.value


if __name__ == "__main__":
    main()
