"""What the examples are timed against: libraries' functions that compute the same, by name.

Each takes the kernel's inputs as PyTorch tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from examples.parts.example import Example

Tensors = tuple[Any, ...]
Work = Callable[[], object]


def list_peers(example: Example, inputs: Tensors, *, causal: bool = False) -> dict[str, Work]:
    """Return functions that submit libraries' work on these inputs, without those that this PyTorch or device lacks."""
    peers = dict[str, Work]()
    for name in example.peer.split():
        work = make_peer(name, inputs, causal=causal)
        try:
            work()
        except (RuntimeError, AttributeError, ValueError, TypeError) as why:
            print(f"{example.name}: no peer {name}: {str(why).splitlines()[0]}")
            continue
        peers[f"torch {name}"] = work
    return peers


def make_peer(name: str, inputs: Tensors, *, causal: bool = False) -> Work:
    """Return a function that submits a library's work on these inputs."""
    import torch

    functional: Any = torch.nn.functional
    operators: Any = torch

    def attend(x: Tensors, *, backend: str = "") -> object:
        heads = [tensor[None] for tensor in x[:3]]
        if not backend:
            return functional.scaled_dot_product_attention(*heads, is_causal=causal)
        attention: Any = torch.nn.attention
        with attention.sdpa_kernel(getattr(attention.SDPBackend, backend)):
            return functional.scaled_dot_product_attention(*heads, is_causal=causal)

    one = torch.ones((), device=inputs[0].device)

    def scale_and_multiply(x: Tensors, *, fast: bool) -> object:
        b = x[2] if len(x) == 4 else x[1]
        return operators._scaled_mm(x[0], b.T, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    peers: dict[str, Callable[[Tensors], object]] = {
        "add": lambda x: torch.add(x[0], x[1]),
        "attention": attend,
        "clone": lambda x: x[0].clone(),
        "cudnn_attention": partial(attend, backend="CUDNN_ATTENTION"),
        "decode_attention": attend,
        "fp8_matmul": partial(scale_and_multiply, fast=False),
        "fp8_matmul_fast": partial(scale_and_multiply, fast=True),
        "grouped_matmul": lambda x: operators._grouped_mm(x[0], x[1].mT, offs=x[2].cumsum(0, dtype=torch.int32)),
        "layer_norm": lambda x: functional.layer_norm(x[0], x[1].shape, x[1], x[2]),
        "matmul": lambda x: torch.matmul(x[0], x[1].T),
        "multiply": lambda x: torch.mul(x[0], x[1]),
        "rms_norm": lambda x: functional.rms_norm(x[0], x[1].shape, x[1]),
        "softmax": lambda x: torch.softmax(x[0], 1),
        "sum": lambda x: x[0].sum(1),
        "swiglu": lambda x: functional.silu(x[0]) * x[1],
        "transpose": lambda x: x[0].T.contiguous(),
    }
    return partial(peers[name], inputs)
