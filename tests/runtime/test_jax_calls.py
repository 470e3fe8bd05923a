"""Kernels in functions that JAX traces: what they compute, what is refused with the words of a call on arrays, and how
they go through JAX's transformations."""
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pyptx import HazardWarning, PtxError, Tile, differentiable_kernel, kernel, ptx, reg
from pyptx.decorator import RESERVED
from pyptx.jax_support import CUSTOM_CALL
from pyptx.runtime import jax_calls
from pyptx.runtime.dlpack import make_capsule
from pyptx.runtime.jax_calls import TARGET, bind
from pyptx.types import bf16, e2m1, f32, u32, u64
from tests.messages import raises

from .test_calls import add_scaled, tensor_copy
from .test_torch import elementwise, index, product, product_gradient

# Annotated as Any: casts on every line would add nothing.
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
export: Any = import_module("jax.export")
X = jnp.arange(32.0)
ONES = jnp.ones(32)


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
def accumulate(x: Any, y: Any) -> None:
    """y += x"""
    px, py = ptx.global_ptrs(x, y)
    address, a, b = index(4), reg.scalar(f32), reg.scalar(f32)
    ptx.ld(f32, a, ptx.addr(px, address))
    ptx.ld(f32, b, ptx.addr(py, address))
    ptx.st(f32, ptx.addr(py, address), a + b)


def scale(factor: float) -> Any:
    """Return a kernel with a value of its closure."""

    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def scaled(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        address, value = index(4), reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(px, address))
        ptx.st(f32, ptx.addr(py, address), value * factor)

    return scaled


@pytest.fixture(params=["handler", "host"])
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the handler of the custom call, and with calls that the environment sends to the host."""
    if request.param == "host":
        monkeypatch.setenv("PYPTX_SIMULATE", "1")
    jax.clear_caches()
    return request.param


def assert_same_words(traced: Any, eager: PtxError, route: str) -> None:
    """Check that an error of JAX says what the call said outside; JAX adds the traceback of calls of the host."""
    if route == "handler":
        assert str(traced) == f"INTERNAL: {eager}"
    else:
        assert str(eager) in str(traced)


def trace(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function compiled."""
    return jax.jit(function)(*arguments)


@pytest.mark.usefixtures("route")
def test_a_compiled_function_computes_what_the_kernel_does() -> None:
    assert jnp.array_equal(trace(lambda x: 1 + product(x + 1, jnp.sin(x)), X), 1 + (X + 1) * jnp.sin(X))


@pytest.mark.usefixtures("route")
def test_small_floats_and_tensor_maps_go_through() -> None:
    halves, matrix = X.astype(jnp.bfloat16), jnp.arange(512.0).reshape(16, 32)
    assert jnp.array_equal(trace(elementwise(bf16, 2), halves), halves)
    assert jnp.array_equal(trace(tensor_copy, matrix), matrix)


@pytest.mark.usefixtures("route")
def test_raw_parameters_are_part_of_the_program() -> None:
    assert jnp.array_equal(trace(lambda x: add_scaled(x, x, scale=2.0), X), 3 * X)


def test_an_abstract_evaluation_runs_nothing() -> None:
    result = jax.eval_shape(lambda x: accumulate(x), X)
    assert (result.shape, result.dtype) == ((32,), jnp.float32)


def test_an_array_of_numpy_becomes_a_constant() -> None:
    assert jnp.array_equal(trace(lambda x: product(x, np.full(32, 3, np.float32)), X), 3 * X)


WRONG: list[Callable[[Any], Any]] = [
    lambda x: product(x),
    lambda x: product(x, x[:16]),
    lambda x: product(x, x.astype(jnp.int8)),
    lambda x: product(x, x.reshape(4, 8)),
    lambda x: product(x, [1.0]),
    lambda x: product(x, x, n=5),
    lambda x: product(x, x, sclae=5),
    lambda x: product(x, x, grid=(0,)),
    lambda x: add_scaled(x, x),
    lambda x: add_scaled(x, x, scale="2"),
    lambda x: add_scaled(x, x, args=[[2.0]]),
    lambda x: add_scaled(x, x, scale=np.float64(2)),
]


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
def test_a_wrong_call_is_refused_as_outside_of_jit(call: Callable[[Any], Any]) -> None:
    with raises(PtxError) as eager:
        call(X)
    with raises(PtxError) as traced:
        trace(call, X)
    assert str(traced.value) == str(eager.value)


