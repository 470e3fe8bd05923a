"""What the driver refuses names the kernel, and what to do."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pyptx import Tile, kernel, ptx, smem
from pyptx.diagnostics import PtxError
from pyptx.dsl.lines import add_line_information, map_origins
from pyptx.emitter import emit
from pyptx.parser import parse
from pyptx.runtime import bindings, failures, modules
from pyptx.runtime.arrays import Described
from pyptx.runtime.bindings import CallError, call, in_context
from pyptx.runtime.exported import load_kernel
from pyptx.runtime.failures import make_error, make_load_error
from pyptx.runtime.launching import launch
from pyptx.runtime.planning import make_plan
from pyptx.types import f32, s32, u32
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.device_memory import DeviceMemory
from tests.runtime.test_calls import A, B, add_scaled
from tests.runtime.test_launching import plan_call

pytestmark = pytest.mark.usefixtures("implementation")


@kernel(in_specs=[Tile("n", s32)], grid=(1,), block=(32, 1, 1), raw_params=[("u32", "index")])
def store_at(x: Any) -> None:
    """x[index] = 1"""
    (pointer,) = ptx.global_ptrs(x)
    ptx.st(s32, ptx.addr(pointer, ptx.param("u32", "index") * 4), 1)


X = np.zeros(8, np.int32)


def test_a_fault_names_the_kernel_and_how_to_find_its_cause(device: DeviceMemory) -> None:
    x = device.copy(X)
    with raises(PtxError, match=r"test_failures.py:\d+: error\[PTX1004\]: `store_at` .* CUDA_ERROR_ILLEGAL_ADDRESS"):
        store_at(x, index=100_000)
    with raises(PtxError, match="an earlier launch, perhaps of another kernel"):
        store_at(x, index=0)


def test_a_deferred_fault_is_reported_by_the_next_call(activate: Activate) -> None:
    activate(order="deferred")
    x = DeviceMemory().copy(X)
    store_at(x, index=100_000)
    with in_context(0), pytest.raises(bindings.CallError, match="ILLEGAL_ADDRESS"):
        call("cuCtxSynchronize")
    with raises(PtxError, match="an earlier launch"):
        store_at(x, index=0)


@kernel(out_specs=[Tile(1, f32)])
def use_much_memory(out: Any) -> None:
    scratch = smem.alloc(f32, (40_000,))
    scratch[0] = 1.0


@kernel(out_specs=[Tile(1, f32)], cluster=(2, 1, 1))
def store_in_pairs(out: Any) -> None:
    ptx.ret()


def test_what_a_device_cannot_run_is_refused_before_the_launch(activate: Activate) -> None:
    activate("rtx4090")
    plan = plan_call(use_much_memory.for_arch("sm_80"), grid=(1,))
    with raises(PtxError, match="bytes of dynamic shared memory must not exceed"):
        launch(replace(plan, grid=(1,)), {"out": 0})
    with raises(PtxError, match="the grid's y must not exceed 65535, found 70000"):
        launch(replace(plan, grid=(1, 70_000)), {"out": 0})
    activate()
    with raises(PtxError, match="the grid 3 must be a multiple of the cluster 2×1×1"):
        launch(plan_call(store_in_pairs, grid=(3,)), {"out": 0})


@kernel(out_specs=[Tile(1, u32)], smem=30_000, block=(1, 1, 1))
def use_both_memories(out: Any) -> None:
    (to,) = ptx.global_ptrs(out)
    tile = smem.alloc(u32, (7680,))
    tile[0] = 5
    ptx.st(u32, ptx.addr(to), smem.load(u32, tile[0]) + (smem.base() & 0))


def test_static_shared_memory_counts_toward_both_limits(activate: Activate) -> None:
    activate("rtx4090")
    small = use_both_memories.for_arch("sm_80")
    assert small(grid=(1,), stream=0).to_numpy().tolist() == [5]
    large = kernel(smem=80_000, out_specs=[Tile(1, u32)], arch="sm_80")(use_both_memories.definition.function)
    with raises(PtxError, match="bytes of shared memory, 30720 of them static, must not exceed 101376, found 110720"):
        large(grid=(1,), stream=0)


def test_ptx_that_the_driver_refuses_is_reported(device: DeviceMemory) -> None:
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry add_scaled()\n{\n    mov.u32 %r1, 0;\n}\n"
    with raises(PtxError, match="INVALID_PTX") as error:
        launch(replace(plan, traced=(parse(text), plan.kernel_trace)), {})
    (finding,) = error.value.diagnostics
    assert finding.notes[:2] == (
        "the kernel is PTX 8.0 for sm_90a; device 0 is sm_90, and its driver supports CUDA 13.5",
        "<ptx>:6:13: error[PTX0401]: `%r1` is not declared here",
    )
    assert (finding.help or "").startswith("add_scaled.check(…) and add_scaled.cubin(…), which needs ptxas, report")


def test_lines_in_the_log_of_the_simulated_driver_are_those_of_python(device: DeviceMemory) -> None:
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    text, origins = emit(plan.module), map_origins(plan.module)
    line = next(number for number, text in enumerate(text.splitlines(), 1) if "st.global" in text)
    why = CallError("cuModuleLoadDataEx", 218, "CUDA_ERROR_INVALID_PTX", "invalid ptx")
    log = f"<ptx>:{line}:5: error[PTX0105]: no\n<ptx>:1:1: error[PTX0001]: no"
    (finding,) = make_load_error(plan, why, 0, log, text, origins.get).diagnostics
    assert re.fullmatch(rf"\S+test_calls.py:\d+, line {line} of the PTX: error\[PTX0105\]: no", finding.notes[1])
    assert finding.notes[2] == "<ptx>:1:1: error[PTX0001]: no"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (2, "free memory"), (209, "for_arch(…)"), (218, "add_scaled.cubin(…)"), (221, "install ptxas"),
        (222, "newer driver"),
    ],
)  # fmt: skip
def test_what_to_do_about_a_module_that_is_not_loaded(device: DeviceMemory, code: int, text: str) -> None:
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    why = CallError("cuModuleLoadDataEx", code, "CUDA_ERROR", "")
    (finding,) = make_load_error(plan, why, 0, "", "", lambda line: None).diagnostics
    assert text in (finding.help or "")


def test_the_log_of_the_drivers_compiler_is_read(device: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """As errors at the lines of Python, if it is as ptxas writes it."""
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    lines = emit(add_line_information(plan.module)).splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "st.global" in text)
    log = (
        f"ptxas application ptx input, line {line}; error   : Illegal modifier '.f32' for instruction 'st'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )

    def refuse(name: str, *args: Any) -> Any:
        if name != "cuModuleLoadDataEx":
            return call(name, *args)
        buffer = args[3][0]
        ctypes.memmove(buffer, log.encode(), len(log))
        raise CallError(name, 218, "CUDA_ERROR_INVALID_PTX", "invalid ptx")

    monkeypatch.setattr(modules, "call", refuse)
    with raises(PtxError, match=r"`add_scaled` cannot be loaded: .*INVALID_PTX \(218\)") as error:
        launch(plan, dict.fromkeys("abc", 0))
    loading, assembly = error.value.diagnostics
    assert loading.notes == ("the kernel is PTX 8.0 for sm_90a; device 0 is sm_90, and its driver supports CUDA 13.5",)
    assert assembly.message.startswith("Illegal modifier '.f32' for instruction 'st'")
    assert re.search(r"test_calls.py:\d+: error\[PTX0710\]", str(error.value))
    assert "ptx.st(f32, ptx.addr(pc, offset), x)" in str(error.value)


SIMULATING = (
    "add_scaled.simulate(…) with the same arguments, or PYPTX_SIMULATE=1 in the environment, checks the kernel on the "
    "CPU"
)


@pytest.mark.parametrize(
    ("code", "remedy", "simulating"),
    [
        (1, "", f"{SIMULATING} and finds the cause"),
        (2, "free memory of the device, ", f"{SIMULATING}, which has no such limit"),
        (
            701,
            "use a smaller block, or let ptxas fit registers to it with raw_directives=[('maxntid', (128, 1, 1))]; "
            "add_scaled.resources(…) lists",
            f"{SIMULATING}, which has no such limit",
        ),
        (719, "in a new process, ", f"{SIMULATING} and finds the cause"),
        (720, "use a smaller grid: ", f"{SIMULATING}, which has no such limit"),
        (905, "a capture cannot wait for the stream of an array: make the arrays in the stream that is captured", ""),
        (912, "use a smaller cluster: ", f"{SIMULATING}, which has no such limit"),
    ],
)
def test_what_to_do_about_each_kind_of_failure(code: int, remedy: str, simulating: str) -> None:
    """Both what to change, and that the simulator checks the kernel: without the limit where that was the cause."""
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    (finding,) = make_error(plan, CallError("cuLaunchKernelEx", code, "CUDA_ERROR", "")).diagnostics
    assert (finding.help or "").startswith(remedy)
    assert (finding.help or "").endswith(simulating)
    assert f"cannot be launched: cuLaunchKernelEx returned CUDA_ERROR ({code})" in finding.message
    assert ("the context is lost" in " ".join(finding.notes)) is (code == 719)


def test_the_context_is_lost_after_each_fault() -> None:
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    faults: list[int] = []
    for code in range(695, 725):
        (finding,) = make_error(plan, CallError("cuLaunchKernelEx", code, "CUDA_ERROR", "")).diagnostics
        faults += [code] * ("the context is lost: all further launches of this process" in " ".join(finding.notes))
        assert str(finding.help).startswith("in a new process, ") is (code in faults)
    assert faults == [700, 702, 710, 714, 715, 716, 717, 718, 719]


def test_an_exported_kernel_has_no_methods_to_recommend(tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=1024)
    plan = make_plan(load_kernel(tmp_path), [Described((1024,), "float32")] * 2, [], grid=None, positional=None,
                     keywords={"scale": 1.0}, options=())  # fmt: skip
    (fault,) = make_error(plan, CallError("cuLaunchKernelEx", 700, "CUDA_ERROR", "")).diagnostics
    (large,) = make_error(plan, CallError("cuLaunchKernelEx", 701, "CUDA_ERROR", "")).diagnostics
    simulating = "with PYPTX_SIMULATE=1 in the environment, the same call checks the kernel on the CPU"
    assert fault.help == f"in a new process, {simulating} and finds the cause"
    assert large.help == f"use a smaller block; {simulating}, which has no such limit"


def test_a_cooperative_grid_is_compared_with_what_runs_at_once(device: DeviceMemory) -> None:
    fits = "device 0 can run 396 CTAs at the same time, 3 on each SM; the grid has 400"
    with raises(PtxError, match="COOPERATIVE_LAUNCH_TOO_LARGE") as error:
        use_both_memories(grid=(400,), stream=0, cooperative=True)
    assert error.value.diagnostics[0].notes[-1] == fits
    use_both_memories(grid=(2,), stream=0, cooperative=True)


def test_registers_that_a_block_has_not_are_counted(device: DeviceMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated driver has no registers, so the numbers of the driver are made up."""
    plan = plan_call(add_scaled, A.shape, B.shape, scale=1.0)
    answers = iter((168, 96))

    def answer(name: str, *args: Any) -> Any:
        return next(answers) if name == "cuFuncGetAttribute" else call(name, *args)

    monkeypatch.setattr(failures, "call", answer)
    with in_context(0):
        (finding,) = make_error(plan, CallError("cuLaunchKernelEx", 701, "CUDA_ERROR", ""), 1).diagnostics
    assert (
        finding.notes[-1]
        == "with 168 registers per thread, a block on device 0 has at most 96 threads; this one has 128"
    )


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    monkeypatch.setattr(bindings, "_state", {})
    with raises(PtxError, match="pip install 'cuda-bindings>=13'"):
        bindings.load_api()


@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_process_is_refused(device: DeviceMemory) -> None:
    a = device.copy(A)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            add_scaled(a, a, scale=1.0)
        except PtxError as why:
            os.write(writing, str(why).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        message = stream.read()
    assert message == (
        "error[PTX1004]: the CUDA driver does not work in a process forked from one that has used it\n"
        '  help: multiprocessing.set_start_method("spawn")'
    )
