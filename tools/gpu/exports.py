"""Checks of exported kernels: loaded in Python, and launched by a program in C, they compute what the kernels do."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Sequence
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from examples.parts.example import Array, find_example
from pyptx import load_kernel
from pyptx.driver.build import find_compiler
from pyptx.driver.launcher import make_environment
from pyptx.driver.library import find_library
from pyptx.driver.settings import Settings
from pyptx.runtime.bindings import load_api
from pyptx.toolchain import find_tool
from pyptx.types import from_name
from tools.gpu.checks import Machine, check
from tools.gpu.kernels import choose_target
from tools.gpu.launches import copy_to_device

EXPORTED = ("any/softmax", "ampere/pipelined_gemm", "hopper/cluster_gemm")
"""Kernels with plain pointers, with much shared memory, and with tensor maps and clusters."""
MAIN = """\
#include "{name}.h"
#include <stdio.h>
#include <stdlib.h>

static void check(CUresult result)
{{
    if (result != CUDA_SUCCESS) {{
        fprintf(stderr, "error %d of the driver\\n", (int)result);
        exit(1);
    }}
}}

int main(void)
{{
    static const size_t sizes[] = {{{sizes}}};
    CUdevice device; CUcontext context; CUdeviceptr p[{count}]; {name}_kernel kernel;
    check(cuInit(0));
    check(cuDeviceGet(&device, 0));
    check(cuDevicePrimaryCtxRetain(&context, device));
    check(cuCtxSetCurrent(context));
    check({name}_load(&kernel));
    for (int i = 0; i < {count}; i++) {{
        char *buffer = malloc(sizes[i]);
        check(cuMemAlloc(&p[i], sizes[i]));
        if (i < {inputs} && fread(buffer, 1, sizes[i], stdin) != sizes[i])
            return 2;
        if (i < {inputs})
            check(cuMemcpyHtoD(p[i], buffer, sizes[i]));
    }}
    check({name}_launch(&kernel, NULL, {pointers}));
    for (int i = {inputs}; i < {count}; i++) {{
        char *buffer = malloc(sizes[i]);
        check(cuMemcpyDtoH(buffer, p[i], sizes[i]));
        fwrite(buffer, 1, sizes[i], stdout);
    }}
    check({name}_unload(&kernel));
    return 0;
}}
"""
"""A program that reads the inputs and writes the outputs."""
Compute = Callable[[Path, Sequence[Array]], bytes]


@check("kernels exported and loaded again, against the kernels: on a GPU the machine code, simulated the PTX")
def exported_kernels(machine: Machine) -> str:
    """Compare the outputs of exported kernels with those of the kernels."""
    return compare(machine, lambda folder, inputs: call_on_device(load_kernel(folder), inputs))


@check("kernels exported and launched by a program in C, against the kernels: on a GPU the machine code, simulated the "
       "PTX in the fatbin")  # fmt: skip
def exported_launchers(machine: Machine) -> str:
    """Compare the outputs of programs in C with those of the kernels."""
    return compare(machine, lambda folder, inputs: run_in_c(machine, folder, inputs))


def compare(machine: Machine, compute: Compute) -> str:
    """Compare the bytes that exported kernels compute with those of the kernels."""
    examples = [example for example in map(find_example, EXPORTED) if choose_target(example, machine.target)]
    for example in examples:
        kernel, run = example.make(choose_target(example, machine.target)), example.runs[0]
        inputs = example.draw_inputs(run)
        with TemporaryDirectory() as folder:
            kernel.export(folder, **run.shape)
            if compute(Path(folder), inputs) != call_on_device(kernel, inputs):
                raise AssertionError(f"{example.name} {run}: the outputs differ")
    return f"{len(examples)} kernels"


def call_on_device(kernel: Callable[..., Any], inputs: Sequence[Array]) -> bytes:
    """Return the output of a call on copies of arrays in device memory."""
    return kernel(*(copy_to_device(array, 0) for array in inputs)).to_numpy().tobytes()


def run_in_c(machine: Machine, folder: Path, inputs: Sequence[Array]) -> bytes:
    """Return the outputs of a program that launches an exported kernel."""
    manifest = load_kernel(folder).manifest
    name, tensors = manifest["kernel"], manifest["tensors"]
    sizes = [prod(tensor["shape"]) * from_name(tensor["type"]).bits // 8 for tensor in tensors]
    pointers = ", ".join(f"p[{index}]" for index in range(len(sizes)))
    program = MAIN.format(
        name=name, sizes=", ".join(map(str, sizes)), count=len(sizes), inputs=len(inputs), pointers=pointers
    )
    (folder / "main.c").write_text(program, "ascii")
    library = find_library() if machine.is_simulated else find_driver()
    words = [f"-I{Path(find_tool('ptxas').path).parents[1] / 'include'}", f"-Wl,-rpath,{library.parent}"]
    run_command([*find_compiler(), "main.c", f"{name}.c", *words, "-o", "main", str(library)], folder)
    environment = make_environment(Settings(machine.device, from_images=True)) if machine.is_simulated else {}
    return run_command(["./main"], folder, b"".join(array.tobytes() for array in inputs), {**os.environ, **environment})


def find_driver() -> Path:
    """Return the path of the driver's library in this process."""
    load_api()
    maps = Path("/proc/self/maps").read_text("utf-8")
    return Path(re.findall(r"/\S*/libcuda\.so\S*", maps)[0])


def run_command(
    words: Sequence[str], folder: Path, data: bytes = b"", environment: dict[str, str] | None = None
) -> bytes:
    """Return what a command prints. AssertionError if it fails."""
    process = subprocess.run(words, cwd=folder, input=data, env=environment, capture_output=True, check=False)
    if process.returncode:
        raise AssertionError(f"{' '.join(words)}: exit status {process.returncode}\n{process.stderr.decode()}")
    return process.stdout