def test_only_tensors_may_be_traced() -> None:
    with raises(PtxError, match="`scale`: expected a value, found a tracer: JAX is tracing the call"):
        trace(lambda x, scale: add_scaled(x, x, scale=scale), X, 2.0)
    with raises(PtxError, match=r"`args\[0\]`: expected a value, found a tracer"):
        trace(lambda x, scale: add_scaled(x, x, args=[scale]), X, 2.0)


def test_an_address_is_no_constant() -> None:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(32, f32)], grid=(1,), raw_params=[("u64", "table")])
    def look_up(x: Any, y: Any) -> None: ...

    with raises(
        PtxError, match="`table`: expected a number, found an array, which has no fixed address", file=__file__
    ):
        trace(lambda x: look_up(x, table=ONES), X)


def test_a_kernel_without_outputs_would_not_run() -> None:
    @kernel(in_specs=[Tile(32, f32)], grid=(1,))
    def consume(x: Any) -> None: ...

    with raises(PtxError, match="the kernel `consume` has no outputs, so JAX would not run it", file=__file__):
        trace(consume, X)


def test_wide_types_need_their_switch() -> None:
    @kernel(in_specs=[Tile(32, f32), Tile(4, u64)], out_specs=[Tile(4, u32)], grid=(1,))
    def take(x: Any, y: Any, z: Any) -> None: ...

    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(4, u64)], grid=(1,))
    def give(x: Any, y: Any) -> None: ...

    with raises(PtxError, match="an argument is uint64, but JAX converts it to uint32"):
        trace(lambda x: take(x, np.ones(4, np.uint64)), X)
    with raises(PtxError, match="a result is uint64, but JAX converts it to uint32"):
        trace(give, X)


def test_elements_that_jax_packs_are_refused() -> None:
    with raises(PtxError, match="`x`: expected elements of whole bytes, found float4_e2m1fn, which JAX packs"):
        trace(elementwise(e2m1, 1), X.astype(jnp.float4_e2m1fn))


def test_what_stops_the_run_is_an_error_of_jax_with_the_words_of_the_kernel(route: str) -> None:
    with raises(PtxError) as eager:
        accumulate(X)
    with pytest.raises(jax.errors.JaxRuntimeError) as traced:
        trace(lambda x: accumulate(x), X).block_until_ready()
    assert_same_words(traced.value, eager.value, route)


def define_failing(line: int) -> Any:
    """Return one of two kernels that fail alike on different lines, and whose functions have the same name."""
    if line == 1:

        @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,))
        def store_past_end(x: Any, y: Any) -> None:
            ptx.st(f32, ptx.addr(*ptx.global_ptrs(y), 4096), 1.0)

        return store_past_end

    @kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,))
    def store_past_end(x: Any, y: Any) -> None:
        ptx.st(f32, ptx.addr(*ptx.global_ptrs(y), 4096), 1.0)

    return store_past_end


@kernel(in_specs=[Tile("n", f32)], out_specs=[Tile("n", f32)], grid=(1,))
def store_past_end(x: Any, y: Any) -> None:
    """Fail like those above."""
    ptx.st(f32, ptx.addr(*ptx.global_ptrs(y), 4096), 1.0)


def assert_fails_as_eager(function: Callable[[Any], Any], failing: Any, route: str) -> None:
    """Check that a function fails as a kernel does outside of it, at the same line."""
    with raises(PtxError) as eager:
        failing(X)
    with pytest.raises(jax.errors.JaxRuntimeError) as traced:
        function(X).block_until_ready()
    assert_same_words(traced.value, eager.value, route)


