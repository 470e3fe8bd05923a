"""Calls that the C extension repeats: only those that would be bound in the same way again."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyptx import Kernel, Tile, kernel, ptx
from pyptx.diagnostics import PtxError
from pyptx.runtime import calls, extension
from pyptx.runtime.bindings import in_context
from pyptx.types import f32, s32
from tests.messages import raises
from tests.runtime.conftest import Activate
from tests.runtime.test_calls import tensor_copy
from tests.runtime.test_device_calls import copy_halves

pytestmark = pytest.mark.usefixtures("device")
torch: Any = import_module("torch")
BUILT = extension.load() is not None
SCALE = 2


def make_scale(grid: Any = (4,)) -> Kernel:
    """Return a kernel that multiplies by the global SCALE."""

    @kernel(in_specs=[Tile("n", s32)], out_specs=[Tile("n", s32)], grid=grid, block=(32, 1, 1))
    def scale(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = (ptx.special.ctaid.x() * 32 + ptx.special.tid.x()) * 4
        ptx.st(s32, ptx.addr(py, offset), ptx.ld(s32, ptx.addr(px, offset)) * SCALE)

    return scale


def count_blocks(n: int) -> tuple[int]:
    """Return the grid for the kernel."""
    return (n // 32,)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with every call that is bound."""
    bound: list[Any] = []
    bind = calls.bind

    def note(*arguments: Any, **keywords: Any) -> Any:
        bound.append(arguments)
        return bind(*arguments, **keywords)

    monkeypatch.setattr(calls, "bind", note)
    return bound


def test_the_second_call_of_a_shape_is_not_bound(bindings: list[Any]) -> None:
    scale, x = make_scale(count_blocks), torch.arange(128, dtype=torch.int32)
    for values in (x, x + 5, x[:64], x * 3, x[:64].clone()):
        assert torch.equal(scale(values), values * SCALE)
    assert len(bindings) == (2 if BUILT else 5)


def test_several_outputs_and_other_types_are_repeated(bindings: list[Any]) -> None:
    @kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32), Tile(1, s32)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any, z: Any) -> None:
        px, py, pz = ptx.global_ptrs(x, y, z)
        offset = ptx.special.tid.x() * 4
        ptx.st(s32, ptx.addr(py, offset), ptx.ld(s32, ptx.addr(px, offset)))
        with ptx.if_(offset == 0):
            ptx.st(s32, ptx.addr(pz), 7)

    x = torch.arange(32, dtype=torch.int32)
    for _ in range(2):
        y, z = copy(x)
        assert torch.equal(y, x)
        assert z.tolist() == [7]
    half = torch.arange(32).to(torch.bfloat16)
    for _ in range(2):
        assert torch.equal(copy_halves(half), half)
    assert len(bindings) == (2 if BUILT else 4)


def test_a_tensor_map_follows_its_tensor(bindings: list[Any]) -> None:
    copy, kept = tensor_copy.for_arch("sm_90"), list[Any]()
    for start in range(4):
        kept.append(torch.arange(start, start + 16 * 32, dtype=torch.float32).reshape(16, 32))
        assert torch.equal(copy(kept[-1]), kept[-1])
    assert len(bindings) == (1 if BUILT else 4)


def test_a_changed_global_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    assert torch.equal(scale(x), x * 2)
    assert torch.equal(scale(x), x * 2)
    monkeypatch.setitem(globals(), "SCALE", 5)
    assert torch.equal(scale(x), x * 5)


def test_another_grid_is_noticed() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    assert torch.equal(scale(x), x * SCALE)
    scale.grid = (1,)
    assert torch.equal(scale(x)[:32], x[:32] * SCALE)
    assert not torch.equal(scale(x)[32:], x[32:] * SCALE)


def test_tensors_that_do_not_fit_are_still_refused() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    scale(x)
    for value in (x.double(), x.short(), x.reshape(2, 64), torch.zeros(256, dtype=torch.int32)[::2], x.tolist()):
        with raises(PtxError):
            scale(value)


def test_a_misaligned_tensor_is_still_refused() -> None:
    scale, x = make_scale(), torch.arange(128, dtype=torch.int32)
    scale(x)
    memory = torch.zeros(516, dtype=torch.uint8)
    with raises(PtxError, match="aligned"):
        scale(torch.frombuffer(memory.numpy().data, dtype=torch.int32, count=128, offset=2))


def test_a_negative_view_is_still_refused() -> None:
    copy = make_copy()
    x = torch.arange(32, dtype=torch.float32)
    copy(x)
    with raises(PtxError, match="negative view"):
        copy(torch._neg_view(x))


def test_tensors_that_autograd_records_are_still_refused(bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    parameter = torch.nn.Parameter(x)
    with torch.no_grad():
        assert torch.equal(copy(parameter), x)
    assert len(bindings) == (1 if BUILT else 2)
    assert copy(parameter).requires_grad


def test_transformed_and_compiled_calls_are_not_repeated(bindings: list[Any]) -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    rows = torch.arange(64, dtype=torch.float32).reshape(2, 32)
    assert torch.equal(torch.func.vmap(copy)(rows), rows)

    def add_one(y: Any) -> Any:
        return copy(y) + 1

    compiled = torch.compile(add_one, fullgraph=True, backend="eager")
    assert torch.equal(compiled(x), x + 1)


def test_observed_calls_are_not_repeated() -> None:
    names: list[str] = []

    class Observer(import_module("torch.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(function))
            return function(*args, **(kwargs or {}))

    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    with Observer():
        assert torch.equal(copy(x), x)
    assert any(name.startswith("pyptx.") for name in names)


def test_calls_in_another_context_are_bound(activate: Activate, bindings: list[Any]) -> None:
    activate(count=2)
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    with in_context(1):
        assert torch.equal(copy(x), x)
    assert len(bindings) == 2


def make_copy() -> Kernel:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), block=(32, 1, 1))
    def copy(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        offset = ptx.special.tid.x() * 4
        ptx.st(f32, ptx.addr(py, offset), ptx.ld(f32, ptx.addr(px, offset)))

    return copy


def test_cpu_tensors_run_on_the_simulator_after_the_driver(activate: Activate, bindings: list[Any]) -> None:
    import_module("pyptx.driver").deactivate()
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)
    activate()
    for _ in range(3):
        assert torch.equal(copy(x), x)
    assert len(bindings) == (2 if BUILT else 4)
    import_module("pyptx.driver").deactivate()
    assert torch.equal(copy(x), x)
    activate(order="deferred")
    result = copy(x + 100)
    assert not torch.equal(result, x + 100)
    import_module("tests.runtime.device_memory").DeviceMemory().get(result.data_ptr(), (1,), np.float32)
    assert torch.equal(result, x + 100)


def test_a_kernel_is_not_called_in_a_trace() -> None:
    copy, x = make_copy(), torch.arange(32, dtype=torch.float32)
    copy(x)

    @kernel(grid=(1,))
    def outer() -> None:
        copy(x)

    with raises(PtxError, match="kernels cannot call kernels"):
        outer.ptx()


def test_a_fault_of_a_repeated_call_names_the_kernel() -> None:
    @kernel(in_specs=[Tile(32, s32)], out_specs=[Tile(32, s32)], grid=(1,))
    def follow(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        ptx.st(s32, ptx.addr(py, ptx.ld(s32, ptx.addr(px))), 1)

    x = torch.zeros(32, dtype=torch.int32)
    follow(x)
    follow(x)
    with raises(PtxError, match="`follow` cannot be launched: .*ILLEGAL_ADDRESS"):
        follow(x + (1 << 30))
