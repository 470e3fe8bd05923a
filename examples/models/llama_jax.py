"""A Llama block in JAX whose heavy parts are kernels of these examples, forward and backward, compiled by `jax.jit`.

`python examples/models/llama_jax.py` trains it for a few steps beside the same block of `jax.numpy` in f32, and prints
both losses. It runs on JAX's default device: an H100 or H200, or the simulator for the CPU's arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from examples.models import kernels
from examples.models.kernels import Operation
from examples.models.parameters import EPSILON, Sizes, draw_batch, draw_parameters

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")

Parameters = dict[str, Any]
Run = Callable[[Sizes, Parameters, Any], Any]
"""A block as a function of its sizes, parameters and input."""
RATE = 1.0


def differentiate(operation: Operation) -> Callable[..., Any]:
    """Return an operation as a function that JAX differentiates."""

    @jax.custom_vjp
    def function(*inputs: Any) -> Any:
        return operation.forward(*inputs)[0]

    def run_backward(saved: tuple[Any, ...], gradient: Any) -> tuple[Any, ...]:
        return operation.backward(*saved, gradient)

    function.defvjp(operation.forward, run_backward)
    return function


normalize, rotate, attend, project = map(
    differentiate, (kernels.normalize, kernels.rotate, kernels.attend, kernels.make_projection(jnp.transpose))
)


def run_block(sizes: Sizes, parameters: Parameters, x: Any) -> Any:
    """Return x + attention(norm(x)), then x + down(swiglu(gate(norm(x)), up(norm(x)))), by kernels, in bf16.

    `x` is (batch, length, hidden). The parameters may be f32, as an optimizer needs them: each use rounds them. For
    gradients, the number of tokens, batch * length, must be a multiple of 8.
    """
    batch, length, hidden = x.shape
    weights = {name: value.astype(x.dtype) for name, value in parameters.items()}
    cos, sin = map(jnp.asarray, kernels.make_tables(length, sizes.head))

    def split(rows: Any) -> Any:
        """Return rows of tokens as (heads of all sequences, length, head dimension)."""
        return rows.reshape(batch, length, sizes.heads, sizes.head).swapaxes(1, 2).reshape(-1, length, sizes.head)

    def join(heads: Any) -> Any:
        return heads.reshape(batch, sizes.heads, length, sizes.head).swapaxes(1, 2).reshape(-1, hidden)

    x = x.reshape(-1, hidden)
    y = normalize(x, weights["first_norm"])
    query, key, value = (split(project(y, weights[name])) for name in ("query", "key", "value"))
    heads = attend(rotate(query, cos, sin), rotate(key, cos, sin), value)
    x = x + project(join(heads), weights["out"])

    y = normalize(x, weights["second_norm"])
    inner = kernels.activate(project(y, weights["gate"]), project(y, weights["up"]))
    return (x + project(inner, weights["down"])).reshape(batch, length, hidden)


def run_plain_block(sizes: Sizes, parameters: Parameters, x: Any) -> Any:
    """Return the same by `jax.numpy`, in the type of `x`."""
    length = x.shape[1]
    weights = {name: value.astype(x.dtype) for name, value in parameters.items()}
    cos, sin = kernels.make_tables(length, sizes.head)

    def norm(rows: Any, name: str) -> Any:
        wide = rows.astype(jnp.float32)
        scale = jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + EPSILON)
        return (wide * scale).astype(x.dtype) * weights[name]

    def multiply(rows: Any, name: str) -> Any:
        return jnp.einsum("btc,nc->btn", rows, weights[name])

    def split(rows: Any) -> Any:
        return rows.reshape(*rows.shape[:2], sizes.heads, sizes.head)

    def turn(heads: Any) -> Any:
        """Rotate the points of (batch, length, heads, head dimension) as complex numbers."""
        first, second = jnp.split(heads, 2, axis=-1)
        points = jax.lax.complex(*(half.astype(jnp.float32) for half in (first, second)))
        points = points * jax.lax.complex(cos, sin)[:, None]
        return jnp.concatenate([points.real, points.imag], axis=-1).astype(x.dtype)

    y = norm(x, "first_norm")
    query, key, value = (split(multiply(y, name)) for name in ("query", "key", "value"))
    heads = jax.nn.dot_product_attention(turn(query), turn(key), value, is_causal=True)
    x = x + multiply(heads.reshape(x.shape), "out")

    y = norm(x, "second_norm")
    return x + multiply(jax.nn.silu(multiply(y, "gate")) * multiply(y, "up"), "down")


@partial(jax.jit, static_argnums=(0, 1))
def step(run: Run, sizes: Sizes, parameters: Parameters, x: Any, target: Any) -> tuple[Any, Parameters]:
    """Return the loss, and the parameters after a step of gradient descent."""

    def compute_loss(parameters: Parameters) -> Any:
        return ((run(sizes, parameters, x).astype(jnp.float32) - target) ** 2).mean()

    loss, gradients = jax.value_and_grad(compute_loss)(parameters)
    return loss, {name: value - RATE * gradients[name] for name, value in parameters.items()}


def train(run: Run, sizes: Sizes, x: Any, target: Any, steps: int) -> list[float]:
    """Return the loss of each step."""
    parameters, losses = {name: jnp.asarray(values) for name, values in draw_parameters(sizes).items()}, list[float]()
    for _ in range(steps):
        loss, parameters = step(run, sizes, parameters, x, target)
        losses.append(float(loss))
    return losses


def train_both(steps: int) -> list[tuple[float, float]]:
    """Return the losses of both blocks, trained from the same parameters."""
    sizes = Sizes()
    x, target = map(jnp.asarray, draw_batch(sizes))
    with jax.default_matmul_precision("float32"):
        losses = (
            train(run_block, sizes, x.astype(jnp.bfloat16), target, steps),
            train(run_plain_block, sizes, x, target, steps),
        )
    return [*zip(*losses, strict=True)]


def main() -> None:
    """Train both blocks, and print their losses."""
    print("step  kernels, bf16  jax.numpy, f32")
    for number, (loss, expected) in enumerate(train_both(5)):
        print(f"{number:4}  {loss:13.5f}  {expected:14.5f}")


if __name__ == "__main__":
    main()