def test_errors_of_kernels_with_equal_ptx_name_the_one_that_runs(route: str) -> None:
    others = [define_failing(1), store_past_end]
    functions = [jax.jit(lambda x, failing=failing: failing(x)) for failing in others]
    for _ in range(2):
        for function, failing in zip(functions, others, strict=True):
            assert_fails_as_eager(function, failing, route)


def test_errors_name_the_latest_of_kernels_with_equal_names_and_ptx(route: str) -> None:
    for failing in map(define_failing, (1, 2)):
        assert_fails_as_eager(jax.jit(lambda x, failing=failing: failing(x)), failing, route)


def test_a_cooperative_grid_must_fit(route: str) -> None:
    grid = (2**31 - 1,)
    with raises(PtxError, match="PTX1107") as eager:
        product(X, X, grid=grid, cooperative=True)
    with pytest.raises(jax.errors.JaxRuntimeError, match="PTX1107") as traced:
        trace(lambda x: product(x, x, grid=grid, cooperative=True), X).block_until_ready()
    assert_same_words(traced.value, eager.value, route)


def test_outside_of_a_trace_no_array_becomes_another() -> None:
    options: dict[str, Any] = {"grid": None, "positional": None, "keywords": {}, "options": RESERVED}
    with raises(PtxError, match="`y`: expected a writable array, but JAX arrays are immutable"):
        bind(accumulate, [X], ONES, **options)
    assert bind(accumulate, [X], None, **options).targets == []


@pytest.mark.usefixtures("route")
def test_an_input_cannot_be_written() -> None:
    @kernel(in_specs=[Tile(1, f32)], out_specs=[Tile(1, f32)], grid=(1,))
    def spoil(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        ptx.st(f32, ptx.addr(px), 1.0)
        ptx.st(f32, ptx.addr(py), 1.0)

    with pytest.raises(jax.errors.JaxRuntimeError, match=r"PTX1113.*`x` is read-only"):
        trace(lambda x: spoil(x), X[:1]).block_until_ready()


@pytest.mark.usefixtures("route")
def test_warnings_of_the_run_are_shown() -> None:
    @kernel(in_specs=[Tile(32, f32)], out_specs=[Tile(48, f32)], grid=(1,), block=(32, 1, 1))
    def copy_most(x: Any, y: Any) -> None:
        px, py = ptx.global_ptrs(x, y)
        address, value = index(4), reg.scalar(f32)
        ptx.ld(f32, value, ptx.addr(px, address))
        ptx.st(f32, ptx.addr(py, address), value)

    with pytest.warns(HazardWarning, match=r"PTX0998.*`y`: 16 of 48") as records:
        result = trace(lambda x: copy_most(x), X).block_until_ready()
    assert jnp.isnan(result[32:]).all()
    assert records[0].filename == "<kernel copy_most>"


@pytest.mark.usefixtures("route")
def test_arrays_given_for_the_outputs_are_initial_values() -> None:
    assert jnp.array_equal(trace(lambda x, y: accumulate(x, out=y), X, ONES), X + 1)
    assert jnp.array_equal(ONES, jnp.ones(32))


def test_a_donated_array_becomes_the_output() -> None:
    given = jnp.ones(32)
    address = given.unsafe_buffer_pointer()
    result = jax.jit(lambda x, y: accumulate(x, out=y), donate_argnums=1)(X, given)
    assert jnp.array_equal(result, X + 1)
    assert (result.unsafe_buffer_pointer(), given.is_deleted()) == (address, True)


def test_a_compiled_function_keeps_the_closure_that_it_was_traced_with() -> None:
    factors = [2.0]
    function = jax.jit(lambda x: scale(factors[0])(x))
    assert jnp.array_equal(function(X), 2 * X)
    factors[0] = 3.0
    assert jnp.array_equal(function(X), 2 * X)
    jax.clear_caches()
    assert jnp.array_equal(function(X), 3 * X)


def test_kernels_that_differ_in_a_closure_stay_apart() -> None:
    assert jnp.array_equal(trace(lambda x: scale(2.0)(x) + scale(5.0)(x), X), 7 * X)


@pytest.mark.usefixtures("route")
def test_a_mapped_function_runs_the_kernel_for_each_element() -> None:
    rows = jnp.arange(96.0).reshape(3, 32)
    assert jnp.array_equal(jax.vmap(product, (0, None))(rows, X), rows * X)
    assert jnp.array_equal(trace(jax.vmap(lambda x, y: accumulate(x, out=y)), rows, rows), 2 * rows)


@pytest.mark.usefixtures("route")
def test_loops_branches_and_checkpoints_contain_kernels() -> None:
    powers = trace(lambda x: jax.lax.scan(lambda c, _: (product(c, x), c), ONES, None, length=3)[0], X)
    assert jnp.array_equal(powers, X**3)
    looped = trace(
        lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, product(s[1], x)), (0, x))[1], X
    )
    assert jnp.array_equal(looped, X**4)
    assert jnp.array_equal(trace(lambda x, c: jax.lax.cond(c, lambda: product(x, x), lambda: x), X, True), X**2)
    assert jnp.array_equal(trace(jax.checkpoint(lambda x: product(x, x)), X), X**2)


