"""Calls of kernels that JAX traces: an abstract evaluation with the checks of a call on arrays, then a custom call."""

from __future__ import annotations

import atexit
import ctypes
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pyptx.diagnostics import PtxError
from pyptx.runtime import arguments, arrays, simulation
from pyptx.runtime.arrays import Array, Described, Unusable, describe, get_numpy_dtype
from pyptx.runtime.jax_arrays import check_dtype, find_axes, jax, vary, view
from pyptx.runtime.jax_attributes import Attributes, read_attributes, write_attributes
from pyptx.runtime.jax_handler import HANDLER, run_call, wait_for_calls
from pyptx.runtime.planning import Call, Plan, Traceable, find_call, locate_errors, make_plan
from pyptx.runtime.rules import ARRAYS, GRADIENTS

TARGET = "pyptx_kernel_1"
"""The name of the custom call: another meaning of its attributes needs another name, for exported programs."""


def _register() -> None:
    """Tell XLA which handlers run the custom call. The one for GPUs is absent where no compiler was found when this
    package was built."""
    jax.ffi.register_ffi_target(TARGET, _make_capsule(HANDLER), platform="cpu")
    if GPU_LIBRARY.exists():
        capsule = _make_capsule(ctypes.CDLL(str(GPU_LIBRARY)).pyptx_xla_handler)
        jax.ffi.register_ffi_target(TARGET, {"initialize": capsule, "execute": capsule}, platform="CUDA")


def _make_capsule(function: Any) -> Any:
    return jax.ffi.pycapsule(ctypes.cast(function, ctypes.c_void_p).value)


def _finish() -> None:
    """Wait for pending runs before Python ends: afterwards, a thread of XLA that calls the handler would never return,
    and XLA would wait for it."""
    for array in jax.live_arrays("cpu"):
        with suppress(jax.errors.JaxRuntimeError):  # nobody asked for the result
            array.block_until_ready()
    wait_for_calls()


GPU_LIBRARY = Path(__file__).with_name("_xla_handler.abi3.so")

_register()
atexit.register(_finish)


@dataclass(frozen=True, slots=True)
class Bound:
    """A call that is bound to values of JAX, or to arrays that become constants."""

    plan: Plan
    inputs: Sequence[Any]
    targets: Sequence[Any]
    """The initial values of the outputs, or none for undefined ones."""
    dtypes: tuple[str, ...]
    """Of the tensors: inputs, then outputs."""


def bind(kernel: Traceable, inputs: Sequence[Any], out: Any, **call: Unpack[Call]) -> Bound:
    """Bind a call that JAX runs; PtxError with everything that does not fit."""
    with locate_errors(kernel.definition):
        return _bind(kernel, inputs, out, **call)


def _bind(kernel: Traceable, inputs: Sequence[Any], out: Any, **call: Unpack[Call]) -> Bound:
    _refuse_tracers(
        dict(call["keywords"]) | {f"args[{index}]": value for index, value in enumerate(call["positional"] or ())}
    )
    targets = arrays.list_targets(out)
    # Outside of a trace a function has no values to return instead of changed arrays.
    is_traced = any(isinstance(value, jax.core.Tracer) for value in (*inputs, *targets))
    described = [*map(_describe, inputs)]
    into = [_describe(value) if is_traced else describe(view(value, True)) for value in targets]
    plan = make_plan(kernel, described, into, **call)
    arguments.check_complete(plan.definition.raw_params, plan.scalars)
    _refuse(plan)
    tensors = (*described, *plan.outputs)
    return Bound(plan, inputs, targets, tuple(array.dtype for array in tensors if isinstance(array, Described)))


