"""A Llama block of kernels computes what plain PyTorch and `jax.numpy` do, forward and backward, and trains like it.

The expected values are those of f32. A rounding to bf16 changes a value by up to half a unit in the last place, 2 ** -8
of it, and by 0.0017 in the root mean square over all mantissas. Independent roundings add up as their squares do, and
no path through a block and its gradients has 64 of them: that allows 0.0133 for a whole array. The library's operations
in bf16 round as often, so the sharper limit is that kernels come about as close to f32 as these do.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import pyptx.driver
from examples.models import llama_jax, llama_torch
from examples.models.parameters import Sizes, draw_batch, draw_parameters
from examples.parts.example import HALF, Array

torch: Any = import_module("torch")
jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

Arrays = dict[str, Array]
LIMIT = 8 * 0.00166
"""Of the relative error of an array: the root of 64 roundings."""


class Case(NamedTuple):
    """A block and the shape of its input."""

    sizes: Sizes
    batch: int
    length: int


CASES = [Case(Sizes(), 2, 28), Case(Sizes(heads=2, head=128, inner=256, length=136), 1, 136)]
each_case = pytest.mark.parametrize("case", CASES, ids=["batch", "sequence"])


def draw(case: Case) -> tuple[Arrays, Array, Array]:
    """Return parameters, an input, and the gradient of the output, which bf16 can represent."""
    sizes = case.sizes
    x, gradient = (quantize(values[: case.batch, : case.length]) for values in draw_batch(sizes, 1))
    parameters = {name: quantize(values) for name, values in draw_parameters(sizes).items()}
    for seed, name in enumerate(("first_norm", "second_norm")):
        parameters[name] = quantize(np.random.default_rng(seed).normal(1, 0.2, sizes.hidden))
    return parameters, x, gradient


def quantize(values: Array) -> Array:
    """Return values rounded to bf16, as f32."""
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


def measure(values: Array, expected: Array) -> float:
    """Return the relative error of an array."""
    return float(np.linalg.norm(values - expected) / np.linalg.norm(expected))


def assert_rounded(results: Arrays, expected: Arrays, plain: Arrays) -> None:
    """Fail unless results differ from f32 only by their roundings, as those of the library in bf16 do."""
    for name, desired in expected.items():
        error = measure(results[name], desired)
        assert error < LIMIT, name
        assert error < 1.25 * measure(plain[name], desired), name
        spread = 8 * LIMIT * float(np.sqrt(np.mean(desired**2)))
        np.testing.assert_allclose(results[name], desired, 4 * HALF, spread, err_msg=name)


def run_torch(kind: type[Any], case: Case, dtype: Any, compiles: bool = False) -> Arrays:
    """Return the output and all gradients of a block of PyTorch."""
    parameters, x, gradient = draw(case)
    block = kind(case.sizes)
    block.load_state_dict({name: torch.from_numpy(value) for name, value in parameters.items()})
    call = torch.compile(block, fullgraph=True, backend="aot_eager") if compiles else block
    leaf = torch.from_numpy(x).to(dtype).requires_grad_()
    y = call(leaf)
    y.backward(torch.from_numpy(gradient).to(dtype))
    gradients = {name: parameter.grad for name, parameter in block.named_parameters()}
    return {name: tensor.detach().float().numpy() for name, tensor in {"y": y, "x": leaf.grad, **gradients}.items()}


def run_jax(run: llama_jax.Run, case: Case, dtype: Any) -> Arrays:
    """Return the output and all gradients of a compiled block of JAX."""
    parameters, x, gradient = draw(case)

    @jax.jit
    def differentiate(parameters: Any, x: Any, gradient: Any) -> Any:
        y, pull = jax.vjp(partial(run, case.sizes), parameters, x)
        return y, *pull(gradient)

    y, gradients, dx = differentiate(parameters, jnp.asarray(x, dtype), jnp.asarray(gradient, dtype))
    return {name: np.asarray(value, np.float32) for name, value in {"y": y, "x": dx, **gradients}.items()}


@each_case
def test_a_block_of_pytorch_computes_what_plain_pytorch_does(case: Case) -> None:
    results = run_torch(llama_torch.Block, case, torch.bfloat16)
    expected, plain = (run_torch(llama_torch.PlainBlock, case, dtype) for dtype in (torch.float32, torch.bfloat16))
    assert_rounded(results, expected, plain)


@each_case
def test_a_block_of_jax_computes_what_plain_jax_does(case: Case) -> None:
    results = run_jax(llama_jax.run_block, case, jnp.bfloat16)
    expected, plain = (run_jax(llama_jax.run_plain_block, case, dtype) for dtype in (jnp.float32, jnp.bfloat16))
    assert_rounded(results, expected, plain)


def test_plain_blocks_of_both_libraries_agree() -> None:
    first = run_torch(llama_torch.PlainBlock, CASES[0], torch.float32)
    second = run_jax(llama_jax.run_plain_block, CASES[0], jnp.float32)
    for name, desired in first.items():
        np.testing.assert_allclose(second[name], desired, 1e-4, 1e-4, err_msg=name)


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # PyTorch's compiler does
def test_a_compiled_block_has_the_same_bits() -> None:
    results = run_torch(llama_torch.Block, CASES[0], torch.bfloat16, compiles=True)
    assert_same_bits(results, run_torch(llama_torch.Block, CASES[0], torch.bfloat16))


def test_a_block_has_the_same_bits_on_a_device() -> None:
    """Of the simulated driver, which loads cubins and takes the memory of tensors for a GPU's."""
    expected = run_torch(llama_torch.Block, CASES[0], torch.bfloat16)
    pyptx.driver.activate("h100")
    try:
        results = run_torch(llama_torch.Block, CASES[0], torch.bfloat16)
    finally:
        pyptx.driver.deactivate()
    assert_same_bits(results, expected)


def assert_same_bits(results: Arrays, expected: Arrays) -> None:
    for name, desired in expected.items():
        np.testing.assert_array_equal(results[name], desired, err_msg=name)


@pytest.mark.parametrize("module", [llama_torch, llama_jax], ids=["pytorch", "jax"])
def test_a_block_trains_like_a_plain_one(module: Any) -> None:
    losses, expected = np.array(module.train_both(3)).T
    assert losses[0] > losses[1] > losses[2]
    np.testing.assert_allclose(losses, expected, HALF / 2)