def test_a_kernel_alone_has_no_gradient() -> None:
    with raises(PtxError, match="PTX1003.*the kernel `product` has no gradient", file=__file__):
        jax.grad(lambda x: product(x, x).sum())(X)


def sum_squares(x: Any) -> Any:
    return differentiable_kernel(product, product_gradient)(x, x).sum()


SECOND: list[Callable[[Any], Any]] = [
    jax.hessian(sum_squares), jax.jacrev(jax.jacrev(sum_squares)),
    jax.jit(jax.grad(lambda x: jax.grad(sum_squares)(x).sum())),
]  # fmt: skip
FORWARD: list[Callable[[Any], Any]] = [
    lambda x: jax.jvp(sum_squares, (x,), (x,)), jax.jacfwd(sum_squares), jax.jit(jax.jacfwd(sum_squares))
]  # fmt: skip


@pytest.mark.parametrize("derive", SECOND, ids=range(len(SECOND)))
def test_a_second_derivative_names_the_kernel_that_lacks_a_gradient(derive: Callable[[Any], Any]) -> None:
    with raises(PtxError, match="PTX1003.*`product_gradient` has no gradient, so there is no second", file=__file__):
        derive(X)


@pytest.mark.parametrize("derive", FORWARD, ids=range(len(FORWARD)))
def test_a_forward_mode_derivative_is_an_error(derive: Callable[[Any], Any]) -> None:
    with raises(PtxError, match="PTX1003.*`product` has a gradient, but no forward-mode derivative", file=__file__):
        derive(X)


def test_other_errors_of_a_differentiable_call_stay() -> None:
    with pytest.raises(TypeError, match="Argument 'x' of type"):
        differentiable_kernel(product, product_gradient)(X, "x")


@pytest.mark.usefixtures("route")
def test_gradients_come_from_the_backward_kernel() -> None:
    f = differentiable_kernel(product, product_gradient, factor=5)
    y = X + 2

    def loss(x: Any, y: Any) -> Any:
        return (f(x, y, factor=3) * X).sum()

    transforms: list[Callable[[Any], Any]] = [lambda g: g, jax.jit, lambda g: jax.jit(jax.checkpoint(g))]
    for transform in transforms:
        dx, dy = transform(jax.grad(loss, (0, 1)))(ONES, y)
        assert jnp.array_equal(dx, 3 * y * X)
        assert jnp.array_equal(dy, 3 * X)
    assert jnp.array_equal(f(X, X), 5 * X * X)


def test_an_input_past_the_gradients_has_none() -> None:
    @kernel(in_specs=[Tile("n", f32)] * 2, out_specs=[Tile("n", f32)], grid=(1,), block=(32, 1, 1))
    def slope(y: Any, dz: Any, dx: Any) -> None:
        py, pd, px = ptx.global_ptrs(y, dz, dx)
        address, a, b = index(4), reg.scalar(f32), reg.scalar(f32)
        ptx.ld(f32, a, ptx.addr(py, address))
        ptx.ld(f32, b, ptx.addr(pd, address))
        ptx.st(f32, ptx.addr(px, address), a * b)

    f = differentiable_kernel(product, slope, save_for_backward=[1])
    dx, dy = jax.vmap(jax.grad(lambda x, y: f(x, y).sum(), (0, 1)))(X[None], X[None] + 1)
    assert jnp.array_equal(dx, X[None] + 1)
    assert jnp.array_equal(dy, 0 * X[None])