def run(bound: Bound, stream: Any, *, cooperative: bool = False, programmatic: bool = False) -> list[Any]:
    """Return the outputs of a call, as values of JAX."""
    plan, inputs, targets = bound.plan, bound.inputs, bound.targets
    with locate_errors(plan.definition):
        if stream is not None:
            message = "`stream`: XLA chooses the stream of a call with JAX's arrays"
            raise PtxError([ARRAYS.report(None, message, help="omit it")])
        options = {"cooperative": cooperative, "programmatic": programmatic}
        attributes = None if plan.is_empty else write_attributes(plan, bound.dtypes, **options)
        operands, results = _align_axes([_take(value) for value in (*inputs, *targets)], plan.outputs)
    aliases = {len(inputs) + index: index for index in range(len(targets))}
    custom = jax.ffi.ffi_call(TARGET, results, vmap_method="sequential", input_output_aliases=aliases)
    is_rerouted = simulation.is_rerouted()

    @jax.custom_jvp
    def function(*values: Any) -> Any:
        if attributes is None:
            return [*values[len(inputs) :]] or [_make_empty(result, values) for result in results]
        if is_rerouted:
            return _call_host(attributes, results, values)
        return custom(*values, **attributes)

    @function.defjvp
    def refuse_gradient(primals: Any, tangents: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
        definition = plan.definition
        text = f"the kernel `{definition.name}` has no gradient"
        help = "pair it with one for its gradient: differentiable_kernel(kernel, backward_kernel)"
        raise PtxError([GRADIENTS.report(find_call(definition), text, help=help)])

    return list(function(*operands))


def _make_empty(result: Any, operands: Sequence[Any]) -> Any:
    """Return a result of no elements, which varies along the axes of the operands."""
    return vary(jax.numpy.empty(result.shape, result.dtype), find_axes(operands))


def _call_host(attributes: Attributes, results: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Return the outputs of a call on the simulator, whatever device XLA compiles for."""
    call, axes = read_attributes(attributes), find_axes(operands)
    count = len(call.dtypes) - call.outputs

    def simulate(*values: Any) -> list[Array]:
        outputs = [np.array(value) for value in values[count:]]
        fresh = [] if outputs else [np.empty(result.shape, result.dtype) for result in results]
        run_call(call, [np.asarray(value) for value in values[:count]], outputs or fresh, fresh)
        return outputs or fresh

    types = [jax.ShapeDtypeStruct(result.shape, result.dtype) for result in results]
    return [vary(value, axes) for value in jax.pure_callback(simulate, types, *operands, vmap_method="sequential")]


def _refuse_tracers(values: Mapping[str, Any]) -> None:
    names = [f"`{name}`" for name, value in values.items() if isinstance(value, jax.core.Tracer)]
    if names:
        text = f"{', '.join(names)}: expected a value, found a tracer: JAX is tracing the call"
        help = "only tensors may be traced: name it in jax.jit's static_argnames, or make it a tensor of one element"
        raise PtxError([ARRAYS.report(None, text, help=help)])


def _refuse(plan: Plan) -> None:
    """Refuse what only a call on arrays can do."""
    addresses = [name for name, value in plan.scalars.items() if isinstance(value, np.ndarray) and value.ndim]
    if addresses:
        text = f"`{addresses[0]}`: expected a number, found an array, which has no fixed address while JAX is tracing"
        raise PtxError([ARRAYS.report(None, text, help="make it a tensor: a parameter of the function, in in_specs")])
    if not plan.outputs:
        text = f"the kernel `{plan.definition.name}` has no outputs, so JAX would not run it"
        raise PtxError([ARRAYS.report(None, text, help="declare what it writes in out_specs")])
    for output in plan.outputs:
        check_dtype(output.dtype)


def _describe(value: Any) -> Described | Unusable:
    """Return the description of an operand: a value of JAX, or an array that becomes a constant."""
    if not isinstance(value, jax.Array):
        return describe(arrays.adopt([value])[0])
    aval = jax.typeof(value)
    if not all(isinstance(size, int) for size in aval.shape):
        return Unusable(
            f"expected known sizes, found shape ({', '.join(map(str, aval.shape))}); export for fixed sizes"
        )
    if _PACKED.match(aval.dtype.name):
        return Unusable(f"expected elements of whole bytes, found {aval.dtype.name}, which JAX packs while it traces")
    return Described(aval.shape, aval.dtype.name, library="jax")


_PACKED = re.compile(r"u?int[24]$|float4")


def _take(value: Any) -> Any:
    """Return what JAX takes as the operand."""
    if isinstance(value, jax.Array):
        return value
    array: Any = arrays.adopt([value])[0]
    check_dtype(array.dtype.name, "an argument")
    return jax.numpy.asarray(array)


def _align_axes(operands: list[Any], outputs: Sequence[Described]) -> tuple[list[Any], list[Any]]:
    """Return the operands and the types of the results. Inside `jax.shard_map`, all vary along the same axes of the
    mesh."""
    results: list[Any] = [jax.ShapeDtypeStruct(o.shape, get_numpy_dtype(o.dtype)) for o in outputs]
    axes = find_axes(operands)
    if not axes:
        return operands, results
    aligned = [vary(value, axes) for value in operands]
    # A shape alone cannot say along which axes it varies; the type of a value does.
    return aligned, [jax.typeof(vary(jax.numpy.empty(r.shape, r.dtype), axes)) for r in results]
