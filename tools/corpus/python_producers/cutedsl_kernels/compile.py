"""Compile every case with the CuTe DSL without launching it; `--gpu-arch` names the target.

Run by `tools.corpus.python_producers.build`, inside the environment of nvidia-cutlass-dsl.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_compact_tensor

from tools.corpus.manifest import Array, Entry, Field, File, Manifest, Run, Scalar, Struct, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.cutedsl_kernels.cases import CASES, Case

RECIPE = "tools.corpus.python_producers.build cutedsl"
TYPES = {
    "float16": cutlass.Float16, "bfloat16": cutlass.BFloat16, "float32": cutlass.Float32, "float64": cutlass.Float64,
    "float8_e4m3fn": cutlass.Float8E4M3FN, "int32": cutlass.Int32, "uint32": cutlass.Uint32, "int8": cutlass.Int8,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    save(Manifest("cutedsl", RECIPE, tuple(compile_case(case, arguments.out) for case in CASES)), arguments.out)


def compile_case(case: Case, out: Path) -> File:
    """Compile one case and write its file."""
    tensors = [_operand(argument) for argument in case.arguments if isinstance(argument, Array | Scalar)]
    kernel_binary = cute.compile(case.host or _host(case), *tensors, options=f"--gpu-arch={case.target}")
    row = Entry("", case.algorithm, _run(case), case.reason)
    flags = [f"--gpu-arch={case.target}"]
    text = kernel_binary.__ptx__.encode()
    return record.write(
        out, case.stem, text, {"": row}, version=record.installed("nvidia-cutlass-dsl"), flags=flags, source=case.source
    )


def _operand(argument: Array | Scalar) -> Any:
    kind = TYPES[argument.dtype]
    if isinstance(argument, Scalar):
        return kind(argument.value)
    order = tuple(range(len(argument.shape) - 1, -1, -1))
    return make_fake_compact_tensor(kind, argument.shape, stride_order=order, assumed_align=16)


def _host(case: Case) -> Any:
    def host(*tensors: Any) -> None:
        cluster = list(case.cluster) if case.cluster != (1, 1, 1) else None
        case.kernel(*tensors).launch(
            grid=list(record.dim3(case.grid)), block=list(record.dim3(case.block)), cluster=cluster
        )

    return cute.jit(host)


def _run(case: Case) -> Run | None:
    if case.reason is not None:
        return None
    maps = {item.array: item for item in case.maps}
    # A tensor that the host turned into a tensor map is memory without a parameter; its map is the parameter.
    launch_arguments: list[Any] = []
    indirect_arguments: list[Any] = []
    for argument in case.arguments:
        if argument.name in maps:
            indirect_arguments.append(
                record.array(argument.name, argument.dtype, *argument.shape, init=argument.init, hidden=True)
            )
            launch_arguments.append(maps[argument.name])
        else:
            launch_arguments.append(argument)
    if case.mma_bytes:
        zeros = tuple(
            Field(position, record.scalar(f"mma.{position}", "uint8", 0)) for position in range(case.mma_bytes)
        )
        launch_arguments.append(Struct("mma", case.mma_bytes, zeros))
    return record.launch(
        case.grid,
        case.block,
        (*launch_arguments, *indirect_arguments),
        case.outputs,
        case.reference,
        smem=case.smem,
        cluster=case.cluster,
    )


if __name__ == "__main__":
    main()