def test_capsules_of_jax_do_not_change_those_of_dlpack() -> None:
    memory = np.ones(4, np.float32)
    jax.ffi.pycapsule(memory.ctypes.data)
    capsule = make_capsule(memory, memory.ctypes.data, (4,), memory.dtype, (1, 0), versioned=True)
    assert "dltensor_versioned" in repr(capsule)


def test_numpy_arrays_go_through_transformations_that_do_not_compile() -> None:
    """JAX wraps them in constants of its own."""
    x, y = np.arange(32, dtype=np.float32), np.full(32, 3, np.float32)
    smooth = differentiable_kernel(product, product_gradient)
    value, gradient = jax.value_and_grad(lambda y: smooth(x, y).sum())(y)
    assert value == 3 * x.sum()
    assert np.array_equal(gradient, x)


def test_the_environment_makes_calls_in_compiled_functions_calls_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    function = jax.jit(lambda x: product(x, x))
    assert TARGET in function.lower(X).as_text()
    jax.clear_caches()
    monkeypatch.setenv("PYPTX_SIMULATE", "1")
    text = function.lower(X).as_text()
    assert ("callback" in text, TARGET in text) == (True, False)


def test_what_only_a_stream_can_do_is_refused() -> None:
    with raises(PtxError, match="`stream`: XLA chooses the stream of a call with JAX's arrays"):
        trace(lambda x: product(x, x, stream=0), X)


def test_sizes_must_be_known() -> None:
    shape = jax.ShapeDtypeStruct(export.symbolic_shape("b"), jnp.float32)
    with raises(PtxError, match=r"`x`: expected known sizes, found shape \(b\); export for fixed sizes"):
        export.export(jax.jit(lambda x: product(x, x)))(shape)


_PROGRAM = """
import json, os, sys
from pathlib import Path
import jax, jax.export, numpy as np, pyptx
from jax.sharding import Mesh, PartitionSpec as P
from pyptx.jax_support import CUSTOM_CALL
results = {}
exported = jax.export.deserialize(bytearray(Path(sys.argv[1]).read_bytes()))
results["exported"] = [np.asarray(exported.call(np.arange(32, dtype=np.float32))).tolist()]
results["traced"] = [name for name in sys.modules if name.startswith("tests")]
from tests.runtime.test_torch import product, product_gradient
results["text"] = jax.jit(lambda x: product(x, x)).lower(np.arange(32, dtype=np.float32)).as_text()
mesh, parts = Mesh(jax.devices(), "i"), dict(in_specs=(P("i"), P()), out_specs=P("i"))
x, y = np.arange(256, dtype=np.float32), np.arange(32, dtype=np.float32)
for checked in (True, False):
    shared = jax.jit(jax.shard_map(product, mesh=mesh, check_vma=checked, **parts))
    results["sharded", checked] = [np.asarray(shared(x, y)).tolist() for _ in range(3)]
smooth = pyptx.differentiable_kernel(product, product_gradient)
def find_loss(y, x):
    return jax.lax.pmean((smooth(x, y) * x).sum(), "i")
shared_gradient = jax.shard_map(jax.grad(find_loss), mesh=mesh, in_specs=(P(), P("i")), out_specs=P())
results["gradient"] = [np.asarray(jax.jit(shared_gradient)(y, x)).tolist()]
os.environ["PYPTX_SIMULATE"] = "1"
jax.clear_caches()
results["gradient"].append(np.asarray(jax.jit(shared_gradient)(y, x)).tolist())
del os.environ["PYPTX_SIMULATE"]
spread = jax.device_put(y, jax.sharding.NamedSharding(mesh, P("i")))
results["partitioned"] = [np.asarray(jax.jit(lambda x: product(x, x))(spread)).tolist()]
print(json.dumps([[str(name), value] for name, value in results.items()]))
shared(x, y)
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return what another process with eight devices computes, in part with a program exported here; it ends while its
    last run may be pending."""
    file = tmp_path_factory.mktemp("jax") / "program"
    allowed = export.DisabledSafetyCheck.custom_call(CUSTOM_CALL)
    program = export.export(jax.jit(lambda x: product(x, x) + scale(2.0)(x)), disabled_checks=[allowed])(X)
    file.write_bytes(program.serialize())
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    words = [sys.executable, "-c", _PROGRAM, str(file)]
    process = subprocess.run(
        words, capture_output=True, text=True, check=False, env=environment, timeout=120, cwd=Path(__file__).parents[2]
    )
    assert (process.returncode, process.stderr) == (0, "")
    return dict(json.loads(process.stdout))


