"""The functions of a Llama block and their gradients, as kernels for Hopper, for PyTorch's tensors and JAX's arrays.

An operation is a forward function, which returns its result and what the gradient needs, and a backward function, which
takes these and the gradient of the result. `llama_torch.py` makes an autograd function of it, `llama_jax.py` a
`custom_vjp`. Where one kernel is the gradient of another, `differentiable_kernel` does that for both libraries.

All arrays are bf16, except for the tables of the rotary embedding. Knows neither library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from examples.parts.example import Array, find_example
from pyptx import Kernel, differentiable_kernel
from pyptx.types import PtxType, bf16

ARCH = "sm_90a"


def make(name: str, dtype: PtxType | None = None) -> Kernel:
    """Return the kernel of an example."""
    return find_example(name).make(ARCH, *([dtype] if dtype else []))


gemm = make("hopper/persistent_gemm")
attention = make("hopper/attention_overlap")
attention_gradient_q = make("hopper/attention_backward_dq")
attention_gradient_kv = make("hopper/attention_backward_dkv")
rmsnorm, rmsnorm_gradient, column_sums = (
    make(f"any/{name}", bf16) for name in ("rmsnorm", "rmsnorm_backward", "column_sums")
)
rotary = make("any/rotary", bf16)
make_tables: Callable[[int, int], tuple[Array, Array]] = find_example("any/rotary").module.make_tables
"""Makes the cosines and sines of a length and a head dimension."""

activate = differentiable_kernel(make("any/swiglu", bf16), make("any/swiglu_backward", bf16))
"""SwiGLU of (gate, up)."""


@dataclass(frozen=True)
class Operation:
    """A function of arrays and its gradient."""

    forward: Callable[..., tuple[Any, tuple[Any, ...]]]
    """Takes the inputs; returns the result and what the gradient needs."""
    backward: Callable[..., tuple[Any, ...]]
    """Takes that and the gradient of the result; returns the gradient of each input, None for a table."""


def _normalize(x: Any, w: Any) -> tuple[Any, tuple[Any, ...]]:
    return rmsnorm(x, w), (x, w)


def _normalize_backward(x: Any, w: Any, dy: Any) -> tuple[Any, ...]:
    dx, parts = rmsnorm_gradient(x, w, dy)
    return dx, column_sums(parts)


def _rotate(x: Any, cos: Any, sin: Any) -> tuple[Any, tuple[Any, ...]]:
    return rotary(x, cos, sin), (cos, sin)


def _rotate_backward(cos: Any, sin: Any, dy: Any) -> tuple[Any, ...]:
    # The inverse of a rotation is its transpose.
    return rotary(dy, cos, -sin), None, None


def _attend(q: Any, k: Any, v: Any) -> tuple[Any, tuple[Any, ...]]:
    o, lse = attention(q, k, v, causal=True)
    return o, (q, k, v, o, lse)


def _attend_backward(q: Any, k: Any, v: Any, o: Any, lse: Any, do: Any) -> tuple[Any, ...]:
    dq, delta = attention_gradient_q(q, k, v, o, lse, do, causal=True)
    return dq, *attention_gradient_kv(q, k, v, lse, delta, do, causal=True)


normalize = Operation(_normalize, _normalize_backward)
"""RMSNorm of (x, w): rows of `x`, (tokens, hidden), times `w`."""
rotate = Operation(_rotate, _rotate_backward)
"""Rotary embedding of (x, cos, sin): `x` is (heads of all sequences, length, head dimension)."""
attend = Operation(_attend, _attend_backward)
"""Causal attention of (q, k, v), each (heads of all sequences, length, head dimension)."""


def make_projection(transpose: Callable[[Any], Any]) -> Operation:
    """Return x @ w.T, for `x` (tokens, inputs) and `w` (outputs, inputs).

    The kernel multiplies rows with rows, so the gradients dy @ w and dy.T @ x need transposes in memory of their own,
    which the library makes. Tokens, inputs and outputs must be multiples of 8: TMA copies rows of 16 bytes.
    """

    def forward(x: Any, w: Any) -> tuple[Any, tuple[Any, ...]]:
        return gemm(x, w), (x, w)

    def backward(x: Any, w: Any, dy: Any) -> tuple[Any, ...]:
        return gemm(dy, transpose(w)), gemm(transpose(dy), transpose(x))

    return Operation(forward, backward)
