"""What Triton's launcher calls, with PyTorch tensors; `make audit` runs Triton itself."""

from __future__ import annotations

import gc
import struct
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from pyptx.driver import AFTER_RESTART, connection, host_memory
from pyptx.driver.codes import Code, DriverError
from pyptx.driver.devices import DEVICES
from pyptx.driver.modules import Kernel
from pyptx.driver.process import Driver
from pyptx.driver.settings import Settings
from pyptx.driver.signatures import ENTRIES
from pyptx.driver.triton import (
    Argument,
    Launcher,
    activate,
    flatten,
    install,
    keep_ptx,
    measure,
    pack,
    register,
)  # fmt: skip
from pyptx.tensormap import ElementType, Fill, Im2col, L2Promotion, Swizzle, TensorMap, decode

CONSTANT, VALUE, TUPLE = (Argument(None, number) for number in range(3))
SCALE = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u64 scratch, .param .u64 profile)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [x];
    ld.param.f32 %f1, [factor];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    mad.lo.u32 %r1, %r1, 32, %r2;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3];
    mul.f32 %f3, %f2, %f1;
    st.global.f32 [%rd3], %f3;
    ret;
}
"""


@pytest.fixture
def launcher() -> Launcher:
    driver = Driver(Settings(), list(ENTRIES.values()))
    driver.is_initialized = True
    return Launcher(driver)


def scale(launcher: Launcher, x: torch.Tensor, factor: float, ctas: int) -> None:
    """Launch the kernel as Triton does: 1 warp, with a constant that the kernel does not take."""
    register(launcher.driver, x.untyped_storage())
    module, kernel, _, spills, threads = launcher.load_binary("scale", SCALE.encode(), 0, 0)
    assert (spills, threads) == (0, 1024)
    types = launcher.build_signature_metadata(["*fp32", "fp32"])
    launcher.launch(
        ctas, 1, 1, 0, kernel, False, False, (1, 1, 0), None, None, None, None, None, [VALUE, CONSTANT, VALUE], types,
        [x, 64, factor],
    )  # fmt: skip
    launcher.unload_module(module)


def test_a_kernel_changes_a_tensor_in_place(launcher: Launcher) -> None:
    x = torch.arange(64, dtype=torch.float32)
    scale(launcher, x, 0.5, 2)
    assert torch.equal(x, torch.arange(64) * 0.5)


def test_a_part_of_a_storage_is_reached_through_its_tensor(launcher: Launcher) -> None:
    whole = torch.ones(64)
    scale(launcher, whole[32:], 3.0, 1)
    assert torch.equal(whole, torch.tensor([1.0] * 32 + [3.0] * 32))


def test_an_access_out_of_bounds_fails(launcher: Launcher, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match=r"^Triton Error \[CUDA\]: illegal address$"):
        scale(launcher, torch.ones(32), 2.0, 2)
    assert "`allocation 1 from" in capfd.readouterr().err
    assert launcher.driver.primary[0].error is Code.ERROR_ILLEGAL_ADDRESS


def test_invalid_ptx_is_an_error_of_the_program(launcher: Launcher) -> None:
    with pytest.raises(RuntimeError, match=r"`\.f33` cannot follow `mul`"):
        launcher.load_binary("scale", SCALE.replace("mul.f32", "mul.f33").encode(), 0, 0)


def test_memory_is_forgotten_with_its_tensor(launcher: Launcher) -> None:
    x = torch.ones(1000)
    scale(launcher, x, 2.0, 1)
    assert [item.size for item in launcher.driver.heap.allocations.values()] == [4000]
    del x
    gc.collect()
    assert launcher.driver.heap.allocations == {}


def test_a_tensor_at_the_address_of_a_freed_one_replaces_it(launcher: Launcher) -> None:
    x = torch.zeros(100)
    register(launcher.driver, x[:10].clone().untyped_storage())
    register(launcher.driver, x.untyped_storage())
    register(launcher.driver, x.view(10, 10).untyped_storage())
    assert launcher.driver.heap.allocations[x.data_ptr()].size == 400


def test_memory_outlives_a_smaller_tensor_at_its_address(launcher: Launcher) -> None:
    memory = bytearray(32)
    small, whole = (torch.frombuffer(memory, dtype=torch.float32, count=count) for count in (4, 8))
    register(launcher.driver, small.untyped_storage())
    register(launcher.driver, whole.untyped_storage())
    del small
    gc.collect()
    allocation = launcher.driver.heap.find(whole.data_ptr())
    assert allocation is not None
    assert allocation.size == whole.untyped_storage().nbytes() == 32


@pytest.mark.parametrize(("offset", "size", "is_replaced"), [
    (0, 40, True), (-40, 44, True), (396, 40, True), (40, 40, True), (-40, 40, False), (400, 40, False),
])  # fmt: skip
def test_a_tensor_replaces_only_what_it_overlaps(launcher: Launcher, offset: int, size: int, is_replaced: bool) -> None:
    around = torch.zeros(200)
    address, heap = around.data_ptr() + 200, launcher.driver.heap
    heap.register(address + offset, host_memory.view(address + offset, size), "registered", 0, "")

    class Part:
        """A storage in the middle of another."""

        def data_ptr(self) -> int:
            return address

        def nbytes(self) -> int:
            return 400

    part = Part()
    register(launcher.driver, part)
    assert sorted(heap.allocations) == sorted({address} | (set() if is_replaced else {address + offset}))
    assert around.nbytes == 800


def test_an_unloaded_module_has_no_kernels(launcher: Launcher) -> None:
    module, kernel, *_ = launcher.load_binary("scale", SCALE.encode(), 0, 0)
    handles = launcher.driver.handles
    assert handles.get(kernel, Kernel).name == "scale"
    launcher.unload_module(module)
    for _ in range(2):
        with pytest.raises(DriverError):
            handles.get(kernel, Kernel)
        launcher.unload_module(module)


@pytest.mark.parametrize(
    ("kind", "value", "size", "expected"),
    [
        ("i32", -2, 4, "<i"), ("i64", 1 << 40, 8, "<q"), ("u8", 255, 1, "<B"), ("i1", True, 1, "<B"),
        ("fp16", 0.5, 2, "<e"), ("fp32", 0.1, 4, "<f"), ("fp64", 0.1, 8, "<d"), ("*fp16", 0x1234, 8, "<Q"),
    ],
)  # fmt: skip
def test_numbers_are_packed_by_their_type(kind: str, value: float, size: int, expected: str) -> None:
    assert pack(kind, value, size) == struct.pack(expected, value)


def test_special_arguments() -> None:
    assert pack("bf16", 1.5, 2) == struct.pack("<f", 1.5)[2:]
    assert pack("*i8", None, 8) == bytes(8)
    assert pack("nvTmaDesc", bytes(range(128)), 128) == bytes(range(128))
    x = torch.zeros(4)
    assert pack("*fp32", x, 8) == x.data_ptr().to_bytes(8, "little")


def test_tuples_are_flattened_and_constants_left_out() -> None:
    nested = Argument([VALUE, CONSTANT, Argument([VALUE], TUPLE.type)], TUPLE.type)
    assert list(flatten([1, (2, 3, (4,)), 5], [VALUE, nested, CONSTANT])) == [1, 2, 4]


def test_the_last_stage_of_the_compiler_keeps_the_ptx() -> None:
    stages: dict[str, object] = {"ptx": None, "cubin": None}
    assert keep_ptx(None, stages, None, None, None) is None
    encode = stages["cubin"]
    assert callable(encode)
    assert encode(".version 8.0", {}) == b".version 8.0"
    key = keep_ptx()
    assert key is not None
    assert len(key[1]) == 64


def test_a_descriptor_becomes_a_tensor_map(launcher: Launcher) -> None:
    """Shapes and strides start with the slowest dimension, and the strides count elements."""
    data = launcher.fill_tma_descriptor_tiled(0x10000, 3, 2, 6, [64, 32], [100, 200], [256, 1], 1)
    assert decode(data) == TensorMap(
        ElementType.F16, 0x10000, (200, 100), (512,), (32, 64), swizzle=Swizzle.B128, l2_promotion=L2Promotion.B128,
        fill=Fill.NAN,
    )  # fmt: skip


def test_a_convolution_is_described_by_its_pixels_and_channels(launcher: Launcher) -> None:
    data = launcher.fill_tma_descriptor_im2col(
        0x10000, 2, 2, 6, [64, 32], [2, 8, 9, 32], [2304, 288, 32, 1], 0, [-1, -2], [-3, -4], [1, 1, 2, 1]
    )
    assert decode(data) == TensorMap(
        ElementType.F16, 0x10000, (32, 9, 8, 2), (64, 576, 4608), element_strides=(1, 2, 1, 1),
        im2col=Im2col((-2, -1), (-4, -3), 32, 64), swizzle=Swizzle.B64, l2_promotion=L2Promotion.B128,
    )  # fmt: skip


def test_a_benchmark_runs_a_function_once_and_counts_instructions(launcher: Launcher) -> None:
    x = torch.ones(64)
    x.grad = torch.ones(64)
    run = partial(measure, launcher.driver, lambda: scale(launcher, x, 2.0, 2))
    assert run(25, 100, grad_to_none=[x]) == 64 * 11
    assert x.grad is None
    assert torch.equal(x, torch.full((64,), 2.0))
    assert run(quantiles=(0.5, 0.2)) == [run()] * 2
    assert run(quantiles=[0.5]) == run(return_mode="median")
    assert run(rep=20, return_mode="all") == [run()]
    assert measure(launcher.driver, list) == 1.0


def test_the_device_of_tensors_on_the_cpu_has_no_number(launcher: Launcher) -> None:
    assert launcher.get_device_properties(None) == launcher.get_device_properties(0)


def test_a_process_has_one_driver() -> None:
    assert connection.start() is connection.start()


def test_another_activation_replaces_the_driver_and_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton keeps kernels by the number of the device, and the target by the kernels."""
    active: list[Any] = []
    runtime = SimpleNamespace(driver=SimpleNamespace(set_active=active.append))
    nvidia = SimpleNamespace(CudaDriver=object, CudaLauncher=int)
    knobs, testing = SimpleNamespace(), SimpleNamespace()
    modules = {
        "triton.backends.nvidia.driver": nvidia, "triton.knobs": SimpleNamespace(runtime=knobs),
        "triton.runtime": runtime, "triton.testing": testing,
    }  # fmt: skip
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(torch.Tensor, "data_ptr", torch.Tensor.data_ptr)
    tensor = torch.zeros(4)
    try:
        for device, options in (("h100", {}), ("b200", {"stop": True})):
            activate(device, **options)
            driver = connection.start()
            assert (driver.settings.device, driver.settings.stop) == (device, bool(options))
            assert active[-1].get_device_capability() == DEVICES[device].capability
            assert active[-1].utils.driver is driver
            assert active[-1].get_benchmarker()(list) == 1.0
            assert [getattr(testing, name)(list) for name in ("do_bench", "do_bench_cudagraph", "do_bench_proton")] == [
                1.0, 1.0, 1.0,
            ]  # fmt: skip
            assert (active[-1].launcher_cls, active[-1].get_current_stream()) == (int, 0)
            assert active[-1].set_current_device.__self__ is active[-1].utils
            assert active[-1].get_active_torch_device() == torch.device("cpu")
            assert torch.equal(active[-1].allocate_default_profile_scratch(3, 16, 0), torch.zeros(3, dtype=torch.int8))
            assert knobs.add_stages_inspection_hook is keep_ptx
            assert nvidia.PyKernelArg is Argument
            assert (nvidia.ARG_CONSTEXPR, nvidia.ARG_KERNEL, nvidia.ARG_TUPLE) == (0, 1, 2)
            assert driver.heap.find(tensor.data_ptr()) is not None
        connection.restart("a100", {})
        assert active[-1].utils.driver is connection.start()
        assert len({item.get_current_device() for item in active}) == len(active) == 3
    finally:
        AFTER_RESTART.remove(install)
