"""Compile every case with Triton, for targets that need not be present.

Run by `tools.corpus.python_producers.build`, inside Triton's own environment.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from tools.corpus.manifest import Argument, Array, Entry, File, Manifest, Run, Scalar, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.triton_kernels.cases import CASES, Case

HERE = Path(__file__).parent
RECIPE = "tools.corpus.python_producers.build triton"
TYPES = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5",
    "int8": "i8", "uint8": "u8", "int16": "i16", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64",
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    cases = [case for case in CASES if arguments.only in case.stem]
    files = tuple(compile_case(case, arguments.out) for case in cases)
    save(Manifest("triton", RECIPE, files), arguments.out)


def compile_case(case: Case, out: Path) -> File:
    """Compile one case and write its file."""
    kernel = case.kernel
    kernel.file_name = Path(kernel.fn.__code__.co_filename).name
    options: dict[str, Any] = {"num_warps": case.warps, "num_stages": case.stages} | case.options
    options["enable_fp_fusion"] = case.fuse
    source = _source(case)
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.disable_line_info = not case.line_info
        kernel_binary = triton.compile(source, target=GPUTarget("cuda", case.target, 32), options=options)
    text = kernel_binary.asm["ptx"].encode()
    flags = [f"{name}={value}" for name, value in options.items()]
    flags += [f"{name}={value}" for name, value in case.constants.items()]
    flags += [] if case.line_info else ["TRITON_DISABLE_LINE_INFO=1"]
    row = Entry("", case.algorithm, _run(case, text, kernel_binary.metadata), case.reason)
    source_file = kernel.fn.__code__.co_filename
    return record.write(
        out, case.stem, text, {"": row}, version=record.installed("triton"), flags=flags, source=source_file
    )


def _source(case: Case) -> Any:
    names = [parameter.name for parameter in case.kernel.params if not parameter.is_constexpr]
    types = case.types or [_type(argument) for argument in case.arguments]
    signature = dict(zip(names, types, strict=True)) | dict.fromkeys(case.constants, "constexpr")
    attributes = {}
    for index, argument in enumerate(case.arguments[: len(names)]):
        if isinstance(argument, Array) or (isinstance(argument, Scalar) and argument.value and not argument.value % 16):
            attributes[(index,)] = [["tt.divisibility", 16]]
    attributes = {} if case.types else attributes
    if hasattr(case.kernel, "is_gluon") and case.kernel.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource(case.kernel, signature, dict(case.constants), attributes)
    return ASTSource(case.kernel, signature, dict(case.constants), attributes)


def _type(argument: Argument) -> str:
    if isinstance(argument, Array):
        return "*" + TYPES[argument.dtype]
    assert isinstance(argument, Scalar)
    return TYPES[argument.dtype]


def _run(case: Case, text: bytes, metadata: Any) -> Run | None:
    if case.reason is not None:
        return None
    block = record.thread_count(text) or (case.warps * 32, 1, 1)
    scratch = metadata.global_scratch_size * case.grid[0] * (*case.grid, 1)[1]
    room: Argument = record.scalar("scratch", "uint64", 0)
    if scratch:
        room = record.array("scratch", "uint8", scratch)
    arguments = (*case.arguments, room, record.scalar("profile", "uint64", 0))
    run = record.launch(case.grid, block, arguments, case.outputs, case.reference, smem=metadata.shared)
    return replace(run, cluster=record.dim3([case.options.get("num_ctas", 1)]))


if __name__ == "__main__":
    main()