def test_an_exported_program_runs_in_a_process_without_the_kernel(elsewhere: dict[str, list[Any]]) -> None:
    assert elsewhere["traced"] == []
    assert elsewhere["exported"] == [(X * X + 2 * X).tolist()]


def test_a_program_has_the_same_text_in_each_process(elsewhere: dict[str, Any]) -> None:
    text = jax.jit(lambda x: product(x, x)).lower(X).as_text()
    assert elsewhere["text"] == text
    assert str(Path(__file__).parent) not in text


@pytest.mark.parametrize("checked", [True, False])
def test_each_device_runs_the_kernel_on_its_shard(elsewhere: dict[str, list[Any]], checked: bool) -> None:
    expected = np.arange(256) * np.tile(np.arange(32), 8)
    assert elsewhere[str(("sharded", checked))] == [expected.tolist()] * 3


def test_a_program_that_xla_partitions_runs_the_kernel_on_whole_arrays(elsewhere: dict[str, list[Any]]) -> None:
    assert elsewhere["partitioned"] == [(X * X).tolist()]


def test_gradients_of_what_all_devices_share_are_added(elsewhere: dict[str, list[Any]]) -> None:
    parts = np.arange(256.0).reshape(8, 32)
    assert elsewhere["gradient"] == [(parts * parts).mean(0).tolist()] * 2


def test_python_ends_after_all_arrays_and_then_all_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []

    class Pending:
        """An array whose computation may fail."""

        def __init__(self, name: str, fails: bool) -> None:
            self.name, self.fails = name, fails

        def block_until_ready(self) -> None:
            events.append(self.name)
            if self.fails:
                raise jax.errors.JaxRuntimeError("nobody asked for it")

    arrays = {"cpu": [Pending("first", True), Pending("second", False)]}
    monkeypatch.setattr(jax, "live_arrays", arrays.__getitem__)
    monkeypatch.setattr(jax_calls, "wait_for_calls", lambda: events.append("calls"))
    jax_calls._finish()  # pyright: ignore[reportPrivateUsage]
    assert events == ["first", "second", "calls"]


@pytest.mark.parametrize("is_built", [True, False])
def test_xla_gets_the_handler_for_gpus_if_it_is_built(
    is_built: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: list[Any] = []
    library = SimpleNamespace(pyptx_xla_handler=2)

    def make_capsule(function: Any) -> Any:
        return 1 if function is jax_calls.HANDLER else function

    def note(name: str, target: Any, *, platform: str) -> None:
        targets.append((name, target, platform))

    monkeypatch.setattr(jax_calls, "GPU_LIBRARY", tmp_path)
    monkeypatch.setattr(jax_calls, "_make_capsule", make_capsule)
    monkeypatch.setattr("ctypes.CDLL", {str(tmp_path): library}.__getitem__)
    monkeypatch.setattr(jax.ffi, "register_ffi_target", note)
    if not is_built:
        tmp_path.rmdir()
    jax_calls._register()  # pyright: ignore[reportPrivateUsage]
    expected = [(TARGET, 1, "cpu"), (TARGET, {"initialize": 2, "execute": 2}, "CUDA")]
    assert targets == expected[: 1 + is_built]
